#include "sordino/accounting/internal/grid/discretise.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/testing/engine_test_support.h"

namespace sordino {
namespace {

using testing::Add;
using testing::LaplacePair;
using testing::NamedPair;
using testing::Remove;
using testing::Replace;

std::vector<NamedPair> Pairs() {
  using Direction = LaplaceDensity::Direction;
  std::vector<NamedPair> pairs = {{"remove", FromDensity(Remove(0.1, 1))},
                                  {"remove, sparse", FromDensity(Remove(1e-3, 0.7))},
                                  {"add", FromDensity(Add(0.1, 1))},
                                  {"replace", FromDensity(Replace(0.3, 2))},
                                  {"laplace", LaplacePair(0.8, 1, Direction::kRemove)},
                                  {"laplace, remove", LaplacePair(0.5, 0.2, Direction::kRemove)},
                                  {"laplace, add", LaplacePair(0.5, 0.2, Direction::kAdd)}};
  const auto named = [&](const std::string& name, const Event& event) {
    pairs.push_back({name, DominatingPairsOf(event).upper.front()});
  };
  named("discrete Gaussian", Event::DiscreteGaussian(3, 2));
  named("discrete Laplace", Event::DiscreteLaplace(2, 3));
  named("approximate", Event::Approximate(Epsilon(0.7), Delta(1e-4)));
  named("fixed", Event::Fixed(SamplingRate(0.2),
                              Event::Gaussian(NoiseMultiplier(1), Adjacency::kReplaceOne)));
  named("fixed laplace", Event::Fixed(SamplingRate(0.2),
                                      Event::Laplace(NoiseMultiplier(1), Adjacency::kReplaceOne)));
  named("truncated",
        Event::TruncatedPoisson(20, SamplingRate(0.3), 6, Event::Gaussian(NoiseMultiplier(1))));
  return pairs;
}

struct Plain {
  std::vector<LossAtom> atoms;  // untilted
  double infinite_mass = 0;
  double Delta(double epsilon) const {
    double sum = infinite_mass;
    for (const LossAtom& atom : atoms) {
      if (atom.loss > epsilon) sum -= atom.mass * std::expm1(epsilon - atom.loss);
    }
    return sum;
  }
  double Mass() const {
    double sum = infinite_mass;
    for (const LossAtom& atom : atoms) sum += atom.mass;
    return sum;
  }
  double ReferenceMass() const {
    double sum = 0;
    for (const LossAtom& atom : atoms) sum += atom.mass * std::exp(-atom.loss);
    return sum;
  }
};

constexpr double kLogLost = -50;

Plain Untilt(LossPair pair, double spacing, double tilt, Bound bound, double log_lost = kLogLost) {
  ChooseRange(pair, log_lost);
  const GridSpec spec{spacing, 0.3 * spacing, tilt, 0.7};
  const GridMass grid = Discretise(pair, spec, bound);
  Plain plain;
  plain.infinite_mass = grid.infinite_mass;
  for (std::size_t i = 0; i < grid.mass.size(); ++i) {
    const double loss =
        spec.offset + spec.spacing * static_cast<double>(grid.first + static_cast<int>(i));
    plain.atoms.push_back({loss, grid.mass[i] * std::exp(spec.log_scale - tilt * loss)});
  }
  return plain;
}

std::vector<double> Epsilons() {
  std::vector<double> epsilons;
  for (double e = -3; e <= 6; e += 0.037) epsilons.push_back(e);
  return epsilons;
}

// A composition is bounded when every real epsilon is, the negative ones included.
TEST(Discretise, UpperDominatesAtEveryEpsilon) {
  for (const auto& [name, pair] : Pairs()) {
    for (const double spacing : {0.2, 0.01}) {
      for (const double tilt : {0.0, 3.0}) {
        const Plain upper = Untilt(pair, spacing, tilt, Bound::kUpper);
        for (const double epsilon : Epsilons()) {
          const double exact = std::exp(ExactLogDelta(pair, epsilon));
          EXPECT_GE(upper.Delta(epsilon), exact * (1 - 1e-11) - 1e-15)
              << name << " spacing " << spacing << " tilt " << tilt << " epsilon " << epsilon;
        }
      }
    }
  }
}

TEST(Discretise, LowerIsDominatedAtEveryEpsilon) {
  for (const auto& [name, pair] : Pairs()) {
    for (const double spacing : {0.2, 0.01}) {
      for (const double tilt : {0.0, 3.0}) {
        const Plain lower = Untilt(pair, spacing, tilt, Bound::kLower);
        for (const double epsilon : Epsilons()) {
          const double exact = std::exp(ExactLogDelta(pair, epsilon));
          EXPECT_LE(lower.Delta(epsilon), exact * (1 + 1e-11) + 1e-15)
              << name << " spacing " << spacing << " tilt " << tilt << " epsilon " << epsilon;
        }
      }
    }
  }
}

TEST(Discretise, KeepsTheMassOfBothDistributions) {
  for (const auto& [name, pair] : Pairs()) {
    for (const double spacing : {0.2, 0.01}) {
      const Plain upper = Untilt(pair, spacing, 1.5, Bound::kUpper);
      EXPECT_NEAR(upper.Mass(), 1, 1e-12) << name << " " << spacing;
      // Q may also have mass where P has none, which no loss of P shows.
      EXPECT_LE(upper.ReferenceMass(), 1 + 1e-12) << name << " " << spacing;
      const Plain lower = Untilt(pair, spacing, 1.5, Bound::kLower);
      EXPECT_NEAR(lower.Mass(), 1, 1e-12) << name << " " << spacing;
    }
  }
}

// What a short range leaves out is charged: an infinite loss above, the lowest loss below.
TEST(Discretise, AShortRangeIsStillABound) {
  for (const auto& [name, pair] : Pairs()) {
    const Plain upper = Untilt(pair, 0.02, 0, Bound::kUpper, std::log(1e-3));
    const Plain lower = Untilt(pair, 0.02, 0, Bound::kLower, std::log(1e-3));
    for (const double epsilon : Epsilons()) {
      const double exact = std::exp(ExactLogDelta(pair, epsilon));
      EXPECT_GE(upper.Delta(epsilon), exact * (1 - 1e-11) - 1e-15) << name << " " << epsilon;
      EXPECT_LE(upper.Delta(epsilon), exact + 2.1e-3 + 0.25 * 0.02) << name << " " << epsilon;
      EXPECT_LE(lower.Delta(epsilon), exact * (1 + 1e-11) + 1e-15) << name << " " << epsilon;
    }
  }
}

// A grid that rounded up by half a cell would pass the tests of domination and fail this one.
TEST(Discretise, UpperErrorFallsWithTheSquareOfTheSpacing) {
  for (const auto& [name, pair] : Pairs()) {
    if (!pair.atoms.empty()) continue;  // atoms fall on or between grid points as they like
    const double epsilon = 0.123456;
    const double exact = std::exp(ExactLogDelta(pair, epsilon));
    const double coarse = Untilt(pair, 0.08, 0, Bound::kUpper).Delta(epsilon) - exact;
    const double fine = Untilt(pair, 0.005, 0, Bound::kUpper).Delta(epsilon) - exact;
    EXPECT_LE(fine, 0.3 * 0.005 * 0.005) << name;
    EXPECT_GT(coarse, fine) << name;
  }
}

TEST(Discretise, LowerErrorIsSmallAgainstTheSpacing) {
  for (const auto& [name, pair] : Pairs()) {
    if (!pair.atoms.empty()) continue;
    const double epsilon = 0.123456;
    const double exact = std::exp(ExactLogDelta(pair, epsilon));
    const double fine = exact - Untilt(pair, 0.005, 0, Bound::kLower).Delta(epsilon);
    EXPECT_LE(fine, 0.05 * 0.005) << name;
  }
}

TEST(Discretise, NodesReproduceTheMoments) {
  for (auto [name, pair] : Pairs()) {
    ChooseRange(pair, kLogLost);
    const LossNodes nodes = SampleNodes(pair);
    // E_P[e^{-L}] is the Q-mass where P has mass; E_P[1] is the P-mass with finite loss.
    EXPECT_NEAR(nodes.LogMoment(0), std::log1p(-pair.infinite_mass), 1e-6) << name;
    EXPECT_LE(nodes.LogMoment(-1), 1e-6) << name;
  }
}

}  // namespace
}  // namespace sordino
