#include "sordino/ledger/release_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/renyi.h"
#include "sordino/ledger/budget_filter.h"

namespace sordino {
namespace {

Event PureOf(double epsilon) { return Event::Pure(Epsilon(epsilon)); }
Event ApproximateOf(double epsilon, double delta) {
  return Event::Approximate(Epsilon(epsilon), Delta(delta));
}

TEST(KeptPart, ApproximateEventsBecomePureOnesWhereverTheyStand) {
  const KeptPart leaf = KeptPartOf(ApproximateOf(0.5, 1e-7));
  EXPECT_EQ(leaf.event, PureOf(0.5));
  EXPECT_EQ(leaf.loss, 1e-7);
  const Event sampled = Event::Poisson(SamplingRate(0.1), ApproximateOf(0.5, 1e-7));
  EXPECT_EQ(KeptPartOf(sampled).event, Event::Poisson(SamplingRate(0.1), PureOf(0.5)));
  EXPECT_EQ(KeptPartOf(sampled).loss, 1e-7);
  const KeptPart several = KeptPartOf(Event::Compose(
      {{ApproximateOf(0.5, 1e-7), 3}, {sampled, 2}, {Event::Gaussian(NoiseMultiplier(2)), 1}}));
  EXPECT_NEAR(several.loss, 5e-7, 1e-15);
  EXPECT_GE(several.loss, 5e-7);
  EXPECT_TRUE(RenyiInapplicable(several.event).empty());
  EXPECT_EQ(KeptPartOf(Event::Parallel({ApproximateOf(0.5, 1e-7), ApproximateOf(0.1, 3e-7)})).loss,
            3e-7);
}

TEST(KeptPart, WhatCannotBeSplitStaysAsItIs) {
  for (const char* text : {"add-remove: gaussian(2)", "add-remove: approximate(1, 0)",
                           "replace-one: poisson(0.1, approximate(1, 1e-06))",
                           "add-remove: fixed(0.1, approximate(1, 1e-06))"}) {
    const KeptPart kept = KeptPartOf(Event::Parse(text));
    EXPECT_EQ(kept.event.ToString(), text);
    EXPECT_EQ(kept.loss, 0);
  }
}

// Two laws within e^p of each other, and two others within tau of them: the measures of the proof,
// outcome by outcome.
TEST(FailureLoss, IsAtLeastWhatTheWorstFailureLoses) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> unit(0, 1);
  constexpr int kOutcomes = 5;
  double closest = 0;
  for (int round = 0; round < 20'000; ++round) {
    const double p = 3 * unit(random);
    const double tau = std::pow(10, -3 * unit(random) - 0.5);
    // Randomised response with a random further split of both of its outcomes.
    const double heads = 1 / (1 + std::exp(-p));
    std::vector<double> ideal_p;
    std::vector<double> ideal_q;
    const double cut = unit(random);
    for (const double part : {cut, 1 - cut}) {
      ideal_p.push_back(heads * part);
      ideal_q.push_back((1 - heads) * part);
    }
    for (const double part : {0.5, 0.3, 0.2}) {
      ideal_p.push_back((1 - heads) * part);
      ideal_q.push_back(heads * part);
    }
    const auto moved = [&](const std::vector<double>& law) {
      std::vector<double> other = law;
      const auto from = static_cast<std::size_t>(random() % kOutcomes);
      const auto to = static_cast<std::size_t>(random() % kOutcomes);
      const double mass = std::min(tau, other[from]);
      other[from] -= mass;
      other[to] += mass;
      return other;
    };
    const std::vector<double> law_p = moved(ideal_p);
    const std::vector<double> law_q = moved(ideal_q);
    double kept_p = 0;
    for (std::size_t i = 0; i < kOutcomes; ++i) {
      const double h = std::min({1.0, law_p[i] / ideal_p[i], law_q[i] / ideal_q[i]});
      ASSERT_LE(h * ideal_p[i], law_p[i] * (1 + 1e-12));
      ASSERT_LE(h * ideal_q[i], law_q[i] * (1 + 1e-12));
      kept_p += h * ideal_p[i];
    }
    const double loss = FailureLoss(PureOf(p), tau);
    ASSERT_GE(loss, 1 - kept_p - 1e-12);
    closest = std::max(closest, (1 - kept_p) / loss);
  }
  EXPECT_GT(closest, 0.9);  // the bound is nearly reached
}

// The largest mass that N(mu, 1) gives to a set of mass tau of N(0, 1).
TEST(FailureLoss, CoversTheTradeOffOfAGaussian) {
  for (const double noise : {0.5, 1.0, 4.0, 40.0}) {
    for (const double tau : {1e-6, 1e-12, 1e-22}) {
      double low = 0;
      double high = 40;
      for (int i = 0; i < 200; ++i) {
        const double middle = 0.5 * (low + high);
        (UpperTail(middle) > tau ? low : high) = middle;
      }
      const double worst = tau + UpperTail(low - 1 / noise);
      const double loss = FailureLoss(Event::Gaussian(NoiseMultiplier(noise)), tau);
      EXPECT_GE(loss, worst);
      EXPECT_LE(loss, std::sqrt(worst)) << noise << " " << tau;
    }
  }
  EXPECT_EQ(FailureLoss(PureOf(1), 0), 0);
}

// Hockey-stick divergences of randomised response and of a Gaussian.
TEST(ReleaseCosts, APureMechanismIsWithinTheGaussianThatTheFilterCounts) {
  Budget budget{.epsilon = Epsilon(8), .delta = Delta(1e-5), .filter = FilterKind::kGaussian};
  for (const double epsilon : {1e-3, 0.1, 1.0, 5.0, 20.0}) {
    const double mu = std::sqrt(CostsOf(PureOf(epsilon), budget, 0).filter);
    for (double e = -epsilon; e <= epsilon; e += epsilon / 50) {
      const double p = 1 / (1 + std::exp(-epsilon));
      const double response =
          std::max(0.0, p - std::exp(e) * (1 - p)) + std::max(0.0, (1 - p) - std::exp(e) * p);
      const double gaussian = UpperTail(e / mu - mu / 2) - std::exp(e) * UpperTail(e / mu + mu / 2);
      EXPECT_LE(response, gaussian + 1e-12) << epsilon << " " << e;
    }
  }
  EXPECT_NEAR(std::sqrt(CostsOf(PureOf(1e-3), budget, 0).filter), 1e-3 * std::sqrt(M_PI / 2), 1e-6);
}

TEST(ReleaseCosts, ALedgerFromBeforeMeasuresAsItDid) {
  const Budget old{.epsilon = Epsilon(8), .delta = Delta(1e-5), .loss_share = 0};
  const ReleaseCosts costs = CostsOf(ApproximateOf(0.1, 1e-9), old, 4);
  EXPECT_EQ(costs.pure, kInfinity);
  EXPECT_EQ(costs.filter, kInfinity);
  EXPECT_EQ(costs.loss, 0);
}

// Every strategy that chooses its next step after what it has seen, as in BudgetFilter's test, with
// the worst approximate mechanism: it tells everything with probability delta and is randomised
// response else.
class LossAdversary {
 public:
  LossAdversary(const Budget& budget, const Event& small, const Event& large)
      : budget_(budget), start_(budget), small_(small), large_(large) {
    start_.BeginRun("run", small, start_.TermsFor(PureOf(kUnit), 0));
  }

