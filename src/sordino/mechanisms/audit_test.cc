// The mechanisms as an auditor sees them: neighbouring datasets, many releases, and the epsilon
// that the two samples prove. It may not exceed what was promised, and, so that the audit is known
// to have power, it must come close to it where the worst event is known.
//
// Every proven epsilon below is wrong with probability at most 2e-9 (two Clopper-Pearson bounds at
// 1e-9 each), and the seeds are fixed.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sordino/accounting/gaussian.h"
#include "sordino/mechanisms/additive_mechanism.h"
#include "sordino/mechanisms/quantile.h"
#include "sordino/mechanisms/streamed_statistic.h"
#include "sordino/mechanisms/testing/test_support.h"

namespace sordino {
namespace {

constexpr double kAlpha = 1e-9;

std::vector<double> Sample(const StreamedStatistic& statistic, int draws, std::uint64_t seed) {
  InsecureSeededGenerator generator(seed);
  std::vector<double> sample;
  sample.reserve(static_cast<std::size_t>(draws));
  for (int i = 0; i < draws; ++i) sample.push_back(statistic.Finish(generator).front().value());
  return sample;
}

template <typename Mechanism>
std::vector<double> Sample(const Mechanism& mechanism, double value, int draws,
                           std::uint64_t seed) {
  InsecureSeededGenerator generator(seed);
  std::vector<double> sample;
  sample.reserve(static_cast<std::size_t>(draws));
  for (int i = 0; i < draws; ++i) sample.push_back(mechanism(value, generator).value());
  return sample;
}

// The worst event of the discrete Laplace is {x >= n + 1}: probabilities 0.269 and 0.731 at
// epsilon 1. With 1.5e6 draws a side the proven epsilon lies about 0.012 below the truth, so noise
// scaled by 0.97 would prove more than 1.
TEST(Audit, CountProvesNearlyItsEpsilonAndNoMore) {
  const NoiseBudget budget{.epsilon = Epsilon(1)};
  const auto without = MakeCount({}, budget);
  const auto with = MakeCount({}, budget);
  for (int i = 0; i < 10; ++i) {
    without->Add(0, 0);
    with->Add(0, 0);
  }
  with->Add(0, 0);
  const double proven =
      ProvenEpsilon(Sample(*with, 1'500'000, 1), Sample(*without, 1'500'000, 2), 11, 0, kAlpha);
  EXPECT_LE(proven, 1);
  EXPECT_GE(proven, 0.97);
}

TEST(Audit, MutatedLaplaceNoiseIsCaught) {
  // A mechanism that believes the sensitivity to be 0.95 of what it is (noise 5% too small).
  const LaplaceMechanism honest(L1Sensitivity(1), Epsilon(1));
  const LaplaceMechanism mutant(L1Sensitivity(0.95), Epsilon(1));
  constexpr int kDraws = 1'000'000;
  EXPECT_LE(ProvenEpsilon(Sample(honest, 1, kDraws, 3), Sample(honest, 0, kDraws, 4), 1, 0, kAlpha),
            1);
  EXPECT_GT(ProvenEpsilon(Sample(mutant, 1, kDraws, 3), Sample(mutant, 0, kDraws, 4), 1, 0, kAlpha),
            1);
}

TEST(Audit, GaussianKeepsItsWholeCurve) {
  const Epsilon epsilon(1);
  const Delta delta(1e-2);
  const GaussianMechanism mechanism(L2Sensitivity(1), epsilon, delta);
  constexpr int kDraws = 300'000;
  const auto p = Sample(mechanism, 1, kDraws, 5);
  const auto q = Sample(mechanism, 0, kDraws, 6);
  const double mu = 1 / mechanism.noise_scale();
  for (const double at : {0.1, 0.5, 1.0, 1.5}) {
    // The worst event of the pair at epsilon `at`: the privacy loss exceeds it.
    const double threshold = at / (mu * mu) + 0.5;
    const double curve = std::exp(GaussianLogDelta(mu, at));
    const double proven = ProvenEpsilon(p, q, threshold, curve, kAlpha);
    EXPECT_LE(proven, at) << at;
  }
  // Power: without the delta the event proves more than epsilon.
  EXPECT_GT(ProvenEpsilon(p, q, 1 / (mu * mu) + 0.5, 0, kAlpha), 1);
}

TEST(Audit, MeanOfAddedRowsKeepsItsEpsilon) {
  // One row at the upper bound joins few at the lower one: the most that a mean can move.
  const Bounds bounds(0, 1);
  const NoiseBudget budget{.epsilon = Epsilon(1)};
  for (const int rows : {0, 1, 4}) {
    const auto without = MakeMean(bounds, {}, budget);
    const auto with = MakeMean(bounds, {}, budget);
    for (int i = 0; i < rows; ++i) {
      without->Add(0, 0);
      with->Add(0, 0);
    }
    with->Add(0, 1);
    const auto p = Sample(*with, 20'000, 7);
    const auto q = Sample(*without, 20'000, 8);
    for (const double threshold : {0.1, 0.3, 0.5, 0.500001, 0.7, 0.999}) {
      EXPECT_LE(ProvenEpsilon(p, q, threshold, 0, kAlpha), 1) << rows << " " << threshold;
    }
  }
}

TEST(Audit, SumsOfReplacedRowsProveNearlyTheirEpsilon) {
  const NoiseBudget budget{.epsilon = Epsilon(1)};
  const PrivacyUnit unit{.adjacency = Adjacency::kReplaceOne, .count_is_public = true};
  const auto low = MakeSum(Bounds(-2, 3), unit, budget);
  const auto high = MakeSum(Bounds(-2, 3), unit, budget);
  for (const double x : {0.3, 1.7}) {
    low->Add(0, x);
    high->Add(0, x);
  }
  low->Add(0, -2);
  high->Add(0, 3);
  const double proven =
      ProvenEpsilon(Sample(*high, 400'000, 9), Sample(*low, 400'000, 10), 0.3 + 1.7 + 3, 0, kAlpha);
  EXPECT_LE(proven, 1);
  EXPECT_GE(proven, 0.93);
}

TEST(Audit, MedianKeepsItsEpsilon) {
  const NoiseBudget budget{.epsilon = Epsilon(2)};
  const auto without = MakeQuantile(0.5, Bounds(0, 1), {}, budget);
  const auto with = MakeQuantile(0.5, Bounds(0, 1), {}, budget);
  for (const double x : {0.2, 0.8}) {
    without->Add(0, x);
    with->Add(0, x);
  }
  with->Add(0, 0.99);
  const auto p = Sample(*with, 1200, 11);
  const auto q = Sample(*without, 1200, 12);
  for (const double threshold : {0.1, 0.25, 0.5, 0.8, 0.85, 0.95}) {
    EXPECT_LE(ProvenEpsilon(p, q, threshold, 0, kAlpha), 2) << threshold;
    EXPECT_LE(ProvenEpsilon(q, p, threshold, 0, kAlpha), 2) << threshold;
  }
}

// Values one rounding apart must not be told apart by the grid that their releases lie on: the set
// of possible outputs is the same, and so is the parity of the lowest bit. 2e5 draws a side; the
// difference of two proportions near 1/2 has a standard error of 0.0016, 5 of them 0.008 (6e-7).
TEST(Audit, LowBitsOfNeighbouringValuesLookTheSame) {
  const LaplaceMechanism mechanism(L1Sensitivity(1), Epsilon(0.5));
  const auto odd = [&](double value, std::uint64_t seed) {
    double count = 0;
    for (const double x : Sample(mechanism, value, 200'000, seed)) {
      count += std::fmod(std::abs(x / mechanism.granularity()), 2) == 1 ? 1 : 0;
    }
    return count / 200'000;
  };
  EXPECT_NEAR(odd(0.1, 13), odd(0.1 + 0.2, 14), 0.008);
  EXPECT_NEAR(odd(1e-9, 15), 0.5, 0.006);
}

}  // namespace
}  // namespace sordino
