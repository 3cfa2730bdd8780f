// A limit on the depth of a TOML file, checked before it is parsed.
//
// The parser builds a table for every name of a dotted key, and a table frees its parts by
// recursion: a file of a few kilobytes could overflow the stack.
#ifndef SORDINO_BASE_TOML_NESTING_H_
#define SORDINO_BASE_TOML_NESTING_H_

#include <string_view>

namespace sordino {

// Of a header, of a key, and of a value with the brackets around it.
inline constexpr int kMaxTomlNesting = 100;

// Throws Error with the line where the limit is exceeded. `name` is that of the file.
void CheckTomlNesting(std::string_view text, std::string_view name);

}  // namespace sordino

#endif  // SORDINO_BASE_TOML_NESTING_H_
