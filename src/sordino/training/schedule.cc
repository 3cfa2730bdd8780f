#include "sordino/training/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include "sordino/base/check.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

// What was given, short and printable: a file may hold anything.
std::string Shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string shown(text.substr(0, kLongest));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kLongest ? shown + "..." : shown;
}

[[noreturn]] void Refuse(std::string_view text) {
  throw Error(
      fmt::format("the schedule is '{}'; give 'constant', 'linear:E', 'cosine:E', 'exponential:E' "
                  "or 'step:N:F', or 'warmup:N,' and one of these, where E is at least 0 (more "
                  "than 0 for exponential), F is more than 0 and N is a whole number from 1, as in "
                  "'warmup:100,cosine:0'.",
                  Shown(text)));
}

template <typename Number>
std::optional<Number> Whole(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::int64_t> Count(std::string_view text) {
  const std::optional<std::int64_t> count = Whole<std::int64_t>(text);
  return count && *count >= 1 ? count : std::nullopt;
}

// Finite and not below zero. "-0" is refused with the other negative numbers.
std::optional<double> Factor(std::string_view text, bool zero_is_allowed) {
  const std::optional<double> factor = Whole<double>(text);
  if (!factor || !std::isfinite(*factor) || std::signbit(*factor)) return std::nullopt;
  if (*factor == 0 && !zero_is_allowed) return std::nullopt;
  return factor;
}

// The text after `name` and a colon, where the text starts so.
std::optional<std::string_view> After(std::string_view name, std::string_view text) {
  if (!text.starts_with(name) || !text.substr(name.size()).starts_with(':')) return std::nullopt;
  return text.substr(name.size() + 1);
}

}  // namespace

Schedule Schedule::Parse(std::string_view text) {
  Schedule schedule;
  std::string_view rest = text;
  if (const auto warmup = After("warmup", text)) {
    const std::size_t comma = warmup->find(',');
    if (comma == std::string_view::npos) Refuse(text);
    const std::optional<std::int64_t> steps = Count(warmup->substr(0, comma));
    if (!steps) Refuse(text);
    schedule.warmup_ = *steps;
    rest = warmup->substr(comma + 1);
  }
  std::optional<double> end;
  if (rest == "constant") {
    return schedule;
  } else if (const auto linear = After("linear", rest)) {
    schedule.shape_ = Shape::kLinear;
    end = sordino::Factor(*linear, true);
  } else if (const auto cosine = After("cosine", rest)) {
    schedule.shape_ = Shape::kCosine;
    end = sordino::Factor(*cosine, true);
  } else if (const auto exponential = After("exponential", rest)) {
    schedule.shape_ = Shape::kExponential;
    end = sordino::Factor(*exponential, false);
  } else if (const auto step = After("step", rest)) {
    schedule.shape_ = Shape::kStep;
    const std::size_t colon = std::min(step->find(':'), step->size());
    const std::optional<std::int64_t> every = Count(step->substr(0, colon));
    if (!every || colon == step->size()) Refuse(text);
    schedule.every_ = *every;
    end = sordino::Factor(step->substr(colon + 1), false);
  }
  if (!end) Refuse(text);
  schedule.end_ = *end;
  return schedule;
}

double Schedule::Factor(std::int64_t step, std::int64_t steps) const {
  // The noise may follow a schedule, so a step outside the run is no matter of rounding up.
  SORDINO_CHECK(0 <= step && step < steps, "a schedule is asked for a step outside the run");
  const double t = steps == 1 ? 0 : static_cast<double>(step) / static_cast<double>(steps - 1);
  double factor = 1;
  switch (shape_) {
    case Shape::kConstant:
      break;
    case Shape::kLinear:
      factor = std::lerp(1.0, end_, t);  // exact at both ends, and monotone
      break;
    case Shape::kCosine:
      factor = std::lerp(end_, 1.0, (1 + std::cos(std::numbers::pi * t)) / 2);
      break;
    case Shape::kExponential:
      factor = std::pow(end_, t);
      break;
    case Shape::kStep:
      factor = std::pow(end_, static_cast<double>(step / every_));
      break;
  }
  if (step < warmup_) factor *= static_cast<double>(step + 1) / static_cast<double>(warmup_);
  // "step:1:10" leaves the doubles after 308 steps.
  return std::min(factor, std::numeric_limits<double>::max());
}

bool Schedule::IsConstant() const {
  return warmup_ <= 1 && (shape_ == Shape::kConstant || end_ == 1);
}

std::string Schedule::ToString() const {
  const std::string warmup = warmup_ > 0 ? fmt::format("warmup:{},", warmup_) : "";
  switch (shape_) {
    case Shape::kConstant:
      break;
    case Shape::kLinear:
      return fmt::format("{}linear:{}", warmup, end_);
    case Shape::kCosine:
      return fmt::format("{}cosine:{}", warmup, end_);
    case Shape::kExponential:
      return fmt::format("{}exponential:{}", warmup, end_);
    case Shape::kStep:
      return fmt::format("{}step:{}:{}", warmup, every_, end_);
  }
  return warmup + "constant";
}

}  // namespace sordino
