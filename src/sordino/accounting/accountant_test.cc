// The certified interval as a whole. Which test notices which mistake (each was tried):
//   sigma one per cent off            ContainsValuesComputedInHighPrecision, the vectors
//   sampling rate one per cent off    the same, DominatingPair.SamplingAmplifiesExactly...
//   one direction left out            BothDirectionsAreAccounted
//   mass at infinity dropped          LeaksAreAccounted, Grid.MassAtInfinityComposes
//   counts one per cent off           Contour.ContainsValuesComputedInHighPrecision
//   errors with the wrong sign        the same; Grid.OneStepMatchesTheExactRelease
//   contour cut too early             Contour.PureGaussiansMatchTheClosedForm
//   linear instead of e^-l splitting  Discretise.KeepsTheMassOfBothDistributions
//   losses rounded up in kLower       Discretise.LowerIsDominatedAtEveryEpsilon
//   lost range not charged            Discretise.AShortRangeIsStillABound
//   fixed batches with half the shift DominatingPair.ReplaceOneGluesTheDirectionsAtZero
//   calibration's bad end returned    CalibrateNoise.IsTightAndNeverOnTheWrongSide
#include "sordino/accounting/accountant.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/testing/engine_test_support.h"

namespace sordino {
namespace {

using testing::Sampled;
using testing::Steps;

Interval EpsilonAt(const Event& event, double delta) {
  return CertifiedEpsilon(event, std::log(delta)).value;
}

TEST(Accountant, PureGaussiansAreExactToTwelveDigits) {
  for (const double noise : {0.1, 1.0, 300.0}) {
    for (const double steps : {1.0, 17.0, 1e6}) {
      for (const double delta : {0.3, 1e-6, 1e-100, 1e-300}) {
        const double exact = GaussianEpsilon(std::sqrt(steps) / noise, std::log(delta));
        const Interval epsilon =
            EpsilonAt(Steps(Event::Gaussian(NoiseMultiplier(noise)), steps), delta);
        EXPECT_NEAR(epsilon.lower, exact, 2e-12 * exact) << noise << " " << steps << " " << delta;
        EXPECT_NEAR(epsilon.upper, exact, 2e-12 * exact) << noise << " " << steps << " " << delta;
      }
    }
  }
}

// The values of contour_test.cc (mpmath, 40 digits), asked as events: the larger direction counts.
TEST(Accountant, ContainsValuesComputedInHighPrecision) {
  struct Truth {
    Event event;
    double delta;
    double epsilon;
  };
  const std::vector<Truth> truths = {
      {Steps(Sampled(1e-5, 1), 1e7), 1e-8, 0.19641841672513586},
      {Steps(Sampled(0.01, 1), 1e4), 1e-6, 6.9073844950450821},
      {Steps(Sampled(0.00033, 4), 1e4), 1.1e-18, 0.067213614105919156},
      {Steps(Sampled(0.001, 10), 1e3), 1e-6, 0.0097373555461063768},
      {Steps(Sampled(0.9, 1.2), 64), 1e-4, 40.586168619799004},
      {Steps(Sampled(0.02, 10), 1e6), 1e-12, 15.690121560731677},
      {Steps(Sampled(0.01, 2, Adjacency::kReplaceOne), 1e4), 1e-6, 4.9073981921735107}};
  for (const Truth& truth : truths) {
    const Interval epsilon = EpsilonAt(truth.event, truth.delta);
    EXPECT_LE(epsilon.lower, truth.epsilon) << truth.event.ToString();
    EXPECT_GE(epsilon.upper, truth.epsilon) << truth.event.ToString();
    EXPECT_LE(epsilon.upper - epsilon.lower, 1e-7 * truth.epsilon) << truth.event.ToString();
  }
}

// Under zero-out the report without the record is uniform. With p = 0.1 and two buckets it is
// (0.95, 0.05) against (0.5, 0.5): the second direction has the loss log 10, the first log 1.9.
TEST(Accountant, BothDirectionsAreAccounted) {
  const Event event = Event::RandomizedResponse(0.1, 2, Adjacency::kZeroOut);
  const Certified pure = CertifiedEpsilon(event, -kInfinity);
  EXPECT_NEAR(pure.value.upper, std::log(10), 1e-12);
  EXPECT_NEAR(pure.value.lower, std::log(10), 1e-12);
  // Ten reports at delta 1e-3: P(all ten in the rare bucket) = 2^-10.
  const Interval ten = EpsilonAt(Steps(event, 10), 0.5 / 1024);
  EXPECT_GT(ten.lower, 9 * std::log(10));
  EXPECT_LE(ten.upper, 10 * std::log(10) * (1 + 1e-9));
}

// Drawn with rate 0.9: (0.905, 0.095) with the record, and one half each without it.
TEST(Accountant, BothDirectionsOfASampledMechanismAreAccounted) {
  const Event event =
      Event::Poisson(SamplingRate(0.9), Event::RandomizedResponse(0.1, 2, Adjacency::kZeroOut));
  const Interval pure = CertifiedEpsilon(event, -kInfinity).value;
  EXPECT_NEAR(pure.upper, std::log(0.5 / 0.095), 1e-12);
  EXPECT_NEAR(pure.lower, std::log(0.5 / 0.095), 1e-12);
}

// Every loss below epsilon is attained.
TEST(Accountant, AnExponentialMechanismCostsItsEpsilon) {
  const Interval pure = CertifiedEpsilon(Event::Exponential(Epsilon(0.7)), -kInfinity).value;
  EXPECT_NEAR(pure.upper, 0.7, 1e-12);
  EXPECT_NEAR(pure.lower, 0.7, 1e-9);
}

TEST(Accountant, LeaksAreAccounted) {
  const Event event = Event::Compose(
      {{Sampled(0.05, 1.5), 400}, {Event::Approximate(Epsilon(0.1), Delta(1e-7)), 3}});
  const double leak = -std::expm1(3 * std::log1p(-1e-7));
  EXPECT_TRUE(std::isinf(EpsilonAt(event, 0.99 * leak).upper));
  EXPECT_FALSE(CertifiedEpsilon(event, std::log(0.99 * leak)).reason.empty());
  EXPECT_TRUE(std::isfinite(EpsilonAt(event, 1.5 * leak).upper));
  EXPECT_GE(std::exp(CertifiedLogDelta(event, 60).value.upper), leak * (1 - 1e-9));
}

TEST(Accountant, TrivialQuestionsHaveTrivialAnswers) {
  const Event event = Steps(Sampled(0.01, 1), 100);
  EXPECT_EQ(CertifiedEpsilon(event, 0).value.upper, 0);
  EXPECT_TRUE(std::isinf(CertifiedEpsilon(event, -kInfinity).value.upper));
  EXPECT_FALSE(CertifiedEpsilon(event, -kInfinity).reason.empty());
  EXPECT_EQ(EpsilonAt(Event::None(), 1e-5).upper, 0);
  EXPECT_EQ(EpsilonAt(Steps(Sampled(0, 1), 100), 1e-5).upper, 0);
  const AccountReport pure = Account(Steps(Event::Laplace(NoiseMultiplier(4)), 8), Delta(0));
  EXPECT_NEAR(pure.value.upper, 2, 1e-12);
  EXPECT_NEAR(pure.value.lower, 2, 1e-12);
  EXPECT_EQ(Account(event, Delta(1)).value.upper, 0);
}

// The true delta is about e^-1216, below the smallest double: zero would be a false promise.
TEST(Accountant, ADeltaThatUnderflowsIsNotZero) {
  const AccountReport report = AccountDelta(Event::Gaussian(NoiseMultiplier(1)), Epsilon(50));
  EXPECT_GT(report.value.upper, 0);
  EXPECT_EQ(report.value.lower, 0);
  const AccountReport bounded = AccountDelta(Event::Laplace(NoiseMultiplier(1)), Epsilon(50));
  EXPECT_EQ(bounded.value.upper, 0);
}

TEST(Accountant, ParallelPartsCostTheWorst) {
  const Event weak = Steps(Sampled(0.01, 1), 500);
  const Event strong = Steps(Sampled(0.02, 1), 500);
  const Interval both = EpsilonAt(Event::Parallel({weak, strong}), 1e-6);
  const Interval worst = EpsilonAt(strong, 1e-6);
  EXPECT_LE(both.lower, worst.upper);
  EXPECT_GE(both.upper, worst.lower);
  EXPECT_NEAR(both.upper, worst.upper, 1e-9 * worst.upper);
}

TEST(Accountant, ReportNamesTheMethodThatDecides) {
  const AccountReport report = Account(Steps(Sampled(0.01, 4), 10000), Delta(1e-5));
  EXPECT_EQ(report.decided_by, "pld");
  for (const char* name : {"pld", "rdp", "moments", "gdp", "basic"}) {
    EXPECT_TRUE(std::any_of(report.methods.begin(), report.methods.end(),
                            [&](const MethodReport& method) { return method.name == name; }) ||
                std::any_of(report.skipped.begin(), report.skipped.end(),
                            [&](const auto& skip) { return skip.first == name; }))
        << name;
  }
  const AccountReport deltas = AccountDelta(Steps(Sampled(0.01, 4), 10000), Epsilon(0.94686680076));
  EXPECT_LE(deltas.value.lower, 1e-5 * (1 + 1e-9));
  EXPECT_GE(deltas.value.upper, 1e-5 * (1 - 1e-9));
}

// ---- Properties of random compositions ---------------------------------------------------------

struct Draws {
  std::mt19937_64 engine;
  double LogUniform(double low, double high) {
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(engine));
  }
  int Choice(int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine); }

