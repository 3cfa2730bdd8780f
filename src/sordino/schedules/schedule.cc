#include "sordino/schedules/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/schedules/internal/schedule_arguments.h"
#include "sordino/schedules/schedule_shape.h"

namespace sordino {
namespace {

constexpr std::string_view kWarmup = "warmup:";
constexpr std::string_view kFileShape = "file";

// What was given, short and printable: a file may hold anything.
std::string Printable(std::string_view text) {
  constexpr std::size_t kMaxLength = 60;
  std::string shown(text.substr(0, kMaxLength));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kMaxLength ? shown + "..." : shown;
}

[[noreturn]] void Refuse(std::string_view text) {
  std::vector<std::string> usages;
  std::vector<std::string_view> notes;
  for (const ScheduleShape* shape : ScheduleShapes().all()) {
    usages.push_back(fmt::format("'{}'", shape->Usage()));
    const std::string_view note = shape->Note();
    if (!note.empty() && std::find(notes.begin(), notes.end(), note) == notes.end()) {
      notes.push_back(note);
    }
  }
  const std::vector<std::string_view> shown(usages.begin(), usages.end());
  throw Error(
      fmt::format("the schedule is '{}'; give {}, or 'warmup:N,' and one of these, where {}, as in "
                  "'warmup:100,cosine:0'.",
                  Printable(text), OneOf(shown), fmt::join(notes, ", ")));
}

struct TextParts {
  std::string_view warmup;  // "warmup:100,", empty where there is none
  std::string_view name;
  std::optional<std::string_view> arguments;  // after a colon
};

TextParts PartsOf(std::string_view text) {
  TextParts parts;
  if (text.starts_with(kWarmup)) {
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) return parts;  // no shape has an empty name
    parts.warmup = text.substr(0, comma + 1);
    text.remove_prefix(comma + 1);
  }
  const std::size_t colon = text.find(':');
  parts.name = text.substr(0, colon);
  if (colon != std::string_view::npos) parts.arguments = text.substr(colon + 1);
  return parts;
}

const ScheduleShape* ShapeNamed(std::string_view name) {
  for (const ScheduleShape* shape : ScheduleShapes().all()) {
    if (shape->name() == name) return shape;
  }
  return nullptr;
}

}  // namespace

Schedule Schedule::Parse(std::string_view text, std::string_view column) {
  Schedule schedule;
  const TextParts parts = PartsOf(text);
  if (!parts.warmup.empty()) {
    const std::optional<std::int64_t> steps = internal::CountFrom(
        parts.warmup.substr(kWarmup.size(), parts.warmup.size() - kWarmup.size() - 1));
    if (!steps) Refuse(text);
    schedule.warmup_ = *steps;
  }
  const ScheduleShape* const shape = ShapeNamed(parts.name);
  // A shape with arguments has a colon, and one without has none.
  if (shape == nullptr || shape->Arguments().empty() == parts.arguments.has_value()) Refuse(text);
  schedule.curve_ = shape->Parse(parts.arguments.value_or(""), column);
  if (schedule.curve_ == nullptr) Refuse(text);
  const std::string arguments = schedule.curve_->Arguments();
  schedule.text_ = std::string(parts.name) + (arguments.empty() ? "" : ":") + arguments;
  return schedule;
}

std::string Schedule::Completed(std::string_view text, const ScheduleTerms& terms, bool& used) {
  const TextParts parts = PartsOf(text);
  const ScheduleShape* const shape = ShapeNamed(parts.name);
  if (shape == nullptr || parts.arguments) return std::string(text);
  const std::optional<std::string> arguments = shape->ArgumentsFrom(terms);
  if (!arguments) return std::string(text);
  used = true;
  return fmt::format("{}{}:{}", parts.warmup, parts.name, *arguments);
}

std::optional<std::string> Schedule::FileOf(std::string_view text) {
  const TextParts parts = PartsOf(text);
  if (parts.name != kFileShape || !parts.arguments) return std::nullopt;
  return std::string(*parts.arguments);
}

std::string Schedule::WithFile(std::string_view text, const std::string& file) {
  const TextParts parts = PartsOf(text);
  if (parts.name != kFileShape) return std::string(text);
  return fmt::format("{}{}:{}", parts.warmup, parts.name, file);
}

std::string Schedule::Grammar() {
  std::string grammar;
  for (const ScheduleShape* shape : ScheduleShapes().all()) grammar += shape->Usage() + ", ";
  return grammar + "warmup:N,...";
}

double Schedule::Factor(std::int64_t step, std::int64_t steps) const {
  // The noise may follow a schedule, so a step outside the run is not a matter of rounding up.
  SORDINO_CHECK(0 <= step && step < steps, "a schedule is asked for a step outside the run");
  double factor = curve_ == nullptr ? 1 : curve_->Factor(step, steps);
  if (step < warmup_) factor *= static_cast<double>(step + 1) / static_cast<double>(warmup_);
  // "step:1:10" leaves the doubles after 308 steps.
  return std::min(factor, std::numeric_limits<double>::max());
}

bool Schedule::IsConstant() const {
  return warmup_ <= 1 && (curve_ == nullptr || curve_->IsConstant());
}

std::optional<std::int64_t> Schedule::Length() const {
  return curve_ == nullptr ? std::nullopt : curve_->Length();
}

void Schedule::CheckLength(std::string_view what, std::int64_t steps) const {
  const std::optional<std::int64_t> own = Length();
  if (!own || *own == steps) return;
  throw Error(
      fmt::format("the schedule '{}' of the {} is for {} steps, and the run has {}; give a file "
                  "with a line for each step, or --steps {}.",
                  ToString(), what, *own, steps, *own));
}

std::string Schedule::ToString() const {
  return warmup_ > 0 ? fmt::format("{}{},{}", kWarmup, warmup_, text_) : text_;
}

}  // namespace sordino
