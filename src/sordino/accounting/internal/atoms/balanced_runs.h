// Merging a list of values with masses into fewer values on given points, mean by mean.
//
// Neighbouring values are merged into runs whose mean is a point; a value may be split between two
// runs (by a coin of its own). The result is a conditional expectation of the values given the run,
// so it is smaller in convex order: for every convex f the sum of mass * f(value) does not grow
// (Jensen). A run that finds no balance within two points is rounded to a point on the side that
// the caller names, which keeps that inequality for every convex f that is monotone accordingly:
// down for increasing, up for decreasing f.
#ifndef SORDINO_ACCOUNTING_INTERNAL_BALANCED_RUNS_H_
#define SORDINO_ACCOUNTING_INTERNAL_BALANCED_RUNS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sordino/base/check.h"

namespace sordino {

struct ValueMass {
  double value;
  double mass;
};

enum class Rounding : std::uint8_t { kDown, kUp };

// values: increasing. point(i): increasing in i. Masses are added to out[i] for i in [0, size);
// what would fall left of point(0) (kDown) or beyond the last point is dropped.
template <typename Point>
void MergeIntoRuns(std::span<const ValueMass> values, const Point& point, Rounding rounding,
                   std::vector<double>& out) {
  std::size_t i = 0;  // the first point at or above the value
  std::size_t j = 0;
  double left = values.empty() ? 0 : values[0].mass;  // of value j
  const auto next = [&](std::size_t& at, double& rest) {
    if (++at < values.size()) rest = values[at].mass;
  };
  while (j < values.size()) {
    while (i < out.size() && point(i) < values[j].value) ++i;
    if (i == out.size()) {
      if (rounding == Rounding::kDown) {
        out.back() += left;
        for (++j; j < values.size(); ++j) out.back() += values[j].mass;
      }
      return;
    }
    const double goal = point(i);
    const double reach = i + 2 < out.size() ? point(i + 2) : goal;
    double deficit = 0;
    double mass = 0;
    std::size_t k = j;
    double rest = left;
    while (k < values.size() && values[k].value <= goal) {
      deficit += rest * (goal - values[k].value);
      mass += rest;
      next(k, rest);
    }
    SORDINO_CHECK(k > j, "a value of a run is not a number");
    const std::size_t first_above = k;
    const double rest_above = rest;
    const double mass_below = mass;
    const double needed = deficit;
    while (k < values.size() && deficit > 0 && values[k].value < reach) {
      const double gain = values[k].value - goal;
      const double take = std::min(rest, deficit / gain);
      deficit = take < rest ? 0 : deficit - take * gain;
      mass += take;
      rest -= take;
      if (rest > 0) break;
      next(k, rest);
    }
    if (deficit > 1e-13 * needed) {
      if (rounding == Rounding::kUp) {
        out[i] += mass_below;
      } else if (i > 0) {
        out[i - 1] += mass_below;
      }
      j = first_above;
      left = rest_above;
    } else {
      out[i] += mass;
      j = k;
      left = rest;
    }
  }
}

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_BALANCED_RUNS_H_
