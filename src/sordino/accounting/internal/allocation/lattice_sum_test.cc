#include "sordino/accounting/internal/allocation/lattice_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sordino/accounting/internal/allocation/lognormal_lattice.h"
#include "sordino/accounting/internal/atoms/balanced_runs.h"

namespace sordino {
namespace {

double BinomialMass(double n, double k, double p) {
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                  k * std::log(p) + (n - k) * std::log1p(-p));
}

TEST(LatticeSum, CoinsMakeABinomial) {
  constexpr double kP = 0.1;
  constexpr double kCount = 200;
  for (const double tilt : {0.0, 1.5, -1.0}) {
    for (const bool biased : {false, true}) {
      // Values 0 and 2.
      LatticeLaw law{0, 2, tilt, 0, {1 - kP, kP * std::exp(2 * tilt)}};
      const LatticeSum sum = SumOfCopies(law, 200, {0, 512, 1, 1}, biased);
      EXPECT_LT(sum.error, 1e-11);
      for (std::size_t i = 0; i < 512; ++i) {
        const double k = static_cast<double>(i);
        ASSERT_EQ(sum.Value(i), 2 * k);
        const double plain = k <= kCount ? BinomialMass(kCount, k, kP) : 0.0;
        const double truth = biased ? plain * (2 * k / kCount) : plain;
        const double tilted = truth > 0 ? truth * std::exp(tilt * 2 * k - sum.log_scale) : 0.0;
        ASSERT_NEAR(sum.mass[i], tilted, sum.error + 1e-12 * tilted) << tilt << biased << i;
      }
    }
  }
}

TEST(LatticeSum, WhatTheWindowFoldsIsInTheError) {
  constexpr double kP = 0.5;
  LatticeLaw law{0, 1, 0, 0, {1 - kP, kP}};
  // 64 points around the mean of 500, whose deviation is 11: the tails are folded in.
  const LatticeSum sum = SumOfCopies(law, 1000, {468, 64, 0.12, 0.12}, false);
  EXPECT_GT(sum.error, 1e-3);
  EXPECT_LT(sum.error, 1);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(sum.mass[i], BinomialMass(1000, sum.Value(i), kP), sum.error);
  }
}

TEST(BalancedRuns, KeepMassAndMeanAndShrinkConvexFunctions) {
  std::vector<ValueMass> values;
  values.reserve(400);
  for (int i = 0; i < 400; ++i) values.push_back({0.013 + 0.1 * i, std::exp(-0.02 * i)});
  std::vector<double> out(60, 0.0);
  MergeIntoRuns(
      std::span<const ValueMass>(values), [](std::size_t i) { return static_cast<double>(i); },
      Rounding::kDown, out);
  for (const double k : {3.3, 10.0, 17.7}) {
    double before = 0;
    double after = 0;
    for (const ValueMass& v : values) before += v.mass * std::max(0.0, v.value - k);
    for (std::size_t i = 0; i < out.size(); ++i) {
      after += out[i] * std::max(0.0, static_cast<double>(i) - k);
    }
    EXPECT_LE(after, before * (1 + 1e-12));
    EXPECT_GE(after, before * 0.99);
  }
  double mass = 0;
  double change = 0;
  for (const ValueMass& v : values) change += v.mass * v.value;
  for (std::size_t i = 0; i < out.size(); ++i) {
    mass += out[i];
    change -= out[i] * static_cast<double>(i);
  }
  double total = 0;
  for (const ValueMass& v : values) total += v.mass;
  EXPECT_NEAR(mass, total, 1e-12 * total);
  // Only the last run is rounded down.
  EXPECT_GE(change, -1e-10);
  EXPECT_LE(change, 0.1);
}

// E[(X - k)_+] in closed form, k > 0.
double Call(double s, double k) {
  const auto phi = [](double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); };
  const double d = -std::log(k) / s + 0.5 * s;
  return phi(d) - k * phi(d - s);
}

TEST(LogNormalRatio, CallsLieBetweenBelowAndAbove) {
  for (const double s : {0.1, 0.5, 1.0}) {
    const LogNormalRatio ratio(s, -9, 7 + s, false);
    const double spacing = 0.01 * s;
    const LatticeLaw above = ratio.Above(spacing, 0, 0);
    const LatticeLaw below = ratio.Below(spacing, 0, 0, Rounding::kDown);
    const auto call = [](const LatticeLaw& law, double k) {
      double sum = 0;
      for (std::size_t j = 0; j < law.mass.size(); ++j) {
        sum += law.mass[j] * std::max(0.0, law.Value(j) - k);
      }
      return sum;
    };
    for (const double u : {-1.0, 0.003, 0.5, 2.0, 4.0}) {
      const double k = ratio.Value(u + 0.5 * s);
      const double truth = Call(s, k);
      // What lies above the cap is left out: at most Pr[u > 7].
      EXPECT_GE(call(above, k), truth * (1 - 1e-11) - 2e-12) << s << ' ' << u;
      EXPECT_LE(call(below, k), truth * (1 + 1e-11)) << s << ' ' << u;
      EXPECT_LE(call(above, k) - call(below, k), 3e-3 * truth) << s << ' ' << u;
    }
  }
}

}  // namespace
}  // namespace sordino
