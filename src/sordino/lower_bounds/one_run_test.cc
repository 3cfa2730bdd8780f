#include "sordino/lower_bounds/one_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/error.h"
#include "sordino/lower_bounds/binomial.h"

namespace sordino {
namespace {

TEST(OneRun, PValuesAreTheReferenceValues) {
  EXPECT_NEAR(OneRunPValue({1000, 100, 100}, Epsilon(1), Delta(0)) / 2.484378556e-14, 1, 1e-9);
  EXPECT_NEAR(OneRunPValue({1000, 100, 90}, Epsilon(1), Delta(1e-5)) / 8.41288561e-4, 1, 1e-9);
  EXPECT_NEAR(OneRunPValue({1000, 100, 95}, Epsilon(2), Delta(1e-5)) / .01782463464, 1, 1e-9);
}

TEST(OneRun, BoundsAreTheReferenceValues) {
  const struct {
    OneRun run;
    double one_run;
    double gaussian;
  } rows[] = {{{1000, 100, 100}, 3.465376, 5.549028},
              {{1000, 200, 190}, 2.393618, 3.916104},
              {{1000, 1000, 700}, .731741, 1.371980},
              {{5000, 5000, 5000}, 7.283900, 14.997257}};
  for (const auto& row : rows) {
    EXPECT_NEAR(OneRunEpsilon(row.run, Delta(1e-5), .05), row.one_run, 2e-6);
    EXPECT_NEAR(OneRunGaussian(row.run, Delta(1e-5), .05).epsilon, row.gaussian, 1e-5);
  }
}

// The maximum over i by looking at every i.
TEST(OneRun, PValueIsThatOfTheTheoremForEveryOutcome) {
  std::mt19937_64 random(6);
  for (int trial = 0; trial < 300; ++trial) {
    const std::int64_t m = std::uniform_int_distribution<std::int64_t>(1, 400)(random);
    const std::int64_t r = std::uniform_int_distribution<std::int64_t>(1, m)(random);
    const std::int64_t v = std::uniform_int_distribution<std::int64_t>(1, r)(random);
    const double epsilon = std::uniform_real_distribution<double>(0, 4)(random);
    const double delta = std::exp(std::uniform_real_distribution<double>(-20, -3)(random));
    const double q = 1 / (1 + std::exp(-epsilon));
    const double beta = BinomialTail(r, v, q);
    double alpha = 0;
    double sum = 0;
    for (std::int64_t i = 1; i <= v; ++i) {
      sum += BinomialMass(r, v - i, q);
      alpha = std::max(alpha, sum / static_cast<double>(i));
    }
    const double p = std::min(1.0, beta + 2 * static_cast<double>(m) * delta * alpha);
    EXPECT_NEAR(OneRunPValue({m, r, v}, Epsilon(epsilon), Delta(delta)), p, 1e-8 * p)
        << m << " " << r << " " << v;
  }
}

// Randomised response of epsilon on every canary is exactly epsilon-DP and attains the theorem: the
// bound is above the truth in at most 5 % of runs.
TEST(OneRun, IsSeldomAboveTheTruth) {
  std::mt19937_64 random(7);
  const double epsilon = 1.2;
  const double q = 1 / (1 + std::exp(-epsilon));
  std::binomial_distribution<std::int64_t> right(500, q);
  int above = 0;
  const int runs = 2000;
  double sum = 0;
  for (int i = 0; i < runs; ++i) {
    const double bound = OneRunEpsilon({500, 500, right(random)}, Delta(0), .05);
    above += bound > epsilon ? 1 : 0;
    sum += bound;
  }
  EXPECT_LE(above, 0.05 * runs + 3 * std::sqrt(runs * 0.05 * 0.95));
  EXPECT_GT(sum / runs, 0.7 * epsilon);
}

// Gaussian noise on each canary's coin, guessed by its sign.
TEST(OneRun, GaussianBoundIsSeldomAboveTheTruth) {
  std::mt19937_64 random(8);
  const double mu = 1.5;
  const double accuracy = 0.5 * std::erfc(-mu / 2 / std::sqrt(2.0));
  std::binomial_distribution<std::int64_t> right(200, accuracy);
  int above = 0;
  const int runs = 300;
  for (int i = 0; i < runs; ++i) {
    above += OneRunGaussian({200, 200, right(random)}, Delta(1e-5), .05).mu > mu ? 1 : 0;
  }
  EXPECT_LE(above, 0.05 * runs + 3 * std::sqrt(runs * 0.05 * 0.95));
}

TEST(OneRun, NothingIsShownByChance) {
  EXPECT_EQ(OneRunEpsilon({1000, 0, 0}, Delta(1e-5), .05), 0);
  EXPECT_EQ(OneRunEpsilon({1000, 100, 50}, Delta(1e-5), .05), 0);
  EXPECT_EQ(OneRunGaussian({1000, 100, 40}, Delta(1e-5), .05).mu, 0);
  EXPECT_EQ(OneRunEpsilon({1, 1, 1}, Delta(0), .05), 0);
}

TEST(OneRun, LargeRunsAreAnswered) {
  const OneRun run{10'000'000, 10'000'000, 7'000'000};
  const double epsilon = OneRunEpsilon(run, Delta(1e-9), .05);
  EXPECT_GT(epsilon, 0.84);
  EXPECT_LT(epsilon, std::log(7.0 / 3));
}

// The recursion of the theorem to its last guess.
bool RejectsToTheEnd(const OneRun& run, double mu, double significance) {
  const auto guesses = static_cast<double>(run.guesses);
  const double share = guesses / static_cast<double>(run.canaries);
  const auto right = static_cast<double>(run.correct);
  if (run.correct == 0) return false;
  double r = significance * share * right / guesses;
  double h = significance * share * (guesses - right) / guesses;
  for (std::int64_t i = run.correct - 1; i >= 0 && r + h <= share; --i) {
    const double moved = UpperTail(UpperQuantile(std::min(r, 1.0)) + mu);
    if (!(moved > h)) break;
    const auto left = static_cast<double>(i);
    r += left / (guesses - left) * (moved - h);
    h = moved;
  }
  return r + h > share;
}

TEST(OneRun, GaussiansAreRejectedAsByTheWholeRecursion) {
  std::mt19937_64 random(12);
  int rejected = 0;
  for (int i = 0; i < 3000; ++i) {
    OneRun run;
    run.canaries = 1 + static_cast<std::int64_t>(random() % 2000);
    run.guesses =
        1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(run.canaries));
    run.correct = run.guesses / 2 + static_cast<std::int64_t>(
                                        random() % static_cast<std::uint64_t>(run.guesses / 2 + 1));
    const double mu = i % 3 == 0 ? 0 : static_cast<double>(random() % 1000) / 300;
    const double significance = i % 2 == 0 ? .05 : .5;
    const bool expected = RejectsToTheEnd(run, mu, significance);
    EXPECT_EQ(OneRunRejectsGaussian(run, mu, significance), expected)
        << run.canaries << ' ' << run.guesses << ' ' << run.correct << ' ' << mu;
    rejected += expected ? 1 : 0;
  }
  EXPECT_GT(rejected, 300);
  EXPECT_LT(rejected, 2700);
  // Half of ten million are right: nothing is shown, and not after ten million steps.
  EXPECT_EQ(OneRunGaussian({10'000'000, 10'000'000, 5'000'001}, Delta(1e-5), .05).mu, 0);
}

TEST(OneRun, RefusesOutcomesThatCannotBe) {
  EXPECT_THROW(CheckOneRun({0, 0, 0}), Error);
  EXPECT_THROW(CheckOneRun({10, 11, 1}), Error);
  EXPECT_THROW(CheckOneRun({10, 5, 6}), Error);
  EXPECT_THROW(CheckOneRun({10, 5, -1}), Error);
  EXPECT_THROW(OneRunEpsilon({10, 5, 5}, Delta(0), 0), Error);
  EXPECT_THROW(OneRunEpsilon({10, 5, 5}, Delta(0), 1), Error);
}

}  // namespace
}  // namespace sordino
