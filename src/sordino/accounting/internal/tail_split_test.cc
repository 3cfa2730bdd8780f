#include "sordino/accounting/internal/tail_split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/exact_release.h"
#include "sordino/accounting/internal/grid.h"
#include "sordino/accounting/internal/smoothed_contour.h"

namespace sordino {
namespace {

using Mixture = GaussianMixtureDensity;

std::vector<CountedPair> Sampled(double q, double sigma, std::uint64_t count) {
  LossPair pair;
  pair.pieces.push_back({std::make_shared<Mixture>(sigma, Mixture::Parts{{0.0, 1 - q}, {1.0, q}},
                                                   Mixture::Parts{{0.0, 1.0}})});
  return {{pair, count}};
}

// One step: the body alone is integrated by another engine, and body and tail are the whole.
TEST(TailSplit, BodyAndTailAreTheWholeOfOneStep) {
  for (const double q : {1e-6, 1e-3, 0.2}) {
    for (const double sigma : {0.3, 0.8, 3.0}) {
      const std::vector<CountedPair> pairs = Sampled(q, sigma, 1);
      for (const double epsilon : {q, 0.01, 0.5}) {
        const auto split = TailSplit::At(pairs, epsilon);
        if (!split) continue;
        EXPECT_GE(split->reach(), epsilon);
        for (const double at : {0.0, 0.3 * epsilon, epsilon}) {
          const double whole = std::exp(ExactLogDelta(pairs[0].pair, at));
          const double body = std::exp(ExactLogDelta(split->body()[0].pair, at));
          const Interval added = split->Added(at);
          EXPECT_LE(body + added.lower, whole * (1 + 1e-10)) << q << " " << sigma << " " << at;
          EXPECT_GE(body + added.upper, whole * (1 - 1e-10)) << q << " " << sigma << " " << at;
          EXPECT_LE(added.upper - added.lower, 1e-9 * whole + 1e-300);
        }
      }
    }
  }
}

// Two steps, by a sum over all pairs of noises: (P(x, y) - e^epsilon Q(x, y))_+ on a lattice of one
// hundredth of a deviation, far finer than the densities.
double DeltaOfTwo(double q, double sigma, double epsilon) {
  constexpr int kReach = 1400;
  constexpr double kStep = 0.01;
  std::vector<double> r;  // P over Q
  std::vector<double> normal;
  for (int i = -kReach; i <= kReach; ++i) {
    const double u = i * kStep;
    normal.push_back(kStep * std::exp(-0.5 * u * u) / std::sqrt(2 * std::numbers::pi));
    r.push_back(1 + q * std::expm1(u / sigma - 0.5 / (sigma * sigma)));
  }
  double delta = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    for (std::size_t j = 0; j < r.size(); ++j) {
      const double gain = r[i] * r[j] - std::exp(epsilon);
      if (gain > 0) delta += normal[i] * normal[j] * gain;
    }
  }
  return delta;
}

TEST(TailSplit, TwoStepsMatchASumOverAllNoises) {
  for (const double sigma : {0.4, 0.7}) {
    const double q = 1e-4;
    for (const double epsilon : {2e-4, 3e-3}) {
      const double delta = DeltaOfTwo(q, sigma, epsilon);
      const auto split = TailSplit::At(Sampled(q, sigma, 2), 2 * epsilon);
      ASSERT_TRUE(split);
      const double log_delta = std::log(delta);
      const double upper = GridEpsilon(*split, log_delta, Bound::kUpper, Effort::kFull);
      const double lower = GridEpsilon(*split, log_delta, Bound::kLower, Effort::kFull);
      // The kink of the sum leaves it an error of the square of its step.
      EXPECT_GE(upper, epsilon * (1 - 1e-4));
      EXPECT_LE(lower, epsilon * (1 + 1e-4));
      EXPECT_LE(upper - lower, 1e-4 * epsilon);
      const Interval smoothed = SmoothedEpsilon(*split, log_delta, {true, true}, Effort::kFull);
      EXPECT_GE(smoothed.upper, epsilon * (1 - 1e-4));
      EXPECT_LE(smoothed.lower, epsilon * (1 + 1e-4));
    }
  }
}

// Epsilon far below the losses of single steps, which no engine resolved without the split.
TEST(TailSplit, AnswersSparseQuestionsWithLittleNoise) {
  struct Row {
    const char* event;
    double delta;
  };
  for (const Row& row : {Row{"add-remove: 12*poisson(1.6e-06, gaussian(0.56))", 2.2e-6},
                         Row{"add-remove: 2000*poisson(1.7e-08, gaussian(0.45))", 7.9e-8},
                         Row{"add-remove: 60000*poisson(4.5e-08, gaussian(0.23))", 8e-4}}) {
    const Interval value = CertifiedEpsilon(Event::Parse(row.event), std::log(row.delta)).value;
    EXPECT_GT(value.lower, 0) << row.event;
    EXPECT_LE(value.upper - value.lower, 2e-3 * value.upper) << row.event;
  }
}

TEST(TailSplit, RefusesLossesWithoutALowerBoundAndLargeOnes) {
  LossPair replaced;
  replaced.pieces.push_back({std::make_shared<Mixture>(1.0, Mixture::Parts{{0.0, 0.9}, {1.0, 0.1}},
                                                       Mixture::Parts{{0.0, 0.9}, {-1.0, 0.1}})});
  const std::vector<CountedPair> pairs = {{replaced, 10}};
  EXPECT_FALSE(TailSplit::At(pairs, 0.1));
  EXPECT_FALSE(TailSplit::At(Sampled(0.01, 0.3, 1000), 5000));
  // Every outcome would be in the tail.
  EXPECT_FALSE(TailSplit::At(Sampled(1, 1, 3), 0.1));
}

}  // namespace
}  // namespace sordino
