// Declarations of columns, one a line.
#include <string>
#include <vector>

#include "fuzz_target.h"
#include "sordino/data/table_reader.h"

using namespace sordino;  // NOLINT: a program of one function

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> declared{""};
  for (const char c : fuzz::AsText(data, size)) {
    if (c == '\n') {
      declared.emplace_back();
    } else {
      declared.back() += c;
    }
  }
  return fuzz::Run([&] {
    std::vector<std::string> written;
    for (const TableColumn& column : ParseColumns(declared)) written.push_back(ColumnText(column));
    std::vector<std::string> again;
    for (const TableColumn& column : ParseColumns(written)) again.push_back(ColumnText(column));
    fuzz::Require(written == again, "a column is not what it was when it is read back");
    DatasetDeclaration declaration;
    DeclareColumns(ParseColumns(written), declaration);
  });
}