  double Gain() { return ValueAt(0, 0, 0); }
  int Most() const { return most_; }

  static constexpr double kUnit = 0.1;

 private:
  struct Step {
    int units;
    double loss;
  };
  Step StepOf(const Event& event) const {
    const KeptPart kept = KeptPartOf(event);
    return {static_cast<int>(std::lround(kept.event.number("epsilon") / kUnit)), kept.loss};
  }
  bool Admits(int smalls, int larges) {
    const auto key = std::make_pair(smalls, larges);
    if (const auto known = admitted_.find(key); known != admitted_.end()) return known->second;
    const bool admitted =
        start_
            .Admits("run",
                    Event::Compose({{small_, static_cast<std::uint64_t>(smalls)},
                                    {large_, static_cast<std::uint64_t>(larges)}}),
                    0)
            .admitted;
    if (admitted) most_ = std::max(most_, smalls);
    return admitted_[key] = admitted;
  }
  double ValueAt(int smalls, int larges, int units) {
    const auto key = std::make_tuple(smalls, larges, units);
    if (const auto known = values_.find(key); known != values_.end()) return known->second;
    double best = std::max(0.0, 1 - std::exp(budget_.epsilon.value() - kUnit * units));
    const auto consider = [&](const Event& event, int more_smalls, int more_larges) {
      if (!Admits(more_smalls, more_larges)) return;
      const Step step = StepOf(event);
      const double heads = 1 / (1 + std::exp(-kUnit * step.units));
      const double kept = heads * ValueAt(more_smalls, more_larges, units + step.units) +
                          (1 - heads) * ValueAt(more_smalls, more_larges, units - step.units);
      best = std::max(best, step.loss + (1 - step.loss) * kept);
    };
    consider(small_, smalls + 1, larges);
    consider(large_, smalls, larges + 1);
    return values_[key] = best;
  }

