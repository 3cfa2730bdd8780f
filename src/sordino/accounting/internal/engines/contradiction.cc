#include "sordino/accounting/internal/engines/contradiction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sordino {
namespace {

constexpr double kOutward = 1e-12;

[[noreturn]] void Fail(Interval interval, BoundNames names, const std::string& event) {
  throw ContradictionError(fmt::format(
      "internal error: two sound bounds contradict each other, {} says at least {} and {} says at "
      "most {}, for '{}'. Nothing was decided; please report this event.",
      names.lower, interval.lower, names.upper, interval.upper, event.substr(0, 2000)));
}

}  // namespace

double ConsistentLower(Interval interval, BoundNames names, const std::string& event) {
  const double most =
      interval.upper * (1 + kOutward) + 8 * std::numeric_limits<double>::denorm_min();
  if (interval.lower > most) Fail(interval, names, event);
  return std::min(interval.lower, interval.upper);
}

double ConsistentLogLower(Interval interval, BoundNames names, const std::string& event) {
  const double slack = kOutward * (1 + std::abs(interval.upper));
  if (interval.lower > interval.upper + (std::isfinite(slack) ? slack : 0)) {
    Fail(interval, names, event);
  }
  return std::min(interval.lower, interval.upper);
}

void Intersect(Interval& value, std::string& engine, Interval found, const char* other,
               double (*consistent)(Interval, BoundNames, const std::string&)) {
  consistent({found.lower, value.upper}, {other, engine}, "a composition");
  consistent({value.lower, found.upper}, {engine, other}, "a composition");
  if (found.upper < value.upper || found.lower > value.lower) engine = other;
  value = {std::max(value.lower, found.lower), std::min(value.upper, found.upper)};
}

}  // namespace sordino
