#include "sordino/accounting/internal/atoms/aligned_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/atoms/atom_composition.h"
#include "sordino/accounting/internal/atoms/atom_list.h"
#include "sordino/accounting/internal/atoms/coarse_schedule.h"
#include "sordino/accounting/internal/atoms/list_family.h"
#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/testing/engine_test_support.h"

namespace sordino {
namespace {

using Direction = LaplaceDensity::Direction;

// Pair 0 or 1 of many events.
std::vector<CountedPair> PairsOf(const std::vector<std::string>& events, std::size_t direction) {
  std::vector<CountedPair> pairs;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const DominatingPairs found = DominatingPairsOf(Event::Parse(events[i]));
    pairs.push_back({found.upper[direction % found.upper.size()], 1 + i % 3});
  }
  return pairs;
}

std::vector<std::string> Schedule(std::size_t n, auto make) {
  std::vector<std::string> events;
  for (std::size_t i = 0; i < n; ++i) {
    events.push_back(make(static_cast<double>(i) / static_cast<double>(n - 1)));
  }
  return events;
}

std::vector<std::vector<std::string>> Schedules() {
  const auto number = [](double x) { return std::to_string(x); };
  return {
      Schedule(40, [&](double t) { return "add-remove: laplace(" + number(1 + t) + ")"; }),
      Schedule(40,
               [&](double t) {
                 return "add-remove: poisson(" + number(0.1 + 0.1 * t) + ", laplace(" +
                        number(0.8 + 0.5 * t) + "))";
               }),
      Schedule(40,
               [&](double t) {
                 return "replace-one: poisson(0.2, laplace(" + number(1.5 - 0.5 * t) + "))";
               }),
      Schedule(40,
               [&](double t) {
                 return "replace-one: fixed(0.2, laplace(" + number(1.5 - 0.5 * t) + "))";
               }),
      Schedule(40,
               [&](double t) {
                 return "add-remove: poisson(0.2, discrete-gaussian(" + number(3 + t) + ", 3))";
               }),
      Schedule(40, [&](double t) { return "add-remove: pure(" + number(0.1 + t) + ")"; }),
  };
}

// E_P[e^{sL}] by the midpoint rule over the coordinate.
std::complex<double> Moment(const LossPair& pair, std::complex<double> s) {
  constexpr int kPoints = 4000;
  std::complex<double> sum = 0;
  for (const LossAtom& atom : pair.atoms) sum += atom.mass * std::exp(s * atom.loss);
  for (const DensityPiece& piece : pair.pieces) {
    const LossDensity& d = *piece.density;
    const double a = piece.clip_low > -1e300 ? d.CoordinateOf(piece.clip_low) : d.low();
    const double b = piece.clip_high < 1e300 ? d.CoordinateOf(piece.clip_high) : d.high();
    for (int i = 0; i < kPoints; ++i) {
      const double x = a + (b - a) * (i + 0.5) / kPoints;
      sum += piece.weight * std::exp(d.LogDensity(x) + s * d.Loss(x)) * ((b - a) / kPoints);
    }
  }
  return sum;
}

TEST(LaplaceDensity, CellsInClosedFormMatchAQuadrature) {
  for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
    for (const double scale : {0.05, 0.7, 30.0}) {
      for (const double rate : {1e-5, 0.3, 1.0}) {
        const LaplaceDensity d(scale, rate, direction);
        for (const auto& [a, b] : {std::pair(0.0, 1.0), {0.2, 0.21}, {0.9, 1.0}, {0.0, 1e-3}}) {
          double mass = 0;
          double loss = 0;
          ASSERT_TRUE(d.Integrate(a, b, &mass, &loss));
          double p = 0;
          double q = 0;
          constexpr int kPoints = 200000;
          for (int i = 0; i < kPoints; ++i) {
            const double x = a + (b - a) * (i + 0.5) / kPoints;
            p += std::exp(d.LogDensity(x)) * (b - a) / kPoints;
            q += std::exp(d.LogDensity(x) - d.Loss(x)) * (b - a) / kPoints;
          }
          EXPECT_NEAR(mass / p, 1, 1e-8) << scale << ' ' << rate << ' ' << a;
          EXPECT_NEAR(loss, std::log(p / q), 1e-8 * (1 + 1 / scale)) << scale << ' ' << rate;
        }
      }
    }
  }
}

