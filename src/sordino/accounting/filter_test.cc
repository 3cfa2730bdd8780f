#include "sordino/accounting/filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <vector>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/internal/atoms/atom_transform.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"
#include "sordino/accounting/renyi.h"
#include "sordino/accounting/testing/random_event.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

Event RandomStep(std::mt19937_64& random, bool gaussian_only) {
  std::uniform_real_distribution<double> uniform(0, 1);
  Event gaussian = Event::Gaussian(NoiseMultiplier(std::exp(1 + 3 * uniform(random))));
  if (gaussian_only) return gaussian;
  switch (random() % 4) {
    case 0:
      return gaussian;
    case 1:
      return Event::Poisson(SamplingRate(0.001 + 0.2 * uniform(random)), gaussian);
    case 2:
      return Event::Laplace(NoiseMultiplier(std::exp(2 + 3 * uniform(random))));
    default:
      return Event::Exponential(Epsilon(0.2 * uniform(random)));
  }
}

// Steps are drawn, and the run reacts to what the filter said; the whole, accounted afterwards,
// must lie inside the budget.
TEST(PrivacyFilter, AdaptiveRunsNeverPassTheBudget) {
  std::mt19937_64 random(6);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int run = 0; run < 60; ++run) {
    const Epsilon epsilon(std::exp(-2 + 4 * uniform(random)));
    const Delta delta(std::exp(-5 - 60 * uniform(random)));
    const bool gaussian_only = run % 3 == 2;
    PrivacyFilter filter = run % 3 == 0
                               ? PrivacyFilter::Renyi(epsilon, delta, RandomStep(random, false))
                           : run % 3 == 1 ? PrivacyFilter::Zcdp(epsilon, delta)
                                          : PrivacyFilter::Gaussian(epsilon, delta);
    std::vector<Event> taken;
    int refused = 0;
    for (int i = 0; i < 400 && refused < 20; ++i) {
      const Event step = RandomStep(random, gaussian_only);
      const bool admitted = filter.Admits(step);
      ASSERT_EQ(filter.Charge(step), admitted);
      if (admitted) taken.push_back(step);
      refused += admitted ? 0 : 1;
      ASSERT_LE(filter.Spent(), filter.Budget());
      ASSERT_LE(filter.SpentEpsilon(), epsilon.value() * (1 + 1e-9));
    }
    const double log_delta = std::log(delta.value());
    if (gaussian_only) {
      double squares = 0;
      for (const Event& step : taken) squares += std::pow(step.number("noise"), -2);
      ASSERT_LE(GaussianEpsilon(std::sqrt(squares), log_delta), epsilon.value() * (1 + 1e-9));
    } else {
      RenyiCurve whole(Event::Compose(taken));
      ASSERT_LE(whole.ToEpsilon(log_delta).epsilon, epsilon.value() * (1 + 1e-9));
    }
  }
}

// log E_P[(dP/dQ)^(order - 1)] / (order - 1) of a pair of neighbours that exists, from below: the
// losses are merged into atoms, which is post-processing.
double AttainedDivergence(const LossPair& pair, double order) {
  if (pair.gaussian_mu > 0) return 0.5 * order * pair.gaussian_mu * pair.gaussian_mu;
  if (pair.atoms.empty() && pair.pieces.empty()) return 0;
  const AtomTransform list(ListAtoms(pair, -60, 300, Bound::kLower), 1);
  const double moment = list.Excess(order - 1) - list.ExcessError(order - 1);
  return moment > -1 ? std::log1p(moment) / (order - 1) : 0;
}

// Steps of every kind: what each filter charges is at least the divergence of neighbours that
// exist, at every order that its theorem speaks of.
TEST(PrivacyFilter, ChargesAreNeverBelowAnAttainedDivergence) {
  std::set<std::string_view> seen;
  for (std::uint64_t seed = 0; seed < 160; ++seed) {
    std::mt19937_64 random(seed);
    const Event event = testing::RandomEvent(random);
    for (const auto& [step, count] : event.Flatten()) {
      if (step.IsParallel()) continue;
      const Epsilon epsilon(1e6);
      PrivacyFilter zcdp = PrivacyFilter::Zcdp(epsilon, Delta(0.5));
      PrivacyFilter gaussian = PrivacyFilter::Gaussian(epsilon, Delta(0.5));
      const bool has_rho = zcdp.Charge(step);
      const bool has_mu = gaussian.Charge(step);
      const DominatingPairs pairs = DominatingPairsOf(step);
      for (const double order : {1.2, 3.0, 17.5}) {
        PrivacyFilter renyi = PrivacyFilter::Renyi(epsilon, Delta(0.5), RenyiOrder(order));
        const bool has_curve = renyi.Charge(step);
        for (const LossPair& pair : pairs.attained()) {
          const double least = AttainedDivergence(pair, order) * (1 - 1e-10);
          if (!std::isfinite(least)) continue;  // beyond the range of doubles
          const double none = kInfinity;
          EXPECT_GE(has_curve ? renyi.Spent() : none, least) << order << " " << step.ToString();
          EXPECT_GE(has_rho ? zcdp.Spent() * order : none, least) << step.ToString();
          EXPECT_GE(has_mu ? 0.5 * gaussian.Spent() * order : none, least) << step.ToString();
          if (has_curve && least > 0) seen.insert(step.name());
        }
      }
    }
  }
  EXPECT_GE(seen.size(), 14U) << "kinds of steps";
}

