#include "sordino/base/toml_nesting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/shown_text.h"

namespace sordino {
namespace {

// Behind the string that begins at `start`. As in the parser for everything that is TOML; what is
// not TOML ends the parser at the same place, so that what stands after it does not matter.
std::size_t EndOfString(std::string_view text, std::size_t start) {
  const char quote = text[start];
  const bool has_escapes = quote == '"';
  const std::string_view three = quote == '"' ? "\"\"\"" : "'''";
  const bool is_long = text.substr(start, 3) == three;
  for (std::size_t at = start + (is_long ? 3 : 1); at < text.size(); ++at) {
    if (has_escapes && text[at] == '\\') {
      ++at;
    } else if (is_long && text.substr(at, 3) == three) {
      // Up to two quotes may stand before the closing ones.
      at += 3;
      for (int more = 0; more < 2 && at < text.size() && text[at] == quote; ++more) ++at;
      return at;
    } else if (!is_long && (text[at] == quote || text[at] == '\n')) {
      return at + 1;
    }
  }
  return text.size();
}

}  // namespace

void CheckTomlNesting(std::string_view text, std::string_view name) {
  // The dots since the last comma or line break within each open bracket.
  std::vector<int> dots = {0};
  int depth = 1;  // the brackets and their dots
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'') {
      at = EndOfString(text, at);
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    const bool ends_entry = c == ',' || (c == '\n' && dots.size() == 1);
    if (c == '.') {
      ++dots.back();
      ++depth;
    } else if (c == '[' || c == '{') {
      dots.push_back(0);
      ++depth;
    } else if ((c == ']' || c == '}') && dots.size() > 1) {
      depth -= dots.back() + 1;
      dots.pop_back();
    } else if (ends_entry) {
      depth -= dots.back();
      dots.back() = 0;
    }
    if (depth > kMaxTomlNesting) {
      throw Error(fmt::format(
          "{}, line {}: keys and brackets are nested more than {} levels deep; no file of this "
          "kind needs that.",
          ShownText(name),
          1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
          kMaxTomlNesting));
    }
    ++at;
  }
}

}  // namespace sordino