// The product of all moments along a line, against a quadrature of every single one.
TEST(AlignedLists, ProductOfMomentsMatchesQuadrature) {
  constexpr double kTilt = 3;
  constexpr double kStep = 0.7;
  constexpr std::size_t kNodes = 7;
  for (const std::vector<std::string>& events : Schedules()) {
    for (const std::size_t direction : {0U, 1U}) {
      const std::vector<CountedPair> pairs = PairsOf(events, direction);
      const CutPairs cut(pairs, -40, 1500);
      ASSERT_FALSE(cut.aligned.empty()) << events.front();
      AtomComposition above(cut, Bound::kUpper);
      AtomComposition below(cut, Bound::kLower);
      above.Sharpen(kTilt, 10);
      below.Sharpen(kTilt, 10);
      const MomentLine upper = above.Line(kTilt, kStep, kNodes);
      const MomentLine lower = below.Line(kTilt, kStep, kNodes);
      for (std::size_t k = 0; k < kNodes; ++k) {
        std::complex<double> log_product = 0;
        for (const CountedPair& one : pairs) {
          const std::complex<double> s(kTilt, kStep * static_cast<double>(k));
          log_product += static_cast<double>(one.count) * std::log(Moment(one.pair, s));
        }
        for (const MomentLine& line : {upper, lower}) {
          EXPECT_NEAR(line.log_modulus[k], log_product.real(), 0.02) << events.front();
          EXPECT_NEAR(std::cos(line.phase[k] - log_product.imag()), 1, 1e-3) << events.front();
        }
        if (k > 0) continue;
        // At real s moments from above are larger and those from below smaller; the quadrature is
        // good to 1e-5.
        const double charged = lower.log_largest[k] - lower.log_modulus[k];
        EXPECT_GE(upper.log_largest[k], log_product.real() - 1e-5) << events.front();
        EXPECT_LE(lower.log_modulus[k] - charged, log_product.real() + 1e-5) << events.front();
      }
    }
  }
}

// Bounds do not depend on what is grouped: pairs that have nothing in common.
TEST(AlignedLists, UnlikePairsMakeWideBoundsThatHold) {
  const std::vector<CountedPair> pairs =
      PairsOf({"add-remove: laplace(1)", "add-remove: laplace(3)", "add-remove: pure(0.4)",
               "add-remove: poisson(0.2, discrete-gaussian(2, 1))",
               "add-remove: poisson(0.01, laplace(0.3))"},
              0);
  std::vector<SimilarPair> group;
  group.reserve(pairs.size());
  for (const CountedPair& one : pairs) group.push_back({{}, {}, &one});
  for (const double c : {0.3, 2.0, 7.0}) {
    double exact = 0;
    for (const CountedPair& one : pairs) {
      exact += static_cast<double>(one.count) * std::log(Moment(one.pair, c).real());
    }
    ListFamily above(AlignLists(group, -40, 200, Bound::kUpper), Bound::kUpper);
    ListFamily below(AlignLists(group, -40, 200, Bound::kLower), Bound::kLower);
    above.Sharpen(c, c);
    below.Sharpen(c, c);
    EXPECT_GE(above.LogMoment(c) + above.LogMomentError(c), exact - 1e-6) << c;
    EXPECT_LE(below.LogMoment(c) - below.LogMomentError(c), exact + 1e-6) << c;
  }
}

// Every outcome of eighteen different releases of two outcomes each: real moments of the product.
TEST(Schedules, AlignedListsBoundAnEnumeration) {
  std::vector<CountedPair> pairs;
  std::vector<std::pair<double, double>> sums = {{0, 1}};  // loss and P-mass
  for (int i = 0; i < 18; ++i) {
    const Event step =
        Event::Parse("add-remove: poisson(" + std::to_string(0.11 + 0.0002 * i) + ", pure(1))");
    pairs.push_back({DominatingPairsOf(step).upper[0], 1});
    std::vector<std::pair<double, double>> next;
    for (const auto& [loss, mass] : sums) {
      for (const LossAtom& atom : pairs.back().pair.atoms) {
        next.emplace_back(loss + atom.loss, mass * atom.mass);
      }
    }
    sums = std::move(next);
  }
  std::vector<SimilarPair> group;
  group.reserve(pairs.size());
  for (const CountedPair& one : pairs) group.push_back({{}, {}, &one});
  for (const double c : {0.5, 4.0, 20.0}) {
    double moment = 0;
    for (const auto& [loss, mass] : sums) moment += mass * std::exp(c * loss);
    ListFamily above(AlignLists(group, -40, 200, Bound::kUpper), Bound::kUpper);
    ListFamily below(AlignLists(group, -40, 200, Bound::kLower), Bound::kLower);
    above.Sharpen(c, c);
    below.Sharpen(c, c);
    EXPECT_GE(above.LogMoment(c) + above.LogMomentError(c), std::log(moment)) << c;
    EXPECT_LE(above.LogMoment(c), std::log(moment) * (1 + 1e-3)) << c;
    EXPECT_LE(below.LogMoment(c) - below.LogMomentError(c), std::log(moment)) << c;
    EXPECT_GE(below.LogMoment(c), std::log(moment) * (1 - 1e-3)) << c;
  }
}

