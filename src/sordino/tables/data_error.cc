#include "sordino/tables/data_error.h"

#include <fmt/format.h>

namespace sordino {

std::string QuotedText(std::string_view text, std::size_t longest) {
  std::string quoted = "'";
  for (const char c : text.substr(0, longest)) {
    if (c >= ' ' && c <= '~' && c != '\'' && c != '\\') {
      quoted += c;
    } else {
      quoted += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    }
  }
  return quoted + (text.size() > longest ? "...'" : "'");
}

}  // namespace sordino
