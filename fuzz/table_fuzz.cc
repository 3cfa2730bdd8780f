// A table with one column of each role.
#include "fuzz_target.h"
#include "sordino/data/table_reader.h"

using namespace sordino;  // NOLINT: a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  return fuzz::Run([&] {
    TableOptions options;
    options.columns = ParseColumns(
        {"age:numeric:0:120", "city:categorical:Bern|Basel|*", "sick:label:no|yes", "id:user"});
    options.layout.delimiter = data[0] % 2 == 0 ? ',' : '\t';
    options.layout.header = data[0] / 12 % 2 == 0;
    if (data[0] / 24 % 2 == 0) options.layout.missing = {"?", ""};
    options.rows_per_user = data[0] / 2 % 3;
    options.labelled = data[0] / 6 % 2 == 0;
    DatasetDeclaration declaration;
    declaration.name = "input";
    declaration.rows_per_user = options.rows_per_user;
    DeclareColumns(options.columns, declaration);
    const Dataset table =
        ParseTable(fuzz::AsText(data + 1, size - 1), "input", declaration, options);
    // "0,,no,": no row is shorter than three bytes.
    fuzz::Require(table.inputs.size(0) <= static_cast<std::int64_t>(size),
                  "there are more rows than bytes");
  });
}