// Losses rounded up and down to a grid and convolved one by one.
TEST(Schedules, AlignedListsContainADirectConvolution) {
  constexpr double kSpacing = 2e-3;
  constexpr std::size_t kZero = 20000;
  const auto delta_of = [](const std::vector<CountedPair>& pairs, double epsilon, bool up) {
    std::vector<double> sums(2 * kZero, 0.0);
    sums[kZero] = 1;
    for (const CountedPair& one : pairs) {
      std::vector<double> next(sums.size(), 0.0);
      for (const LossAtom& atom : one.pair.atoms) {
        if (!(atom.mass > 1e-16)) continue;
        const double cell = atom.loss / kSpacing;
        const auto shift = std::lround(up ? std::ceil(cell) : std::floor(cell));
        for (std::size_t i = 0; i < sums.size(); ++i) {
          const long to = static_cast<long>(i) + shift;
          if (sums[i] > 0 && to >= 0 && to < static_cast<long>(sums.size())) {
            next[static_cast<std::size_t>(to)] += sums[i] * atom.mass;
          }
        }
      }
      sums = std::move(next);
    }
    double delta = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double loss = (static_cast<double>(i) - static_cast<double>(kZero)) * kSpacing;
      delta += sums[i] * std::max(0.0, -std::expm1(epsilon - loss));
    }
    return delta;
  };
  std::vector<std::pair<Event, std::uint64_t>> steps;
  std::vector<CountedPair> pairs;
  for (int i = 0; i < 40; ++i) {
    const Event step =
        Event::Parse("replace-one: discrete-gaussian(" + std::to_string(8 + 0.01 * i) + ", 2)");
    steps.emplace_back(step, 1);
    pairs.push_back({DominatingPairsOf(step).upper[0], 1});
  }
  ASSERT_FALSE(CutPairs(pairs, -40, 100).aligned.empty());
  const Event event = Event::Compose(steps, Adjacency::kReplaceOne);
  for (const double epsilon : {2.0, 5.0}) {
    const Interval found = CertifiedLogDelta(event, epsilon).value;
    EXPECT_LE(found.lower, std::log(delta_of(pairs, epsilon, true)) + 1e-9);
    EXPECT_GE(found.upper, std::log(delta_of(pairs, epsilon, false)) - 1e-9);
    EXPECT_LE(found.upper - found.lower, 0.05);
  }
}

// What rounding to fewer steps gives contains what the contour says of all of them.
TEST(Schedules, RoundedOnesContainTheContour) {
  std::vector<std::pair<Event, std::uint64_t>> steps;
  std::vector<CountedPair> pairs;
  const int lines = static_cast<int>(kMaxLines) + 500;
  for (int i = 0; i < lines; ++i) {
    const Event step = testing::Sampled(0.003, 2 + 0.3 * i / lines);
    steps.emplace_back(step, 1);
    pairs.push_back({DominatingPairsOf(step).upper[0], 1});
  }
  const Event event = Event::Compose(steps, Adjacency::kAddRemove);
  ASSERT_TRUE(CoarseSchedule::Of(event));
  const auto exact = ContourEpsilon(pairs, std::log(1e-6));
  ASSERT_TRUE(exact);
  const Interval found = CertifiedEpsilon(event, std::log(1e-6)).value;
  EXPECT_LE(found.lower, exact->lower);
  EXPECT_GE(found.upper, exact->upper);
  EXPECT_LE(found.upper - found.lower, 5e-3 * found.upper);
}

TEST(Schedules, AreRoundedOnlyWhereTheyAreVeryLong) {
  const auto schedule = [](std::size_t lines, double rate) {
    std::vector<std::pair<Event, std::uint64_t>> steps;
    for (std::size_t i = 0; i < lines; ++i) {
      steps.emplace_back(testing::Sampled(rate, 1 + 1e-5 * static_cast<double>(i)), 1);
    }
    return CoarseSchedule::Of(Event::Compose(steps, Adjacency::kAddRemove));
  };
  EXPECT_FALSE(schedule(kMaxLines, 0.001));
  EXPECT_FALSE(schedule(kMaxLines + 1, 0.1));  // dense: the contour is exact
  const auto rounded = schedule(kMaxLines + 1, 0.001);
  ASSERT_TRUE(rounded);
  EXPECT_LE(rounded->less_private.children().size(), kMaxLines);
  EXPECT_EQ(rounded->less_private.TotalCount(), kMaxLines + 1);
  EXPECT_EQ(rounded->more_private.TotalCount(), kMaxLines + 1);
}

TEST(Neighbours, EveryPairIsInOneGroupOfItsForm) {
  std::vector<CountedPair> pairs(500);
  std::vector<SimilarPair> keyed;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    keyed.push_back({{static_cast<double>(i % 2)},
                     {std::sin(static_cast<double>(i)), std::cos(static_cast<double>(3 * i))},
                     &pairs[i]});
  }
  std::vector<const CountedPair*> seen;
  for (const std::vector<SimilarPair>& group : GroupSimilarPairs(keyed, {{0.3, 0.3}, 4, 1000})) {
    ASSERT_FALSE(group.empty());
    for (const SimilarPair& one : group) {
      EXPECT_EQ(one.form, group.front().form);
      seen.push_back(one.pair);
    }
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen.size(), pairs.size());
  EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
}

}  // namespace
}  // namespace sordino
