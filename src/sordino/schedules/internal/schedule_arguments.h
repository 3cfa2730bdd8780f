// Numbers in the text of a schedule.
#ifndef SORDINO_SCHEDULES_INTERNAL_SCHEDULE_ARGUMENTS_H_
#define SORDINO_SCHEDULES_INTERNAL_SCHEDULE_ARGUMENTS_H_

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sordino::internal {

template <typename Number>
std::optional<Number> NumberFrom(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A whole number from 1.
inline std::optional<std::int64_t> CountFrom(std::string_view text) {
  const std::optional<std::int64_t> count = NumberFrom<std::int64_t>(text);
  return count && *count >= 1 ? count : std::nullopt;
}

// Finite and not below zero. "-0" is refused with the other negative numbers.
inline std::optional<double> FactorFrom(std::string_view text, bool zero_is_allowed) {
  const std::optional<double> factor = NumberFrom<double>(text);
  if (!factor || !std::isfinite(*factor) || std::signbit(*factor)) return std::nullopt;
  if (*factor == 0 && !zero_is_allowed) return std::nullopt;
  return factor;
}

// Between 0 and 1, neither of them.
inline std::optional<double> ShareFrom(std::string_view text) {
  const std::optional<double> share = FactorFrom(text, false);
  return share && *share < 1 ? share : std::nullopt;
}

// How far step 0 ... steps - 1 is into the run, from 0 to 1; a run of one step stays at 0.
inline double Progress(std::int64_t step, std::int64_t steps) {
  return steps == 1 ? 0 : static_cast<double>(step) / static_cast<double>(steps - 1);
}

}  // namespace sordino::internal

#endif  // SORDINO_SCHEDULES_INTERNAL_SCHEDULE_ARGUMENTS_H_
