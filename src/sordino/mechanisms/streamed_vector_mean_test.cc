#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/not_a_number.h"
#include "sordino/mechanisms/integer_noise.h"
#include "sordino/mechanisms/streamed_statistic.h"

namespace sordino {
namespace {

constexpr std::size_t kD = 3;
constexpr double kTau = 1.5;
using Vectors = std::vector<std::pair<std::size_t, std::vector<double>>>;  // group and row

double CountWeightOf(std::size_t d) { return std::pow(static_cast<double>(d), -0.25); }

// What the noise was calibrated to for one row, by the header.
double RowNorm(std::size_t d, double tau, NoiseKind noise) {
  const double w = CountWeightOf(d);
  return noise == NoiseKind::kLaplace ? tau * (std::sqrt(static_cast<double>(d)) + w)
                                      : tau * std::hypot(1, w);
}

// The noised totals of every group, in the units of the columns, recovered from the values and the
// noise scale of a release: (sum of clipped rows, w tau times the number of rows).
std::vector<double> Totals(const Vectors& rows, const PrivacyUnit& unit, const NoiseBudget& budget,
                           double multiplier, double allowed) {
  const auto mean = MakeVectorMean(kD, ClipNorm(kTau), unit, budget);
  for (const auto& [group, row] : rows) mean->AddVector(group, row);
  InsecureSeededGenerator generator(5);
  std::vector<double> totals;
  for (const Release& release : mean->Finish(generator)) {
    double steepest = 1;
    const double weight = CountWeightOf(kD) * kTau;
    if (!unit.count_is_public) {
      for (const double value : release.values) {
        steepest = std::max(steepest, std::hypot(1, value / weight));
      }
    }
    const double n = allowed * multiplier * steepest / release.noise_scale;
    for (const double value : release.values) totals.push_back(value * n);
    if (!unit.count_is_public) totals.push_back(weight * n);
  }
  return totals;
}

// Record and replay, as in streamed_statistic_test.cc: neighbours differ by no more than what the
// noise was calibrated to, and some by most of it.
TEST(VectorMean, NeighboursDifferByAtMostTheCalibratedSensitivity) {
  const std::vector<std::vector<double>> candidates = {
      {9, 9, 9},    {-9, -9, -9},      {0.1, 0, 0},        {0, 0, 0},
      {kNan, 1, 1}, {0, kInfinity, 1}, {1e308, -1e308, 0}, {1.5, 0, 0}};
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0, 0.3);
  Vectors base;
  for (int i = 0; i < 400; ++i) {
    base.push_back(
        {static_cast<std::size_t>(i % 2), {normal(random), normal(random), normal(random)}});
  }
  for (const NoiseKind noise : {NoiseKind::kLaplace, NoiseKind::kGaussian}) {
    const NoiseBudget budget{.epsilon = Epsilon(5), .delta = Delta(1e-5), .noise = noise};
    for (const bool replace : {false, true}) {
      for (const bool is_public : {false, true}) {
        if (is_public && !replace) continue;
        const std::size_t groups = is_public ? 1 : 2;
        const PrivacyUnit unit{
            .adjacency = replace ? Adjacency::kReplaceOne : Adjacency::kAddRemove,
            .groups = groups,
            .count_is_public = is_public};
        Vectors start = base;
        for (auto& [group, row] : start) group %= groups;
        const double allowed =
            is_public ? 2 * kTau * (noise == NoiseKind::kLaplace ? std::sqrt(3.0) : 1)
            : replace ? (noise == NoiseKind::kLaplace ? 2 * RowNorm(kD, kTau, noise) : 2 * kTau)
                      : RowNorm(kD, kTau, noise);
        const double multiplier = GridNoiseMultiplier(noise, budget.epsilon, budget.delta,
                                                      groups * (kD + (is_public ? 0 : 1)));
        double widest = 0;
        for (const auto& a : candidates) {
          for (const auto& b : candidates) {
            Vectors one = start;
            Vectors two = start;
            one.push_back({0, a});
            if (replace) two.push_back({&b == &candidates[7] ? groups - 1 : 0, b});
            const auto x = Totals(one, unit, budget, multiplier, allowed);
            const auto y = Totals(two, unit, budget, multiplier, allowed);
            double l1 = 0;
            double l2 = 0;
            for (std::size_t i = 0; i < x.size(); ++i) {
              l1 += std::abs(x[i] - y[i]);
              l2 = std::hypot(l2, x[i] - y[i]);
            }
            widest = std::max(widest, noise == NoiseKind::kLaplace ? l1 : l2);
          }
        }
        EXPECT_LE(widest, allowed * (1 + 1e-6)) << replace << is_public;
        EXPECT_GE(widest, allowed * 0.7) << replace << is_public;
      }
    }
  }
}

// Coverage at 90 % over 4,000 releases of three coordinates: misses of one are binomial around at
// most 400 with standard deviation 19; 5 of them is 95 (false alarm 6e-7).
TEST(VectorMean, IntervalsCoverAtLeastAsOftenAsTheySay) {
  InsecureSeededGenerator generator(11);
  for (const NoiseKind noise : {NoiseKind::kLaplace, NoiseKind::kGaussian}) {
    for (const bool is_public : {false, true}) {
      const PrivacyUnit unit{
          .adjacency = is_public ? Adjacency::kReplaceOne : Adjacency::kAddRemove,
          .count_is_public = is_public};
      const NoiseBudget budget{
          .epsilon = Epsilon(0.5), .delta = Delta(1e-5), .noise = noise, .confidence = 0.9};
      const auto mean = MakeVectorMean(kD, ClipNorm(kTau), unit, budget);
      std::vector<double> truth(kD, 0);
      constexpr int kRows = 300;
      for (int i = 0; i < kRows; ++i) {
        const std::vector<double> row = {1.0, -0.5 + 0.001 * i, i % 2 == 0 ? 0.1 : -0.1};
        for (std::size_t k = 0; k < kD; ++k) truth[k] += row[k] / kRows;
        mean->AddVector(0, row);
      }
      std::vector<int> misses(kD, 0);
      for (int i = 0; i < 4000; ++i) {
        const Release release = mean->Finish(generator).front();
        for (std::size_t k = 0; k < kD; ++k) {
          const Interval& range = release.intervals[k];
          misses[k] += truth[k] < range.lower || truth[k] > range.upper ? 1 : 0;
          ASSERT_LE(range.lower, release.values[k]);
          ASSERT_GE(range.upper, release.values[k]);
        }
      }
      for (const int miss : misses) {
        EXPECT_LE(miss, 495);
        EXPECT_GE(miss, 250);
      }
    }
  }
}

// The header's error for a mean of norm tau, which is below that of replace-one with a public n.
TEST(VectorMean, HasThePredictedErrorWithAPrivateNumberOfRows) {
  constexpr std::size_t kDimension = 16;
  constexpr int kRows = 2000;
  const NoiseBudget budget{
      .epsilon = Epsilon(1), .delta = Delta(1e-6), .noise = NoiseKind::kGaussian};
  const auto mean = MakeVectorMean(kDimension, ClipNorm(1), {}, budget);
  std::vector<double> row(kDimension, 0);
  row[2] = 1;
  for (int i = 0; i < kRows; ++i) mean->AddVector(0, row);
  InsecureSeededGenerator generator(12);
  constexpr int kTrials = 4000;
  double square = 0;
  for (int i = 0; i < kTrials; ++i) {
    // Before values are kept in [-tau, tau], which can only lessen the error of the one at its end.
    const Release release = mean->Finish(generator).front();
    for (std::size_t k = 0; k < kDimension; ++k) {
      if (k != 2) square += release.values[k] * release.values[k];
    }
  }
  const double m =
      GridNoiseMultiplier(NoiseKind::kGaussian, budget.epsilon, budget.delta, kDimension + 1);
  const double one = m * m * (1 + 1 / std::sqrt(16.0)) / (1.0 * kRows * kRows);
  // 15 of 16 coordinates; a relative standard error of sqrt(2 / 60,000) = 0.6 %.
  EXPECT_NEAR(square / kTrials, 15 * one, 0.03 * 15 * one);
  EXPECT_NEAR((16 + 4) * (1 + 1 / 4.0), std::pow(std::sqrt(16.0) + 1, 2), 1e-12);
}

TEST(VectorMean, NoRowsMakeHarmlessReleases) {
  InsecureSeededGenerator generator(13);
  for (const bool is_public : {false, true}) {
    const PrivacyUnit unit{.adjacency = is_public ? Adjacency::kReplaceOne : Adjacency::kAddRemove,
                           .count_is_public = is_public};
    const auto mean = MakeVectorMean(
        2, ClipNorm(1), unit,
        {.epsilon = Epsilon(1), .delta = Delta(1e-6), .noise = NoiseKind::kGaussian});
    const Release release = mean->Finish(generator).front();
    for (std::size_t k = 0; k < 2; ++k) {
      EXPECT_LE(std::abs(release.values[k]), 1);
      EXPECT_GE(release.intervals[k].lower, -1);
      EXPECT_LE(release.intervals[k].upper, 1);
    }
  }
  EXPECT_THROW(MakeVectorMean(0, ClipNorm(1), {}, {.epsilon = Epsilon(1)}), Error);
}

TEST(VectorMean, CostsOneGaussianMechanismOrOnePureGuarantee) {
  const NoiseBudget gaussian{
      .epsilon = Epsilon(1), .delta = Delta(1e-6), .noise = NoiseKind::kGaussian};
  const auto mean = MakeVectorMean(2, ClipNorm(1), {.groups = 3}, gaussian);
  EXPECT_EQ(mean->event(),
            Event::Gaussian(NoiseMultiplier(GridNoiseMultiplier(
                                NoiseKind::kGaussian, gaussian.epsilon, gaussian.delta, 9)),
                            Adjacency::kAddRemove));
  EXPECT_EQ(mean->failure(), NoiseFailure(NoiseKind::kGaussian, 9));
  EXPECT_EQ(MakeVectorMean(2, ClipNorm(1), {}, {.epsilon = Epsilon(0.5)})->event(),
            Event::Pure(Epsilon(0.5), Adjacency::kAddRemove));
}

}  // namespace
}  // namespace sordino
