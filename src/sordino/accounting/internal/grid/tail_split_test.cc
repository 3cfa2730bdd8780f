#include "sordino/accounting/internal/grid/tail_split.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numbers>
#include <tuple>
#include <utility>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/atoms/smoothed_contour.h"
#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/accounting/internal/grid/grid.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"

namespace sordino {
namespace {

using Density = GaussianMixtureDensity;

std::vector<CountedPair> Sampled(double q, double sigma, std::uint64_t count) {
  LossPair pair;
  pair.pieces.push_back({std::make_shared<Density>(sigma, Density::Parts{{0.0, 1 - q}, {1.0, q}},
                                                   Density::Parts{{0.0, 1.0}})});
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

// Replace-one under Poisson sampling: losses without a lower bound.
std::vector<CountedPair> Replaced(double q, double sigma, std::uint64_t count) {
  LossPair pair;
  pair.pieces.push_back({std::make_shared<Density>(sigma, Density::Parts{{0.0, 1 - q}, {1.0, q}},
                                                   Density::Parts{{0.0, 1 - q}, {-1.0, q}})});
  return {{pair, count}};
}

// What two steps of two Gaussian mixtures on the same noise lose, as above; `ratio` gives P and Q
// over the density of the noise.
template <typename Ratio>
double DeltaOfTwoRatios(Ratio ratio, double epsilon) {
  constexpr int kReach = 1400;
  constexpr double kStep = 0.01;
  std::vector<std::pair<double, double>> r;
  std::vector<double> normal;
  for (int i = -kReach; i <= kReach; ++i) {
    const double u = i * kStep;
    normal.push_back(kStep * std::exp(-0.5 * u * u) / std::sqrt(2 * std::numbers::pi));
    r.push_back(ratio(u));
  }
  double delta = 0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    for (std::size_t j = 0; j < r.size(); ++j) {
      const double gain = r[i].first * r[j].first - std::exp(epsilon) * r[i].second * r[j].second;
      if (gain > 0) delta += normal[i] * normal[j] * gain;
    }
  }
  return delta;
}

TEST(TailSplit, TwoReplacedStepsMatchASumOverAllNoises) {
  for (const double sigma : {0.45, 0.7}) {
    for (const double q : {1e-4, 0.02}) {
      const auto ratio = [&](double u) {
        const double half = 0.5 / (sigma * sigma);
        return std::pair(1 + q * std::expm1(u / sigma - half),
                         1 + q * std::expm1(-u / sigma - half));
      };
      for (const double epsilon : {0.05, 0.5}) {
        const double log_delta = std::log(DeltaOfTwoRatios(ratio, epsilon));
        const auto split = TailSplit::At(Replaced(q, sigma, 2), 1.2 * epsilon);
        ASSERT_TRUE(split);
        const Interval found = SmoothedEpsilon(*split, log_delta, {true, true}, Effort::kFull);
        EXPECT_GE(found.upper, epsilon * (1 - 1e-4)) << sigma << " " << q << " " << epsilon;
        EXPECT_LE(found.lower, epsilon * (1 + 1e-4)) << sigma << " " << q << " " << epsilon;
        EXPECT_GE(GridEpsilon(*split, log_delta, Bound::kUpper, Effort::kFull),
                  epsilon * (1 - 1e-4));
        EXPECT_LE(GridEpsilon(*split, log_delta, Bound::kLower, Effort::kFull),
                  epsilon * (1 + 1e-4));
        EXPECT_LE(found.upper - found.lower, 0.01 * epsilon) << sigma << " " << q << " " << epsilon;
        const auto at = TailSplit::At(Replaced(q, sigma, 2), epsilon);
        ASSERT_TRUE(at);
        const Interval delta = SmoothedLogDelta(*at, epsilon, {true, true}, Effort::kFull);
        EXPECT_GE(delta.upper, log_delta - 1e-4);
        EXPECT_LE(delta.lower, log_delta + 1e-4);
        EXPECT_LE(delta.upper - delta.lower, 0.02);
      }
    }
  }
}

// One step against direct integration, five against the same engine without a split.
TEST(TailSplit, GluedPairsAreWholeAfterASplit) {
  for (const double q : {1e-5, 1e-2}) {
    for (const double sigma : {0.5, 1.0}) {
      const Event event = Event::Fixed(
          SamplingRate(q), Event::Gaussian(NoiseMultiplier(sigma), Adjacency::kReplaceOne));
      const LossPair pair = DominatingPairsOf(event).upper.front();
      const std::vector<CountedPair> one = {{pair, 1}};
      for (const double epsilon : {0.01, 0.4}) {
        const auto split = TailSplit::At(one, epsilon);
        ASSERT_TRUE(split) << q << " " << sigma;
        const double whole = std::exp(ExactLogDelta(pair, epsilon));
        const double body = std::exp(ExactLogDelta(split->body()[0].pair, epsilon));
        const Interval added = split->Added(epsilon);
        EXPECT_LE(body + added.lower, whole * (1 + 1e-9)) << q << " " << sigma << " " << epsilon;
        EXPECT_GE(body + added.upper, whole * (1 - 1e-9)) << q << " " << sigma << " " << epsilon;
        EXPECT_LE(added.upper - added.lower, 1e-3 * whole) << q << " " << sigma << " " << epsilon;
      }
      // Few steps, where the grid answers without a split.
      const std::vector<CountedPair> some = {{pair, 5}};
      const double log_delta = std::log(q) - 6;
      const Interval plain = SmoothedEpsilon(some, log_delta, {true, true}, Effort::kFull);
      const auto split = TailSplit::At(some, 1.2 * plain.upper);
      ASSERT_TRUE(split);
      const Interval found = SmoothedEpsilon(*split, log_delta, {true, true}, Effort::kFull);
      EXPECT_LE(found.lower, plain.upper) << q << " " << sigma;
      EXPECT_GE(found.upper, plain.lower) << q << " " << sigma;
      EXPECT_LE(found.upper - found.lower, 0.01 * found.upper) << q << " " << sigma;
    }
  }
}

// Many steps, where the other losses may take away what a tail has, against another engine.
TEST(TailSplit, ManyReplacedStepsAgreeWithTheContour) {
  for (const auto& [q, sigma, steps] :
       {std::tuple(0.01, 0.8, 2000), std::tuple(0.003, 0.6, 8000), std::tuple(0.001, 1.0, 30000)}) {
    const std::vector<CountedPair> pairs = Replaced(q, sigma, static_cast<std::uint64_t>(steps));
    const double log_delta = std::log(1e-6);
    const auto contour = ContourEpsilon(pairs, log_delta);
    ASSERT_TRUE(contour);
    const auto split = TailSplit::At(pairs, 1.1 * contour->upper);
    ASSERT_TRUE(split) << q << " " << sigma;
    const Interval found = SmoothedEpsilon(*split, log_delta, {true, true}, Effort::kFull);
    EXPECT_LE(found.lower, contour->upper) << q << " " << sigma;
    EXPECT_GE(found.upper, contour->lower) << q << " " << sigma;
    EXPECT_LE(found.upper - found.lower, 2e-3 * found.upper) << q << " " << sigma;
  }
}

// E_Q[e^{-cL}] - 1 by the trapezoidal rule, whose sum has only non-negative terms: with U and V
// the two sides of the ratio, V^{1+c} U^-c - 1 - (1+c) (V-1) + c (U-1), the mean of whose linear
// part is zero.
double FloorExcess(const Density& density, int c) {
  const double sigma = density.sigma();
  const double step = 0.005 * density.Scale();
  double sum = 0;
  for (double x = -(c + 2) * density.max_denominator_shift() - 12 * sigma; x < 12 * sigma + 2;
       x += step) {
    const double log_u = density.Numerator(x).log_ratio;
    const double log_v = density.Denominator(x).log_ratio;
    const double log_normal =
        -0.5 * x * x / (sigma * sigma) - std::log(sigma) - 0.5 * std::log(2 * std::numbers::pi);
    const double power = (1 + c) * log_v - c * log_u;
    const double term =
        std::exp(power + log_normal) +
        std::exp(log_normal) * (-1 - (1 + c) * std::expm1(log_v) + c * std::expm1(log_u));
    sum += term * step;
  }
  return sum;
}

TEST(TailSplit, MomentsOfTheOtherLossesAreBounded) {
  for (const double q : {1e-4, 0.01, 0.2}) {
    for (const double sigma : {0.5, 0.9, 2.0}) {
      for (const int c : {1, 2, 4, 6}) {
        const LossPair removed = Sampled(q, sigma, 1)[0].pair;
        const LossPair replaced = Replaced(q, sigma, 1)[0].pair;
        for (const LossPair& pair : {removed, replaced}) {
          const auto& density = dynamic_cast<const Density&>(*pair.pieces[0].density);
          const double exact = FloorExcess(density, c);
          const double bound = std::expm1(LogFloorMoment(pair, c));
          EXPECT_GE(bound, exact * (1 - 1e-6)) << q << " " << sigma << " " << c;
          EXPECT_GE(exact, 0) << q << " " << sigma << " " << c;
        }
        // Glued: the losses of both directions, each on its side of zero.
        const Event event = Event::Fixed(
            SamplingRate(q), Event::Gaussian(NoiseMultiplier(sigma), Adjacency::kReplaceOne));
        const LossPair glued = DominatingPairsOf(event).upper.front();
        const auto& density = dynamic_cast<const Density&>(*glued.pieces[0].density);
        double exact = 0;
        const double step = 0.005 * density.Scale();
        for (double x = 0.5; x < c + 2 + 12 * sigma; x += step) {
          const double log_u = density.Numerator(x).log_ratio;
          const double normal =
              std::exp(-0.5 * x * x / (sigma * sigma)) / (sigma * std::sqrt(2 * std::numbers::pi));
          exact +=
              step * normal * (std::expm1(-c * log_u) + std::exp(log_u) * std::expm1(c * log_u));
        }
        EXPECT_GE(std::expm1(LogFloorMoment(glued, c)), exact * (1 - 1e-3))
            << q << " " << sigma << " " << c;
      }
    }
  }
}

// E_Q[e^{-c max(L, -floor)}] - 1 by the trapezoidal rule, as above.
double CutFloorExcess(const Density& density, double c, double floor) {
  const double sigma = density.sigma();
  const double step = 0.002 * density.Scale();
  double sum = 0;
  for (double x = -2 * density.max_denominator_shift() - 14 * sigma; x < 14 * sigma + 2;
       x += step) {
    const double log_u = density.Numerator(x).log_ratio;
    const double log_v = density.Denominator(x).log_ratio;
    const double log_normal =
        -0.5 * x * x / (sigma * sigma) - std::log(sigma) - 0.5 * std::log(2 * std::numbers::pi);
    const double power = log_v + c * std::min(log_v - log_u, floor);
    sum +=
        step * (std::exp(power + log_normal) +
                std::exp(log_normal) * (-1 - (1 + c) * std::expm1(log_v) + c * std::expm1(log_u)));
  }
  return sum;
}

// Losses that are cut off: the moments and the mass below the floor, at orders for which the
// moments of whole losses are enormous.
TEST(TailSplit, CutOffMomentsOfTheOtherLossesAreBounded) {
  for (const double q : {1e-5, 1e-3, 0.05}) {
    for (const double sigma : {0.5, 0.9, 2.0}) {
      for (const double c : {1.0, 7.5, 60.0, 700.0}) {
        for (const double floor : {0.5 / c, 5 / c}) {
          const LossPair pair = Replaced(q, sigma, 1)[0].pair;
          const auto& density = dynamic_cast<const Density&>(*pair.pieces[0].density);
          const double exact = CutFloorExcess(density, c, floor);
          const double bound = std::expm1(LogCutFloorMoment(pair, c, floor));
          EXPECT_GE(bound, exact * (1 - 1e-6)) << q << " " << sigma << " " << c << " " << floor;
          const double below = density.OtherMassBelow(density.CoordinateOf(-floor));
          EXPECT_GE(MassBelowFloor(pair, floor), below);
          EXPECT_LE(MassBelowFloor(pair, floor), below * (1 + 1e-6) + 1e-300);
          // What has a lower bound is not cut off.
          const LossPair removed = Sampled(q, sigma, 1)[0].pair;
          const auto& one_sided = dynamic_cast<const Density&>(*removed.pieces[0].density);
          EXPECT_GE(std::expm1(LogCutFloorMoment(removed, c, floor)),
                    CutFloorExcess(one_sided, c, kInfinity) * (1 - 1e-6));
          EXPECT_EQ(MassBelowFloor(removed, floor), 0);
          // Glued: positive losses u > 1 of P, and their mirror image.
          const Event event = Event::Fixed(
              SamplingRate(q), Event::Gaussian(NoiseMultiplier(sigma), Adjacency::kReplaceOne));
          const LossPair glued = DominatingPairsOf(event).upper.front();
          const auto& above = dynamic_cast<const Density&>(*glued.pieces[0].density);
          double excess = 0;
          double mirrored = 0;
          const double step = 0.002 * above.Scale();
          for (double x = 0.5 * above.max_numerator_shift(); x < 2 + 14 * sigma; x += step) {
            const double log_u = above.Numerator(x).log_ratio;
            const double normal = std::exp(-0.5 * x * x / (sigma * sigma)) /
                                  (sigma * std::sqrt(2 * std::numbers::pi));
            excess +=
                step * normal *
                (std::expm1(-c * log_u) + std::exp(log_u) * std::expm1(c * std::min(log_u, floor)));
            if (log_u > floor) mirrored += step * normal * std::exp(log_u);
          }
          EXPECT_GE(std::expm1(LogCutFloorMoment(glued, c, floor)), excess * (1 - 1e-3))
              << q << " " << sigma << " " << c << " " << floor;
          EXPECT_NEAR(MassBelowFloor(glued, floor), mirrored, 0.03 * mirrored + 1e-15)
              << q << " " << sigma << " " << floor;
        }
      }
    }
  }
}

// Small epsilons of many replaced or fixed-size steps, where the cut is close to epsilon because
// the other losses are cut off, against the engine that splits nothing.
TEST(TailSplit, SmallEpsilonsAgreeWithUnsplitLosses) {
  struct Row {
    double q;
    double sigma;
    std::uint64_t steps;
    double delta;
  };
  for (const Row& row :
       {Row{1e-5, 0.8, 2000, 1e-9}, Row{1e-5, 1.0, 5000, 1e-10}, Row{1e-6, 0.7, 100000, 1e-9}}) {
    const Event fixed = Event::Fixed(
        SamplingRate(row.q), Event::Gaussian(NoiseMultiplier(row.sigma), Adjacency::kReplaceOne));
    const std::vector<CountedPair> glued = {{DominatingPairsOf(fixed).upper.front(), row.steps}};
    for (const std::vector<CountedPair>& pairs : {Replaced(row.q, row.sigma, row.steps), glued}) {
      const double log_delta = std::log(row.delta);
      const Interval whole = SmoothedEpsilon(pairs, log_delta, {true, true}, Effort::kFull);
      ASSERT_TRUE(std::isfinite(whole.upper)) << row.q;
      const auto split = TailSplit::At(pairs, 1.05 * whole.upper);
      ASSERT_TRUE(split) << row.q;
      // Without a floor for the other losses the cut is at 14/33 or more above epsilon.
      EXPECT_LE(split->body()[0].pair.pieces[0].clip_high, 0.4) << row.q;
      const Interval found = SmoothedEpsilon(*split, log_delta, {true, true}, Effort::kFull);
      EXPECT_LE(found.lower, whole.upper) << row.q << " " << row.sigma;
      EXPECT_GE(found.upper, whole.lower) << row.q << " " << row.sigma;
      EXPECT_LE(found.upper - found.lower, 2e-3 * found.upper) << row.q << " " << row.sigma;
    }
  }
}

TEST(TailSplit, RefusesWhatItHasNoMomentsOfAndLargeLosses) {
  LossPair shifted;
  shifted.pieces.push_back(
      {std::make_shared<Density>(1.0, Density::Parts{{0.0, 0.9}, {1.0, 0.1}},
                                 Density::Parts{{0.0, 0.8}, {-1.0, 0.1}, {-2.0, 0.1}})});
  EXPECT_FALSE(TailSplit::At(std::vector<CountedPair>{{shifted, 10}}, 0.1));
  EXPECT_FALSE(TailSplit::At(Sampled(0.01, 0.3, 1000), 5000));
  // Every outcome would be in the tail.
  EXPECT_FALSE(TailSplit::At(Sampled(1, 1, 3), 0.1));
}

}  // namespace
}  // namespace sordino
