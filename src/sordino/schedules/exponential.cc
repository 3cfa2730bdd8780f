#include <cmath>

#include "sordino/schedules/internal/curve_to_end.h"

namespace sordino {
namespace {

double Exponential(double end, double t) { return std::pow(end, t); }

}  // namespace

const ScheduleShape& ExponentialSchedule() {
  static const internal::ShapeToEnd component({.name = "exponential", .help = "E^t, E > 0"},
                                              Exponential, false,
                                              "E of exponential is more than 0");
  return component;
}

}  // namespace sordino
