// Schema files of tables.
#include "fuzz_target.h"
#include "sordino/tables/table_schema.h"

using namespace sordino;  // NOLINT: a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::Run([&] {
    const TableSchema schema = ParseSchema(fuzz::AsText(data, size), "input");
    for (const TableColumn& column : schema.columns) {
      const TableColumn again = ParseColumns({ColumnText(column)})[0];
      fuzz::Require(again.values == column.values && again.cells == column.cells,
                    "a column is not what it was when it is read back");
    }
  });
}
