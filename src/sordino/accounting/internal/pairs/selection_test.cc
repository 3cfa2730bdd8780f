// The bound of the header against the best of K runs of small mechanisms, enumerated, and against
// values that were computed elsewhere.
#include "sordino/accounting/internal/pairs/selection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/pairs/profile_pair.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

using Masses = std::vector<double>;

double Divergence(const Masses& p, const Masses& q, double epsilon) {
  double delta = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    delta += std::max(0.0, p[i] - std::exp(epsilon) * q[i]);
  }
  return delta;
}

// The distribution of the best of K runs of `run` in the order of its results, K of these
// probabilities (place 0: no run, the last result of the answer). Of k runs the best is result i or
// worse with the chance (run[0] + ... + run[i])^k.
Masses BestOf(const Masses& run, const Masses& count) {
  Masses best(run.size() + 1, 0.0);
  best.back() = count[0];
  for (std::size_t k = 1; k < count.size(); ++k) {
    double below = 0;
    for (std::size_t i = 0; i < run.size(); ++i) {
      const double to = below + run[i];
      best[i] += count[k] *
                 (std::pow(to, static_cast<double>(k)) - std::pow(below, static_cast<double>(k)));
      below = to;
    }
  }
  return best;
}

struct Count {
  RunCount runs;
  Masses probabilities;
};

std::vector<Count> Counts() {
  std::vector<Count> counts;
  const auto add = [&](RunCount runs, const std::function<double(int)>& probability) {
    Masses masses;
    for (int k = 0; k < 700; ++k) masses.push_back(probability(k));
    counts.push_back({runs, masses});
  };
  for (const double eta : {-0.5, 1.0, 2.0}) {
    for (const double gamma : {0.1, 0.5}) {
      add(RunCount::TruncatedNegativeBinomial(eta, gamma), [=](int k) {
        if (k == 0) return 0.0;
        double p = 1 / (std::pow(gamma, -eta) - 1);
        for (int l = 0; l < k; ++l) p *= (l + eta) / (l + 1) * (1 - gamma);
        return p;
      });
    }
  }
  for (const double mean : {0.3, 8.0}) {
    add(RunCount::Poisson(mean),
        [=](int k) { return std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0)); });
  }
  return counts;
}

// Ties are broken by a uniform number: each result in `parts` equal ones.
Masses WithTies(const Masses& run, std::size_t parts) {
  Masses all;
  for (const double mass : run) {
    all.insert(all.end(), parts, mass / static_cast<double>(parts));
  }
  return all;
}

// The tightest symmetric pair of two distributions.
LossPair PairOf(const Masses& p, const Masses& q) {
  std::vector<ProfilePoint> points;
  for (double epsilon = 0; epsilon < 8; epsilon += 0.004) {
    points.push_back(
        {std::expm1(epsilon), std::max(Divergence(p, q, epsilon), Divergence(q, p, epsilon))});
  }
  return SymmetricPair(points);
}

Masses RandomMasses(std::mt19937_64& random, std::size_t size, double spread) {
  Masses masses(size);
  for (double& mass : masses) {
    mass = std::exp(spread * (static_cast<double>(random() >> 11U) * 0x1p-53 - 0.5));
  }
  const double sum = std::accumulate(masses.begin(), masses.end(), 0.0);
  for (double& mass : masses) mass /= sum;
  return masses;
}

// Every mechanism, every order of its results, both directions.
TEST(Selection, IsNeverBelowTheBestOfSmallMechanisms) {
  std::mt19937_64 random(7);
  const std::vector<Count> counts = Counts();
  for (int trial = 0; trial < 12; ++trial) {
    const double spread = trial % 3 == 0 ? 0.4 : 3;
    Masses p = RandomMasses(random, 4, spread);
    Masses q = RandomMasses(random, 4, spread);
    if (trial % 4 == 3) {  // a result that only one of both has
      q[1] += q[3];
      q[3] = 0;
    }
    const LossPair pair = PairOf(p, q);
    for (const Count& count : counts) {
      const SelectionProfile profile(count.runs, pair);
      std::vector<std::size_t> order = {0, 1, 2, 3};
      do {
        Masses first;
        Masses second;
        for (const std::size_t i : order) {
          first.push_back(p[i]);
          second.push_back(q[i]);
        }
        const Masses a = BestOf(WithTies(first, 3), count.probabilities);
        const Masses b = BestOf(WithTies(second, 3), count.probabilities);
        for (const double epsilon : {0.0, 0.05, 0.3, 1.0, 2.5}) {
          const double bound = profile.Delta(epsilon) + 1e-12;
          EXPECT_GE(bound, Divergence(a, b, epsilon)) << trial << ' ' << epsilon;
          EXPECT_GE(bound, Divergence(b, a, epsilon)) << trial << ' ' << epsilon;
        }
      } while (std::next_permutation(order.begin(), order.end()));
    }
  }
}