  Budget budget_;
  BudgetFilter start_;
  Event small_;
  Event large_;
  int most_ = 0;
  std::map<std::pair<int, int>, bool> admitted_;
  std::map<std::tuple<int, int, int>, double> values_;
};

TEST(ReleaseCosts, NoAdaptiveStrategyWithApproximateStepsPassesTheBudget) {
  constexpr double kDelta = 0.02;
  for (const FilterKind filter : {FilterKind::kRenyi, FilterKind::kGaussian}) {
    for (const double share : {kLossShare, 0.5}) {
      for (const double loss : {1e-4, 1e-3}) {
        const Budget budget{
            .epsilon = Epsilon(1), .delta = Delta(kDelta), .filter = filter, .loss_share = share};
        LossAdversary adversary(budget, ApproximateOf(LossAdversary::kUnit, loss),
                                PureOf(3 * LossAdversary::kUnit));
        const double gain = adversary.Gain();
        EXPECT_LE(gain, kDelta) << share << " " << loss;
        // It is not so strict that the test shows nothing.
        EXPECT_GT(gain, kDelta / 50) << share << " " << loss;
        EXPECT_GE(adversary.Most(), 1);
        EXPECT_LE(adversary.Most() * loss, share * kDelta * (1 + 1e-9));
      }
    }
  }
}

// What a first release does to a budget of `epsilon` at delta 1e-6.
BudgetFilter After(double epsilon, const Event& event, double failure) {
  BudgetFilter filter({.epsilon = Epsilon(epsilon), .delta = Delta(1e-6)});
  const RunTerms terms = filter.TermsFor(event, failure);
  EXPECT_FALSE(terms.whole);
  EXPECT_TRUE(filter.AdmitsPlan(event, failure).admitted)
      << filter.AdmitsPlan(event, failure).reason;
  filter.BeginRun("run", event, terms, failure);
  filter.Charge("run", event, failure);
  return filter;
}

Event GaussianFor(double epsilon, double delta) {
  return Event::Gaussian(NoiseMultiplier(1 / GaussianMu(epsilon, std::log(delta))));
}

TEST(FirstRelease, ASmallOneLeavesALargeBudgetOpen) {
  // The noise of a release fails with a probability of 2^-70 or so, and e^30 times that is more
  // than what was kept of delta.
  for (const double epsilon : {10.0, 20.0, 30.0, 40.0, 100.0, 600.0}) {
    BudgetFilter filter = After(epsilon, GaussianFor(0.1, 1e-13), 0x1p-70);
    EXPECT_LT(filter.UsedShare(), 0.01) << epsilon;
    EXPECT_GT(filter.LeftEpsilon(), 0.9 * epsilon) << epsilon;
    EXPECT_LT(After(epsilon, GaussianFor(0.02, 1e-6), 0x1p-72).UsedShare(), 0.01) << epsilon;
  }
}

TEST(FirstRelease, AnApproximateOneLeavesABudgetOpen) {
  EXPECT_LT(After(8, ApproximateOf(0.1, 1e-9), 0).UsedShare(), 0.02);
  EXPECT_LT(After(1, ApproximateOf(0.1, 1e-9), 0).UsedShare(), 0.15);
  BudgetFilter filter({.epsilon = Epsilon(8), .delta = Delta(1e-6)});
  const Verdict verdict = filter.AdmitsPlan(ApproximateOf(0.1, 1e-7), 0);
  EXPECT_FALSE(verdict.admitted);
  EXPECT_TRUE(verdict.needs_whole);
  EXPECT_NE(verdict.reason.find("use a smaller delta; it could only count whole"),
            std::string::npos)
      << verdict.reason;
}

TEST(FirstRelease, CountsWholeWhenAskedOrWhenItIsNearlyAll) {
  const auto terms = [](double epsilon, bool asked) {
    BudgetFilter filter({.epsilon = Epsilon(8), .delta = Delta(1e-6)});
    return filter.TermsFor(ApproximateOf(epsilon, 0.99e-6), 0, asked);
  };
  EXPECT_TRUE(terms(0.1, true).whole);
  EXPECT_FALSE(terms(0.1, true).needs_whole);
  EXPECT_FALSE(terms(0.1, false).whole);
  EXPECT_TRUE(terms(0.1, false).needs_whole);
  EXPECT_FALSE(terms(6.6, false).whole);
  EXPECT_TRUE(terms(6.7, false).whole);
  EXPECT_FALSE(terms(8.1, true).whole);
  EXPECT_FALSE(terms(8.1, false).needs_whole);
}

TEST(FirstRelease, AnUnusualOneDoesNotSpoilTheOrder) {
  // At the order that suits it best nearly nothing is left for others.
  const Event unusual = Event::Poisson(SamplingRate(1e-6), Event::Gaussian(NoiseMultiplier(0.3)));
  BudgetFilter filter({.epsilon = Epsilon(8), .delta = Delta(1e-6)});
  filter.BeginRun("run", unusual, filter.TermsFor(unusual, 0));
  filter.Charge("run", unusual, 0);
  EXPECT_GT(filter.LeftEpsilon(), 6.5);
}

}  // namespace
}  // namespace sordino
