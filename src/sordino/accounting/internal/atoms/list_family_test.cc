#include "sordino/accounting/internal/atoms/list_family.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/atoms/atom_composition.h"
#include "sordino/accounting/internal/atoms/smoothed_contour.h"
#include "sordino/accounting/internal/contour/contour.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/testing/engine_test_support.h"

namespace sordino {
namespace {

using testing::Add;
using testing::Remove;
using testing::Replace;

constexpr WantedEnds kBoth{true, true};

std::vector<CountedPair> Lines(std::size_t n, auto make) {
  std::vector<CountedPair> pairs;
  for (std::size_t i = 0; i < n; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(n - 1);
    pairs.push_back({FromDensity(make(share)), 1 + i % 3});
  }
  return pairs;
}

std::vector<const CountedPair*> Pointers(const std::vector<CountedPair>& pairs) {
  std::vector<const CountedPair*> pointers;
  pointers.reserve(pairs.size());
  for (const CountedPair& one : pairs) pointers.push_back(&one);
  return pointers;
}

// E_P[e^{sL}] by the midpoint rule over the coordinate.
std::complex<double> Moment(const LossDensity& density, std::complex<double> s) {
  constexpr int kPoints = 40000;
  constexpr double kReach = 30;
  std::complex<double> sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double x = kReach * (2 * (i + 0.5) / kPoints - 1);
    sum += std::exp(density.LogDensity(x) + s * density.Loss(x)) * (2 * kReach / kPoints);
  }
  return sum;
}

// Cells keep the masses of both sides, whatever the places are.
TEST(LossCells, KeepAllMassOfBothSides) {
  for (const auto& make : {+[](double t) { return Remove(1e-3 * (1 + t), 0.6 + 0.4 * t); },
                           +[](double t) { return Add(1e-3 * (1 + t), 0.6 + 0.4 * t); },
                           +[](double t) { return Replace(0.02 * (1 + t), 0.8 + 0.4 * t); }}) {
    const std::vector<CountedPair> pairs = Lines(40, make);
    for (const CellGroup& group : CutIntoCells(Pointers(pairs), -30, 60, 0)) {
      for (const LossCells& pair : group.pairs) {
        double p = pair.low_p + pair.high_p;
        double q = pair.low_q + pair.high_q;
        for (std::size_t k = 0; k < pair.mass.size(); ++k) {
          p += pair.mass[k];
          q += pair.mass[k] * std::exp(-pair.offset - pair.loss[k]);
          if (!(pair.mass[k] > 1e-30)) continue;
          const double rounding = 1e-9 * std::abs(group.places[k]) + 1e-15;
          EXPECT_GE(pair.loss[k], group.places[k] - rounding);
          EXPECT_LE(pair.loss[k], group.places[k + 1] + rounding);
        }
        EXPECT_NEAR(p, 1, 1e-13);
        EXPECT_NEAR(q, 1, 1e-13);
      }
    }
  }
}

// The product of all moments along a line: between the bounds, and close to a quadrature of every
// single one. From above moments at real s are larger, from below smaller.
TEST(ListFamily, ProductOfMomentsMatchesQuadrature) {
  const std::vector<CountedPair> pairs =
      Lines(40, [](double t) { return Remove(0.01 * (1 + t), 0.9 + 0.3 * t); });
  constexpr double kTilt = 3;
  constexpr double kStep = 0.7;
  constexpr std::size_t kNodes = 9;
  const CutPairs cut(pairs, -40, 1500);
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
      log_product +=
          static_cast<double>(one.count) * std::log(Moment(*one.pair.pieces.front().density, s));
    }
    for (const MomentLine& line : {upper, lower}) {
      EXPECT_NEAR(line.log_modulus[k], log_product.real(), 2e-4);
      EXPECT_NEAR(std::cos(line.phase[k] - log_product.imag()), 1, 1e-6);
      EXPECT_LT(line.log_largest[k] - line.log_modulus[k], 1e-5);
    }
    if (k == 0) {
      EXPECT_GE(upper.log_largest[k], log_product.real() - 1e-10);
      EXPECT_LE(lower.log_modulus[k] - (lower.log_largest[k] - lower.log_modulus[k]),
                log_product.real() + 1e-10);
    }
  }
}

// What the basis leaves out is charged: the line of a family and the product of the lists of its
// pairs, one by one, differ by no more than the bounds say.
TEST(ListFamily, StaysWithinItsBoundsAlsoAwayFromWhereItWasSharpened) {
  const std::vector<CountedPair> pairs =
      Lines(60, [](double t) { return Remove(1e-3, 0.5 + 0.6 * t); });
  for (const Bound bound : {Bound::kUpper, Bound::kLower}) {
    const CutPairs cut(pairs, -30, 80);
    AtomComposition rough(cut, bound);
    AtomComposition sharp(cut, bound);
    rough.Sharpen(0.1, 0.2);
    sharp.Sharpen(4, 200);
    const MomentLine a = rough.Line(4, 11, 19);
    const MomentLine b = sharp.Line(4, 11, 19);
    for (std::size_t k = 0; k < a.phase.size(); ++k) {
      const std::complex<double> difference = std::polar(std::exp(a.log_modulus[k]), a.phase[k]) -
                                              std::polar(std::exp(b.log_modulus[k]), b.phase[k]);
      const double charged = std::exp(a.log_largest[k]) - std::exp(a.log_modulus[k]) +
                             std::exp(b.log_largest[k]) - std::exp(b.log_modulus[k]);
      EXPECT_LE(std::abs(difference), charged) << k;
    }
  }
}