  Event Release(Adjacency adjacency, double stretch_noise = 1, double stretch_rate = 1) {
    const double noise = LogUniform(0.7, 20) * stretch_noise;
    const double rate = std::min(1.0, LogUniform(1e-3, 0.5) * stretch_rate);
    const int mechanism = Choice(4);
    const int sampling = Choice(3);
    Event leaf = mechanism == 0   ? Event::Laplace(NoiseMultiplier(noise), adjacency)
                 : mechanism == 1 ? Event::DiscreteGaussian(noise, 1, adjacency)
                                  : Event::Gaussian(NoiseMultiplier(noise), adjacency);
    if (sampling == 0) return leaf;
    if (sampling == 1 && adjacency == Adjacency::kReplaceOne) {
      return Event::Fixed(SamplingRate(rate), leaf);
    }
    return Event::Poisson(SamplingRate(rate), leaf);
  }
};

TEST(AccountantProperty, LowerIsBelowUpperAndBelowEverySoundMethod) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Draws draws{std::mt19937_64(1000 + seed)};
    const Adjacency adjacency =
        draws.Choice(2) == 0 ? Adjacency::kAddRemove : Adjacency::kReplaceOne;
    const Event event = Event::Compose(
        {{draws.Release(adjacency), static_cast<std::uint64_t>(draws.LogUniform(1, 3000))},
         {draws.Release(adjacency), static_cast<std::uint64_t>(draws.LogUniform(1, 30))}});
    const double delta = draws.LogUniform(1e-15, 0.1);
    const AccountReport report = Account(event, Delta(delta));
    EXPECT_GE(report.value.lower, 0) << event.ToString();
    EXPECT_LE(report.value.lower, report.value.upper) << event.ToString();
    const Interval certified = EpsilonAt(event, delta);
    for (const MethodReport& method : report.methods) {
      if (!method.sound) continue;
      EXPECT_GE(method.value, certified.lower * (1 - 1e-10))
          << method.name << " " << event.ToString() << " " << delta;
    }
  }
}

