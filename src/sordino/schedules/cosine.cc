#include <cmath>
#include <numbers>

#include "sordino/schedules/internal/curve_to_end.h"

namespace sordino {
namespace {

double Cosine(double end, double t) {
  return std::lerp(end, 1.0, (1 + std::cos(std::numbers::pi * t)) / 2);
}

}  // namespace

const ScheduleShape& CosineSchedule() {
  static const internal::ShapeToEnd component(
      {.name = "cosine", .help = "E + (1 − E)(1 + cos πt)/2"}, Cosine, true, "E is at least 0");
  return component;
}

}  // namespace sordino