TEST(PrivacyFilter, EqualStepsComeCloseToTheBudget) {
  const Event step = Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(1)));
  PrivacyFilter filter = PrivacyFilter::Renyi(Epsilon(4), Delta(1e-6), step);
  std::uint64_t count = 0;
  while (filter.Charge(step)) ++count;
  RenyiCurve used(Event::Repeat(step, count));
  EXPECT_LE(used.ToEpsilon(std::log(1e-6)).epsilon, 4);
  EXPECT_GE(used.ToEpsilon(std::log(1e-6)).epsilon, 3.95);

  PrivacyFilter gaussian = PrivacyFilter::Gaussian(Epsilon(1), Delta(1e-5));
  count = 0;
  while (gaussian.Charge(Event::Gaussian(NoiseMultiplier(50)))) ++count;
  EXPECT_GE(GaussianEpsilon(std::sqrt(static_cast<double>(count + 1)) / 50, std::log(1e-5)), 1);
}

// From 40-digit arithmetic: the tight conversion solved for R, the least over all orders of the
// converted rho, and the exact curve of the Gaussian solved for mu^2.
TEST(PrivacyFilter, BudgetsAreThoseOfIndependentArithmetic) {
  struct Row {
    double epsilon, delta, renyi8, renyi40, rho, mu2;
  };
  for (const Row& row :
       {Row{0.5, 1e-6, 0, 0.26566060019325557, 0.0066415243566605020, 0.015402336227187658},
        Row{4, 1e-9, 1.4701279218721547, 3.5885386699629444, 0.20631290922949073,
            0.45176100881088999},
        Row{20, 1e-3, 19.443772287295622, 19.942782530423567, 7.2587770597008760,
            16.428010036474333}}) {
    const Epsilon epsilon(row.epsilon);
    const Delta delta(row.delta);
    const auto expect = [](double budget, double exact) {
      EXPECT_LE(budget, exact);
      EXPECT_GE(budget, exact * (1 - 1e-6));
    };
    expect(PrivacyFilter::Renyi(epsilon, delta, RenyiOrder(8)).Budget(), row.renyi8);
    expect(PrivacyFilter::Renyi(epsilon, delta, RenyiOrder(40)).Budget(), row.renyi40);
    expect(PrivacyFilter::Zcdp(epsilon, delta).Budget(), row.rho);
    expect(PrivacyFilter::Gaussian(epsilon, delta).Budget(), row.mu2);
  }
}

TEST(PrivacyFilter, CountsStepsBelowTheLastDigitOfTheSum) {
  PrivacyFilter filter = PrivacyFilter::Gaussian(Epsilon(1), Delta(1e-5));
  ASSERT_TRUE(filter.Charge(Event::Gaussian(NoiseMultiplier(5))));
  const double before = filter.Spent();
  ASSERT_TRUE(filter.Charge(Event::Gaussian(NoiseMultiplier(1e12))));
  EXPECT_GT(filter.Spent(), before);
  PrivacyOdometer odometer(Delta(1e-5));
  odometer.Charge(Event::Gaussian(NoiseMultiplier(5)));
  const double spent = odometer.Spent();
  odometer.Charge(Event::Gaussian(NoiseMultiplier(1e12)));
  EXPECT_GT(odometer.Spent(), spent);
}

TEST(PrivacyFilter, RefusesStepsOfAnotherAdjacency) {
  const Event replace = Event::Gaussian(NoiseMultiplier(100), Adjacency::kReplaceOne);
  PrivacyFilter filter = PrivacyFilter::Zcdp(Epsilon(1), Delta(1e-5));
  EXPECT_TRUE(filter.Charge(Event::Gaussian(NoiseMultiplier(100))));
  const double spent = filter.Spent();
  EXPECT_THROW(filter.Charge(replace), Error);
  EXPECT_THROW(filter.Admits(replace), Error);
  EXPECT_EQ(filter.Spent(), spent);
  EXPECT_TRUE(filter.Charge(Event::None(Adjacency::kReplaceOne)));
  PrivacyOdometer odometer(Delta(1e-5));
  odometer.Charge(replace);
  EXPECT_THROW(odometer.Charge(Event::Gaussian(NoiseMultiplier(100))), Error);
}

