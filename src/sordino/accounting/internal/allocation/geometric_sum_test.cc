#include "sordino/accounting/internal/allocation/geometric_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "sordino/accounting/accountant.h"

namespace sordino {
namespace {

double MeanOf(const std::vector<ValueMass>& law, double strike) {
  double mean = 0;
  for (const ValueMass& v : law) mean += v.mass * std::max(0.0, v.value - strike);
  return mean;
}

TEST(GeometricSum, BoundsEncloseAndKeepTheMean) {
  for (const double s : {0.3, 2.0, 6.0}) {
    for (const std::uint64_t t : {2, 3, 7, 1000}) {
      const GeometricSums sums = SumOnPoints(t, {s, -12, s + 12}, Effort::kFull);
      const double batches = static_cast<double>(t);
      EXPECT_NEAR(MeanOf(sums.upper, 0) / batches, 1, 1e-8) << s << " " << t;
      EXPECT_NEAR(MeanOf(sums.lower, 0) / batches, 1, 1e-8) << s << " " << t;
      for (const double strike : {0.1, 0.9, 1.0, 2.0, 50.0}) {
        const double upper = MeanOf(sums.upper, strike * batches) / batches;
        const double lower = MeanOf(sums.lower, strike * batches) / batches;
        EXPECT_LE(lower, upper * (1 + 1e-12)) << s << " " << t << " " << strike;
        const GeometricSums quick = SumOnPoints(t, {s, -12, s + 12}, Effort::kQuick);
        EXPECT_LE(lower, MeanOf(quick.upper, strike * batches) / batches * (1 + 1e-12));
        EXPECT_LE(MeanOf(quick.lower, strike * batches) / batches, upper * (1 + 1e-12));
      }
    }
  }
}

// E[(X - k)_+] of one log-normal ratio has a closed form; t = 1 is the law itself.
TEST(GeometricSum, OneCopyHasTheClosedForm) {
  const auto normal = [](double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); };
  for (const double s : {0.5, 4.0}) {
    const GeometricSums sums = SumOnPoints(1, {s, -12, s + 12}, Effort::kFull);
    for (const double k : {0.01, 1.0, 30.0}) {
      const double at = std::log(k) / s + 0.5 * s;
      const double exact = normal(s - at) - k * normal(-at);
      EXPECT_LE(MeanOf(sums.lower, k), exact * (1 + 1e-9));
      EXPECT_GE(MeanOf(sums.upper, k), exact * (1 - 1e-9));
      EXPECT_NEAR(MeanOf(sums.upper, k) / exact, 1, 1e-3);
      EXPECT_NEAR(MeanOf(sums.lower, k) / exact, 1, 1e-3);
    }
  }
}

// delta of two batches with the record in the first dataset, over the plane of the two outputs.
double DeltaOfTwoBatches(double sigma, double epsilon) {
  constexpr double kStep = 0.02;
  double delta = 0;
  for (double a = -8; a <= 8; a += kStep) {
    for (double b = -8; b <= 8; b += kStep) {
      const double first = (1 + 2 * sigma * a) / (2 * sigma * sigma);
      const double second = (2 * sigma * b - 1) / (2 * sigma * sigma);
      const double top = std::max(first, second);
      const double loss = top + std::log1p(std::exp(std::min(first, second) - top)) - std::log(2);
      if (loss > epsilon) delta -= std::expm1(epsilon - loss) * std::exp(-0.5 * (a * a + b * b));
    }
  }
  return delta * kStep * kStep / (2 * std::numbers::pi);
}

TEST(GeometricSum, LittleNoiseAgreesWithTheIntegral) {
  for (const double sigma : {0.12, 0.25, 0.35}) {
    const Event event = Event::Allocation(2, Event::Gaussian(NoiseMultiplier(sigma)));
    for (const double sd : {1.0, 3.0}) {
      const double epsilon = 0.5 / (sigma * sigma) - std::log(2) + sd / sigma;
      const Interval delta = AccountDelta(event, Epsilon(epsilon)).value;
      const double exact = DeltaOfTwoBatches(sigma, epsilon);
      EXPECT_LE(delta.lower, exact * 1.001) << sigma << " " << sd;
      EXPECT_GE(delta.upper, exact * 0.999) << sigma << " " << sd;
      EXPECT_GT(delta.lower, 0.9 * delta.upper) << sigma << " " << sd;
    }
  }
}

TEST(GeometricSum, HardAllocationsAreNarrow) {
  const auto width = [](const std::string& text, double delta) {
    const Interval value = Account(Event::Parse(text), Delta(delta)).value;
    return 1 - value.lower / value.upper;
  };
  EXPECT_LT(width("add-remove: allocation(5, gaussian(0.4))", 1e-6), 0.01);
  EXPECT_LT(width("add-remove: allocation(100000, gaussian(0.5))", 1e-8), 0.01);
  EXPECT_LT(width("zero-out: 58*allocation(90, gaussian(0.255))", 0.005), 0.02);
  EXPECT_LT(width("zero-out: 20*allocation(35, gaussian(0.855))", 1.4e-83), 0.01);
}

}  // namespace
}  // namespace sordino
