#include "sordino/accounting/internal/pairs/sampled_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/engines/exact_release.h"

namespace sordino {
namespace {

// The largest delta at e^epsilon = u of so many steps over a ladder of t, each chosen by what came
// before; `add` has the record on the other side.
double BestOverLosses(double range, double q, int steps, double u, bool add) {
  if (steps == 0) return std::max(0.0, 1 - u);
  double most = 0;
  constexpr int kLadder = 24;
  for (int i = 0; i <= kLadder; ++i) {
    const double t = range * i / kLadder;
    const double high = std::expm1(range - t) / std::expm1(range);
    double delta = 0;
    for (const auto& [chance, loss] : {std::pair(high, t), std::pair(1 - high, t - range)}) {
      const double ratio = 1 + q * std::expm1(loss);
      delta += add ? chance * BestOverLosses(range, q, steps - 1, u * ratio, add)
                   : chance * ratio * BestOverLosses(range, q, steps - 1, u / ratio, add);
    }
    most = std::max(most, delta);
  }
  return most;
}

TEST(SampledRange, DominatesAdaptiveChoicesAndIsCloseToThem) {
  for (const double range : {0.2, 2.5}) {
    for (const double q : {1e-4, 0.3, 1.0}) {
      for (const int steps : {1, 2, 3}) {
        const auto [remove, add] =
            SampledRangeUpper(range, q, static_cast<std::uint64_t>(steps), -60, Effort::kFull);
        const double top = steps * std::log1p(q * std::expm1(range));
        for (const double share : {-0.3, 0.0, 0.1, 0.4, 0.8}) {
          const double u = std::exp(share * top);
          const double there = BestOverLosses(range, q, steps, u, false);
          const double back = BestOverLosses(range, q, steps, u, true);
          const double to = std::exp(ExactLogDelta(remove, share * top));
          const double from = std::exp(ExactLogDelta(add, share * top));
          const std::string where = std::to_string(range) + " " + std::to_string(q) + " " +
                                    std::to_string(steps) + " " + std::to_string(share);
          EXPECT_LE(there, to * (1 + 1e-9) + 1e-15) << where;
          EXPECT_LE(back, from * (1 + 1e-9) + 1e-15) << where;
          EXPECT_GE(there, to * 0.99 - 2e-3 * q * range) << where;
          EXPECT_GE(back, from * 0.99 - 2e-3 * q * range) << where;
        }
      }
    }
  }
}

// Where e^loss leaves the range of doubles no loss is lost: another method bounds epsilon then.
TEST(SampledRange, HugeLossesContradictNothing) {
  for (const std::string text : {"add-remove: 256*poisson(1, exponential(10))",
                                 "add-remove: 256*poisson(0.5, exponential(12))",
                                 "zero-out: 100*poisson(0.99, exponential(25))",
                                 "add-remove: 40*poisson(0.5, exponential(29))"}) {
    const Interval epsilon = Account(Event::Parse(text), Delta(1e-6)).value;
    EXPECT_GT(epsilon.lower, 700) << text;
    EXPECT_GE(epsilon.upper, epsilon.lower) << text;
  }
}

TEST(SampledRange, NarrowsTheIntervalOfManySteps) {
  for (const std::string text : {"zero-out: 16598*poisson(0.002, exponential(0.296))",
                                 "add-remove: 925*fixed(0.118, exponential(1.1))",
                                 "add-remove: 5090*poisson(0.24, exponential(1.77))"}) {
    const AccountReport report = Account(Event::Parse(text), Delta(1e-6));
    EXPECT_LT(report.value.upper - report.value.lower, 0.02 * report.value.upper) << text;
  }
}

}  // namespace
}  // namespace sordino