// The contour is another engine: it inverts the exact moments.
TEST(Schedules, SharedListsContainTheContour) {
  const auto check = [](const std::vector<CountedPair>& pairs, const char* name) {
    for (const double log_delta : {-9.0, -16.0}) {
      const auto exact = ContourEpsilon(pairs, log_delta);
      ASSERT_TRUE(exact) << name;
      const Interval found = SmoothedEpsilon(pairs, log_delta, kBoth);
      EXPECT_LE(found.lower, exact->upper) << name;
      EXPECT_GE(found.upper, exact->lower) << name;
      EXPECT_LE(found.upper - found.lower, 5e-3 * found.upper) << name;
    }
  };
  check(Lines(80, [](double t) { return Remove(0.2, 1 + 0.5 * t); }), "remove");
  check(Lines(80, [](double t) { return Add(0.2, 1 + 0.5 * t); }), "add");
  check(Lines(80, [](double t) { return Remove(0.1 + 0.2 * t, 1.2 - 0.1 * t); }), "rates");
  check(Lines(80, [](double t) { return Replace(0.2, 2 + 0.5 * t); }), "replace");
}

// One line more than have lists of their own, which hardly counts: the families answer for the
// same releases as the single lists, of every mechanism that they know.
TEST(Schedules, SharedListsAgreeWithSingleOnes) {
  using Make = Event (*)(double, double, Adjacency);
  const Make poisson = [](double rate, double noise, Adjacency adjacency) {
    return Event::Poisson(SamplingRate(rate), Event::Gaussian(NoiseMultiplier(noise), adjacency));
  };
  const Make fixed = [](double rate, double noise, Adjacency adjacency) {
    return Event::Fixed(SamplingRate(rate), Event::Gaussian(NoiseMultiplier(noise), adjacency));
  };
  for (const Make make : {poisson, fixed}) {
    for (const Adjacency adjacency :
         {Adjacency::kAddRemove, Adjacency::kReplaceOne, Adjacency::kZeroOut}) {
      if (make == fixed && adjacency == Adjacency::kAddRemove) continue;
      constexpr double kRate = 0.005;
      std::vector<std::pair<Event, std::uint64_t>> steps;
      for (std::size_t i = 0; i < kMaxSingleLists; ++i) {
        steps.emplace_back(make(kRate, 0.7 + 0.02 * static_cast<double>(i), adjacency), 1);
      }
      const Event few = Event::Compose(steps, adjacency);
      steps.emplace_back(make(1e-12, 5, adjacency), 1);
      const Event many = Event::Compose(steps, adjacency);
      const Interval a = CertifiedEpsilon(few, std::log(1e-6), Effort::kQuick).value;
      const Interval b = CertifiedEpsilon(many, std::log(1e-6), Effort::kFull).value;
      EXPECT_LE(b.lower, a.upper * (1 + 1e-6) + 1e-9) << many.ToString();
      EXPECT_GE(b.upper, a.lower) << many.ToString();
      // Rare losses are set apart under Poisson sampling and add-remove alone.
      const bool apart = make == poisson && adjacency == Adjacency::kAddRemove;
      EXPECT_LE(b.upper - b.lower, (apart ? 2e-3 : 0.05) * b.upper) << many.ToString();
    }
  }
}

// Rounding every noise to either side brackets a schedule, and counts are repetitions.
TEST(Schedules, LieBetweenTheirRoundedOnes) {
  std::vector<std::pair<Event, std::uint64_t>> steps;
  std::vector<std::pair<Event, std::uint64_t>> quiet;
  std::vector<std::pair<Event, std::uint64_t>> loud;
  for (int i = 0; i < 120; ++i) {
    const double noise = 0.6 + 0.004 * i;
    const double rate = 2e-4 * (1 + i % 7);
    steps.emplace_back(testing::Sampled(rate, noise), 1 + i % 4);
    quiet.emplace_back(testing::Sampled(rate * 1.02, noise * 0.99), 1 + i % 4);
    loud.emplace_back(testing::Sampled(rate * 0.98, noise * 1.01), 1 + i % 4);
  }
  const auto epsilon = [](const auto& children) {
    return CertifiedEpsilon(Event::Compose(children, Adjacency::kAddRemove), std::log(1e-7),
                            Effort::kFull)
        .value;
  };
  const Interval value = epsilon(steps);
  EXPECT_LE(value.upper - value.lower, 0.01 * value.upper);
  EXPECT_LT(value.upper, epsilon(quiet).lower);
  EXPECT_GT(value.lower, epsilon(loud).upper);
}

}  // namespace
}  // namespace sordino
