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
    DatasetDeclaration declaration;
    DeclareColumns(ParseColumns(declared), declaration);
  });
}
