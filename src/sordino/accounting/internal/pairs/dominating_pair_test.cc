#include "sordino/accounting/internal/pairs/dominating_pair.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/accounting/testing/engine_test_support.h"

namespace sordino {
namespace {

using testing::Sampled;

std::vector<Event> Releases(Adjacency adjacency) {
  std::vector<Event> leaves = {Event::Gaussian(NoiseMultiplier(1.3), adjacency),
                               Event::Laplace(NoiseMultiplier(0.7), adjacency),
                               Event::DiscreteGaussian(2.5, 1, adjacency),
                               Event::DiscreteLaplace(1.5, 2, adjacency),
                               Event::Approximate(Epsilon(0.8), Delta(1e-4), adjacency)};
  std::vector<Event> all = leaves;
  for (const Event& leaf : leaves) {
    for (const double rate : {1e-3, 0.3}) {
      all.push_back(Event::Poisson(SamplingRate(rate), leaf));
      all.push_back(Event::Fixed(SamplingRate(rate), leaf));
    }
  }
  return all;
}

double LogDelta(const std::vector<LossPair>& pairs, double epsilon) {
  double largest = -kInfinity;
  for (const LossPair& pair : pairs) largest = std::max(largest, ExactLogDelta(pair, epsilon));
  return largest;
}

TEST(DominatingPair, EveryPairIsAPairOfDistributions) {
  for (const auto adjacency : {Adjacency::kAddRemove, Adjacency::kReplaceOne}) {
    for (const Event& event : Releases(adjacency)) {
      const DominatingPairs pairs = DominatingPairsOf(event);
      for (const std::vector<LossPair>* list : {&pairs.upper, &pairs.attained()}) {
        for (const LossPair& pair : *list) {
          if (pair.gaussian_mu > 0) continue;
          // delta(epsilon) tends to P's mass at epsilon = -infinity, and delta(e) >= 1 - e^e.
          EXPECT_NEAR(ExactLogDelta(pair, -200), 0, 1e-11) << event.ToString();
          for (const double epsilon : {-2.0, -0.5}) {
            EXPECT_GE(std::exp(ExactLogDelta(pair, epsilon)), -std::expm1(epsilon) - 1e-12)
                << event.ToString();
          }
        }
      }
    }
  }
}

TEST(DominatingPair, LowerIsDominatedByUpper) {
  for (const auto adjacency : {Adjacency::kAddRemove, Adjacency::kReplaceOne}) {
    for (const Event& event : Releases(adjacency)) {
      const DominatingPairs pairs = DominatingPairsOf(event);
      if (pairs.upper.empty()) continue;
      for (const double epsilon : {0.0, 1e-3, 0.1, 0.6, 2.0}) {
        EXPECT_LE(LogDelta(pairs.attained(), epsilon), LogDelta(pairs.upper, epsilon) + 1e-11)
            << event.ToString() << " " << epsilon;
      }
    }
  }
}

// Sampling a record with probability one is not sampling.
TEST(DominatingPair, FullSamplingIsTheMechanismItself) {
  for (const Event& leaf :
       {Event::Gaussian(NoiseMultiplier(1.3)), Event::Laplace(NoiseMultiplier(0.7)),
        Event::DiscreteGaussian(2.5, 1), Event::DiscreteLaplace(1.5, 2)}) {
    const auto plain = DominatingPairsOf(leaf);
    const auto sampled = DominatingPairsOf(Event::Poisson(SamplingRate(1), leaf));
    for (const double epsilon : {0.0, 0.1, 0.6, 1.2}) {
      const double exact = LogDelta(plain.upper, epsilon);
      EXPECT_NEAR(LogDelta(sampled.upper, epsilon), exact, 1e-10) << leaf.ToString();
    }
  }
}

// Amplification by sampling (Balle, Barthe, Gaboardi 2018): for the remove direction
// delta'(log(1 + q(e^eps - 1))) = q delta(eps), with equality.
TEST(DominatingPair, SamplingAmplifiesExactlyAsTheTheoremSays) {
  for (const Event& leaf :
       {Event::Gaussian(NoiseMultiplier(1.3)), Event::Laplace(NoiseMultiplier(0.7)),
        Event::DiscreteGaussian(2.5, 1), Event::DiscreteLaplace(1.5, 2),
        Event::Approximate(Epsilon(0.8), Delta(1e-4))}) {
    const auto plain = DominatingPairsOf(leaf);
    for (const double rate : {1e-6, 0.01, 0.5}) {
      const auto sampled = DominatingPairsOf(Event::Poisson(SamplingRate(rate), leaf));
      for (const double epsilon : {0.01, 0.5, 0.75}) {
        const double amplified = std::log1p(rate * std::expm1(epsilon));
        const double delta = rate * std::exp(LogDelta(plain.upper, epsilon));
        EXPECT_NEAR(std::exp(ExactLogDelta(sampled.upper[0], amplified)), delta,
                    1e-9 * delta + 1e-16 * rate)
            << leaf.ToString() << " " << rate << " " << epsilon;
      }
    }
  }
}

TEST(DominatingPair, FixedBatchesAreNotPoissonBatches) {
  // The same clip C: Poisson counts in C, fixed-size batches in 2C.
  const Event poisson = Sampled(0.01, 1.0);
  const Event fixed = Event::Fixed(SamplingRate(0.01),
                                   Event::Gaussian(NoiseMultiplier(0.5), Adjacency::kReplaceOne));
  for (const double epsilon : {0.1, 1.0}) {
    EXPECT_GT(LogDelta(DominatingPairsOf(fixed).lower, epsilon),
              LogDelta(DominatingPairsOf(poisson).upper, epsilon) + 1);
  }
}

TEST(DominatingPair, ReplaceOneGluesTheDirectionsAtZero) {
  const Event event =
      Event::Fixed(SamplingRate(0.2), Event::Gaussian(NoiseMultiplier(1), Adjacency::kReplaceOne));
  const DominatingPairs pairs = DominatingPairsOf(event);
  ASSERT_EQ(pairs.upper.size(), 1U);
  ASSERT_GE(pairs.lower.size(), 2U);
  for (const double epsilon : {0.0, 0.3, 1.0}) {
    EXPECT_NEAR(ExactLogDelta(pairs.upper[0], epsilon), ExactLogDelta(pairs.lower[0], epsilon),
                1e-11);
    EXPECT_NEAR(ExactLogDelta(pairs.upper[0], -epsilon), ExactLogDelta(pairs.lower[1], -epsilon),
                1e-11);
  }
}

// (1-q) Lap(0) + q Lap(1) against (1-q) Lap(0) + q Lap(-1), by a midpoint rule over [-40 b, 40 b].
TEST(DominatingPair, SampledLaplaceUnderReplaceOneMatchesBruteForce) {
  for (const double q : {0.03, 0.4, 1.0}) {
    for (const double b : {0.5, 2.0}) {
      const Event event = Event::Poisson(
          SamplingRate(q), Event::Laplace(NoiseMultiplier(b), Adjacency::kReplaceOne));
      const DominatingPairs pairs = DominatingPairsOf(event);
      ASSERT_EQ(pairs.upper.size(), 1U);
      ASSERT_TRUE(pairs.exact);
      for (const double epsilon : {0.0, 0.02, 0.3, 0.9}) {
        const int cells = 400000;
        const double width = 80 * b / cells;
        double expected = 0;
        for (int i = 0; i < cells; ++i) {
          const double x = -40 * b + (i + 0.5) * width;
          const auto density = [&](double centre) {
            return std::exp(-std::abs(x - centre) / b) / (2 * b);
          };
          const double p = (1 - q) * density(0) + q * density(1);
          const double s = (1 - q) * density(0) + q * density(-1);
          expected += std::max(0.0, p - std::exp(epsilon) * s) * width;
        }
        // The midpoint rule is off by the kinks: width squared.
        EXPECT_NEAR(std::exp(ExactLogDelta(pairs.upper[0], epsilon)), expected, 1e-8)
            << "q " << q << " b " << b << " epsilon " << epsilon;
      }
    }
  }
}

TEST(DominatingPair, NothingIsReleasedAtRateZero) {
  const DominatingPairs pairs = DominatingPairsOf(Sampled(0, 1));
  for (const LossPair& pair : pairs.upper) {
    EXPECT_EQ(LargestLoss(pair), 0);
    EXPECT_EQ(ExactLogDelta(pair, 0), -kInfinity);
  }
}

TEST(DominatingPair, TruncationThatNeverHappensIsPoisson) {
  // Of five records, or six after one was added, no more than six are sampled.
  const Event truncated =
      Event::TruncatedPoisson(5, SamplingRate(0.3), 6, Event::Gaussian(NoiseMultiplier(1)));
  for (const double epsilon : {0.0, 0.2, 1.0}) {
    EXPECT_NEAR(LogDelta(DominatingPairsOf(truncated).upper, epsilon),
                LogDelta(DominatingPairsOf(Sampled(0.3, 1)).upper, epsilon), 1e-11);
  }
}

// A full batch swaps two records: the truncation is never better than sensitivity one and never
// worse than sensitivity two at the same rate.
TEST(DominatingPair, TruncationLiesBetweenOneAndTwoSensitivities) {
  const Event truncated =
      Event::TruncatedPoisson(50, SamplingRate(0.3), 15, Event::Gaussian(NoiseMultiplier(2)));
  const DominatingPairs pairs = DominatingPairsOf(truncated);
  for (const double epsilon : {0.1, 0.5, 1.0}) {
    EXPECT_LE(LogDelta(pairs.upper, epsilon),
              LogDelta(DominatingPairsOf(Sampled(0.3, 1)).upper, epsilon));
    EXPECT_LE(LogDelta(pairs.attained(), epsilon), LogDelta(pairs.upper, epsilon));
  }
}

// Noise so small that neighbouring probabilities underflow: no outcome gives the record away.
TEST(DominatingPair, SmallDiscreteNoiseHasNoMassAtInfinity) {
  for (const double sigma : {0.05, 0.17, 0.3}) {
    const DominatingPairs pairs = DominatingPairsOf(Event::DiscreteGaussian(sigma, 1));
    // At x = 2 the loss is 3 / (2 sigma^2), with probability e^{-1/(2 sigma^2)} up to 2.
    const double log_mass = -0.5 / (sigma * sigma);
    if (log_mass < -600) continue;
    const double epsilon = ExactEpsilon(pairs.upper[0], log_mass - 3);
    EXPECT_TRUE(std::isfinite(epsilon)) << sigma;
    EXPECT_NEAR(epsilon, 1.5 / (sigma * sigma), 5) << sigma;
  }
}

TEST(DominatingPair, TheGaussianIsOneZeroConcentratedMechanism) {
  const DominatingPairs pairs = DominatingPairsOf(Event::Zcdp(Rho(0.02)));
  ASSERT_EQ(pairs.upper.size(), 1U);
  EXPECT_GT(ExactLogDelta(pairs.upper[0], 0.5), GaussianLogDelta(0.2, 0.5));
  const DominatingPairs large = DominatingPairsOf(Event::Zcdp(Rho(0.6)));
  EXPECT_TRUE(large.upper.empty());
  EXPECT_FALSE(large.reason.empty());
  ASSERT_EQ(pairs.lower.size(), 1U);
  EXPECT_NEAR(ExactLogDelta(pairs.lower[0], 0.5), GaussianLogDelta(0.2, 0.5), 1e-12);
}

}  // namespace
}  // namespace sordino
