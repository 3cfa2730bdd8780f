// Numbers in texts.
#ifndef SORDINO_EXPERIMENTS_INTERNAL_NUMBER_TEXT_H_
#define SORDINO_EXPERIMENTS_INTERNAL_NUMBER_TEXT_H_

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace sordino::internal {

// The finite number that the whole text is; nothing otherwise.
inline std::optional<double> NumberIn(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace sordino::internal

#endif  // SORDINO_EXPERIMENTS_INTERNAL_NUMBER_TEXT_H_
