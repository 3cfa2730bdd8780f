#include <cmath>

#include "sordino/schedules/internal/curve_to_end.h"

namespace sordino {
namespace {

// Exact at both ends, and monotone.
double Linear(double end, double t) { return std::lerp(1.0, end, t); }

}  // namespace

const ScheduleShape& LinearSchedule() {
  static const internal::ShapeToEnd component(
      {.name = "linear", .help = "from 1 to E in a straight line"}, Linear, true,
      "E is at least 0");
  return component;
}

}  // namespace sordino