TEST(AccountantProperty, MonotoneInStepsNoiseRateAndDelta) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const auto release = [&](double noise, double rate) {
      Draws draws{std::mt19937_64(2000 + seed)};
      return draws.Release(Adjacency::kAddRemove, noise, rate);
    };
    Draws draws{std::mt19937_64(3000 + seed)};
    const double steps = std::ceil(draws.LogUniform(2, 3000));
    const double delta = draws.LogUniform(1e-12, 0.05);
    const Event event = Steps(release(1, 1), steps);
    const Interval base = EpsilonAt(event, delta);
    // Allowing for the widths: the lower end of the better never passes the upper end of the worse.
    EXPECT_LE(base.lower, EpsilonAt(Steps(release(1, 1), steps + 1), delta).upper)
        << event.ToString();
    EXPECT_LE(EpsilonAt(Steps(release(1.05, 1), steps), delta).lower, base.upper)
        << event.ToString();
    EXPECT_LE(EpsilonAt(Steps(release(1, 0.95), steps), delta).lower, base.upper)
        << event.ToString();
    EXPECT_LE(EpsilonAt(event, delta * 1.1).lower, base.upper) << event.ToString();
    // And the change is seen where the intervals are narrow.
    const Interval doubled = EpsilonAt(Steps(release(1, 1), 2 * steps), delta);
    if (base.upper - base.lower < 1e-3 * base.upper) {
      EXPECT_GE(doubled.upper, base.upper) << event.ToString();
    }
  }
}