TEST(PrivacyFilter, RefusesWhatItCannotMeasure) {
  const Event approximate = Event::Approximate(Epsilon(0.01), Delta(1e-9));
  PrivacyFilter renyi = PrivacyFilter::Renyi(Epsilon(1), Delta(1e-5), RenyiOrder(20));
  EXPECT_FALSE(renyi.Charge(approximate));
  EXPECT_EQ(renyi.Spent(), 0);
  EXPECT_TRUE(renyi.Charge(Event::Gaussian(NoiseMultiplier(100))));
  PrivacyFilter gaussian = PrivacyFilter::Gaussian(Epsilon(1), Delta(1e-5));
  // The central limit estimate of a sampled Gaussian is no bound.
  EXPECT_FALSE(
      gaussian.Charge(Event::Poisson(SamplingRate(1e-6), Event::Gaussian(NoiseMultiplier(100)))));
  EXPECT_THROW(PrivacyFilter::Renyi(Epsilon(1), Delta(1e-5), approximate), Error);
  EXPECT_THROW(PrivacyFilter::Zcdp(Epsilon(1), Delta(0)), Error);
  EXPECT_THROW(PrivacyFilter::Gaussian(Epsilon(kInfinity), Delta(1e-5)), Error);
}

TEST(PrivacyFilter, TooSmallABudgetAdmitsNothing) {
  // At order 2 the conversion alone costs more than epsilon.
  PrivacyFilter filter = PrivacyFilter::Renyi(Epsilon(0.1), Delta(1e-9), RenyiOrder(2));
  EXPECT_EQ(filter.Budget(), 0);
  EXPECT_FALSE(filter.Charge(Event::Gaussian(NoiseMultiplier(1000))));
  EXPECT_TRUE(filter.Charge(Event::None()));
}

// From 40-digit arithmetic: the rung above the spend, its share of delta, the least over all orders
// of its conversion, or the conversion at order 16.
TEST(PrivacyOdometer, ReportsWhatIndependentArithmeticDoes) {
  struct Row {
    std::uint64_t steps;
    double noise, delta, zcdp, order16;
  };
  for (const Row& row : {Row{1, 30, 1e-6, 0.20210744385016799, 1.3775323825096414},
                         Row{100, 30, 1e-6, 2.1970156103448876, 2.3817317190558823},
                         Row{1000, 2, 1e-9, 251.29386999426926, 2197.7291846066197}}) {
    const Event run = Event::Repeat(Event::Gaussian(NoiseMultiplier(row.noise)), row.steps);
    PrivacyOdometer zcdp{Delta(row.delta)};
    zcdp.Charge(run);
    EXPECT_NEAR(zcdp.Epsilon(), row.zcdp, 1e-9 * row.zcdp);
    PrivacyOdometer renyi(Delta(row.delta), RenyiOrder(16));
    renyi.Charge(run);
    EXPECT_NEAR(renyi.Epsilon(), row.order16, 1e-9 * row.order16);
  }
}

TEST(PrivacyOdometer, ReportsAtLeastTheFixedAnswerAndRises) {
  PrivacyOdometer odometer(Delta(1e-6));
  EXPECT_EQ(odometer.Epsilon(), 0);
  const Event step = Event::Gaussian(NoiseMultiplier(30));
  double previous = 0;
  for (std::uint64_t i = 1; i <= 300; ++i) {
    odometer.Charge(step);
    RenyiCurve curve(Event::Repeat(step, i));
    const double fixed = curve.ToEpsilon(std::log(1e-6)).epsilon;
    ASSERT_GE(odometer.Epsilon(), fixed);
    ASSERT_LE(odometer.Epsilon(), 2 * fixed);
    ASSERT_GE(odometer.Epsilon(), previous);
    previous = odometer.Epsilon();
  }
  PrivacyOdometer renyi(Delta(1e-6), RenyiOrder(16));
  renyi.Charge(Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(1))));
  EXPECT_GT(renyi.Epsilon(), 0);
  EXPECT_THROW(renyi.Charge(Event::Approximate(Epsilon(1), Delta(0.1))), Error);
}

}  // namespace
}  // namespace sordino
