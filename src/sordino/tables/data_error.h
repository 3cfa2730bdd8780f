// DataError: a file that does not keep to its declaration, reported without anything that is in it.
//
// The sentence goes to screens, logs and bug reports, so it holds what was declared and the kind of
// the problem: no cell, no label, no line number, no count, and no name of a file in a folder.
// Whoever may see the data can ask for these (`--show-private` of the commands), which is detail().
// The PrivateErrors tests read the sentences of all readers.
#ifndef SORDINO_TABLES_DATA_ERROR_H_
#define SORDINO_TABLES_DATA_ERROR_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "sordino/base/error.h"

namespace sordino {

class DataError : public Error {
 public:
  // The detail has no full stop: "line 3 has 'Genf'".
  DataError(const std::string& sentence, std::string detail)
      : Error(sentence), detail_(std::move(detail)) {}

  // About the private data.
  const std::string& detail() const { return detail_; }

 private:
  std::string detail_;
};

// Text of a file for a detail: at most `longest` bytes of it, in quotes. What is not printable
// ASCII, quotes and backslashes are written as \xNN, so that it cannot steer a terminal or forge
// a line.
std::string QuotedText(std::string_view text, std::size_t longest = 40);

}  // namespace sordino

#endif  // SORDINO_TABLES_DATA_ERROR_H_