TEST(AccountantProperty, RepeatingIsComposing) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Draws draws{std::mt19937_64(4000 + seed)};
    const Event step = draws.Release(Adjacency::kAddRemove);
    const auto steps = static_cast<std::uint64_t>(draws.LogUniform(2, 40));
    const double delta = draws.LogUniform(1e-10, 1e-2);
    const Interval counted = EpsilonAt(Event::Repeat(step, steps), delta);
    const Interval listed = EpsilonAt(Event::Compose(std::vector<Event>(steps, step)), delta);
    EXPECT_EQ(counted.upper, listed.upper) << step.ToString() << " x " << steps;
    EXPECT_EQ(counted.lower, listed.lower) << step.ToString() << " x " << steps;
  }
}

TEST(AccountantProperty, OrderDoesNotMatter) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Draws draws{std::mt19937_64(5000 + seed)};
    std::vector<std::pair<Event, std::uint64_t>> groups;
    groups.reserve(3);
    for (int i = 0; i < 3; ++i) {
      groups.emplace_back(draws.Release(Adjacency::kAddRemove),
                          static_cast<std::uint64_t>(draws.LogUniform(1, 200)));
    }
    const double delta = draws.LogUniform(1e-10, 1e-2);
    const Interval forward = EpsilonAt(Event::Compose(groups), delta);
    std::reverse(groups.begin(), groups.end());
    const Interval backward = EpsilonAt(Event::Compose(groups), delta);
    EXPECT_LE(forward.lower, backward.upper) << seed;
    EXPECT_LE(backward.lower, forward.upper) << seed;
    EXPECT_NEAR(forward.upper, backward.upper, 1e-4 * forward.upper) << seed;
  }
}

TEST(AccountantProperty, TextRoundTripKeepsTheAnswer) {
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    Draws draws{std::mt19937_64(6000 + seed)};
    const Event event = Event::Compose({{draws.Release(Adjacency::kReplaceOne),
                                         static_cast<std::uint64_t>(draws.LogUniform(1, 99))},
                                        {draws.Release(Adjacency::kReplaceOne), 1}});
    const Event back = Event::Parse(event.ToString());
    EXPECT_EQ(event, back) << event.ToString();
    const Interval a = EpsilonAt(event, 1e-6);
    const Interval b = EpsilonAt(back, 1e-6);
    EXPECT_EQ(a.lower, b.lower) << event.ToString();
    EXPECT_EQ(a.upper, b.upper) << event.ToString();
  }
}

TEST(AccountantProperty, DeltaAndEpsilonAreInverse) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Draws draws{std::mt19937_64(7000 + seed)};
    const Event event = Event::Repeat(draws.Release(Adjacency::kAddRemove),
                                      static_cast<std::uint64_t>(draws.LogUniform(1, 3000)));
    const double delta = draws.LogUniform(1e-12, 1e-2);
    const Interval epsilon = EpsilonAt(event, delta);
    if (epsilon.upper == 0) continue;
    EXPECT_LE(CertifiedLogDelta(event, epsilon.upper).value.lower, std::log(delta) + 1e-10)
        << event.ToString();
    EXPECT_GE(CertifiedLogDelta(event, epsilon.lower).value.upper, std::log(delta) - 1e-10)
        << event.ToString();
  }
}

}  // namespace
}  // namespace sordino