double UpperAt(const Event& event) { return CertifiedEpsilon(event, std::log(1e-5)).value.upper; }

TEST(Selection, OfGaussianRunsHasThePublishedValues) {
  const Event run = Event::Gaussian(NoiseMultiplier(4));
  const auto near = [](const Event& event, double pointwise, double renyi) {
    const Certified found = CertifiedEpsilon(event, std::log(1e-5));
    EXPECT_NEAR(found.value.upper, pointwise, 1e-3) << event.ToString();
    EXPECT_GE(found.value.upper, pointwise - 2e-5) << event.ToString();
    EXPECT_LE(found.value.lower, found.value.upper);
    EXPECT_GT(found.value.lower, 0.92634) << event.ToString();  // of one run
    if (renyi > 0) {
      // The order is searched for more closely here.
      const double found_renyi = RenyiCurve(event).ToEpsilon(std::log(1e-5)).epsilon;
      EXPECT_NEAR(found_renyi, renyi - 5e-5, 1e-4) << event.ToString();
    }
  };
  near(Event::BestTnb(1, 0.1, run), 1.42905, 2.153436);
  near(Event::BestTnb(0, 0.1, run), 1.19112, 1.596684);
  near(Event::BestTnb(-0.5, 0.1, run), 1.06217, 1.308208);
  near(Event::BestTnb(1, 0.01, run), 1.91382, 0);
  near(Event::BestPoisson(10, run), 1.82923, 1.899604);
}

// At delta 0 the bound is (2 + eta) epsilon, that of a geometric number of pure runs.
TEST(Selection, OfPureRunsIsPure) {
  const Event run = Event::Pure(Epsilon(0.7));
  for (const double eta : {-0.5, 0.0, 1.0}) {
    const Event event = Event::BestTnb(eta, 0.001, run);
    const double pure = CertifiedEpsilon(event, -kInfinity).value.upper;
    EXPECT_LE(pure, (2 + eta) * 0.7 * (1 + 2e-3));
    EXPECT_GE(pure, (1 + eta) * 0.7);
  }
}

// gamma near 1, or a mean near 0, leaves one run or none.
TEST(Selection, OfOneRunCostsOneRun) {
  const Event run = Event::Gaussian(NoiseMultiplier(2));
  const double one = UpperAt(run);
  EXPECT_NEAR(UpperAt(Event::BestTnb(1, 1 - 1e-9, run)), one, 2e-3 * one);
  EXPECT_GE(UpperAt(Event::BestTnb(1, 1 - 1e-9, run)), one);
  EXPECT_LE(UpperAt(Event::BestPoisson(1e-3, run)), one);
}

TEST(Selection, AnswersForEveryKindOfRun) {
  const Event steps =
      Event::Repeat(Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(2))), 200);
  const double one = UpperAt(steps);
  const double best = UpperAt(Event::BestTnb(0, 0.1, steps));
  EXPECT_GT(best, one);
  EXPECT_LT(best, 2 * one);
  EXPECT_TRUE(std::isfinite(UpperAt(Event::BestTnb(0, 0.1, Event::Laplace(NoiseMultiplier(3))))));
  const Event given = Event::Approximate(Epsilon(0.5), Delta(1e-9));
  EXPECT_LT(UpperAt(Event::BestTnb(0, 0.1, given)), 1.01);
  EXPECT_TRUE(std::isfinite(UpperAt(Event::BestTnb(1, 0.1, Event::Zcdp(Rho(0.02))))));
  // A delta that the runs use up leaves nothing.
  EXPECT_TRUE(
      std::isinf(UpperAt(Event::BestTnb(1, 0.001, Event::Approximate(Epsilon(0.5), Delta(1e-5))))));
}

TEST(Selection, ComposesWithOthers) {
  const Event best = Event::BestTnb(0, 0.1, Event::Gaussian(NoiseMultiplier(8)));
  const double one = UpperAt(best);
  const double three = UpperAt(Event::Repeat(best, 3));
  EXPECT_GT(three, one * 1.3);
  EXPECT_LT(three, one * 3);
  const Event mixed = Event::Compose({best, Event::Gaussian(NoiseMultiplier(4))});
  EXPECT_GT(UpperAt(mixed), UpperAt(Event::Gaussian(NoiseMultiplier(4))));
  EXPECT_LT(UpperAt(mixed), one + UpperAt(Event::Gaussian(NoiseMultiplier(4))));
}

}  // namespace
}  // namespace sordino
