// Lists as people write them on a command line: one rule for all flags.
//
//   Bern,Basel                  two values; the separator is a comma, or a bar within a column
//   "Biel, Bienne",Basel        a value in double quotes may hold separators, '=' and ':'
//   "5"" pipe"                  a doubled quote inside quotes is one quote
//   Bern,""                     the empty value is written as two quotes
//
// Blanks at the ends of a value do not count, in quotes or not, as they do not count at the ends of
// a table's cells. Quotes inside a value that does not start with one are ordinary characters.
#ifndef SORDINO_BASE_LIST_TEXT_H_
#define SORDINO_BASE_LIST_TEXT_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sordino {

// Without blanks and tabs at its ends.
std::string_view Trimmed(std::string_view text);

// The values of a list. Throws Error for quotes that do not close, text after a closing quote, and
// a value that is empty without quotes.
std::vector<std::string> SplitList(std::string_view text, char separator = ',');

// "city=Bern,Basel" is {city, Bern,Basel}: the part before the first separator, which may stand in
// quotes, and the rest as it is. Nothing where there is no separator, and where the text starts
// with a value in quotes that none follows.
std::optional<std::pair<std::string, std::string_view>> SplitName(std::string_view text,
                                                                  char separator);

// A value as SplitList reads it back, in quotes where it needs them. `special` are the characters
// that mean something where the value stands.
std::string ListValue(std::string_view value, std::string_view special);

}  // namespace sordino

#endif  // SORDINO_BASE_LIST_TEXT_H_
