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

}  // namespace

Schedule Schedule::Parse(std::string_view text) {
  Schedule schedule;
  std::string_view rest = text;
  if (text.starts_with(kWarmup)) {
    const std::size_t comma = text.find(',');
    if (comma == std::string_view::npos) Refuse(text);
    const std::optional<std::int64_t> steps =
        internal::CountFrom(text.substr(kWarmup.size(), comma - kWarmup.size()));
    if (!steps) Refuse(text);
    schedule.warmup_ = *steps;
    rest = text.substr(comma + 1);
  }
  const std::size_t colon = std::min(rest.find(':'), rest.size());
  const std::string_view name = rest.substr(0, colon);
  for (const ScheduleShape* shape : ScheduleShapes().all()) {
    // A shape with arguments has a colon, and one without has none.
    if (shape->name() != name || shape->Arguments().empty() != (colon == rest.size())) continue;
    schedule.curve_ = shape->Parse(colon == rest.size() ? "" : rest.substr(colon + 1));
    if (schedule.curve_ == nullptr) Refuse(text);
    const std::string arguments = schedule.curve_->Arguments();
    schedule.text_ = arguments.empty() ? std::string(name) : fmt::format("{}:{}", name, arguments);
    return schedule;
  }
  Refuse(text);
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

std::string Schedule::ToString() const {
  return warmup_ > 0 ? fmt::format("{}{},{}", kWarmup, warmup_, text_) : text_;
}

}  // namespace sordino
