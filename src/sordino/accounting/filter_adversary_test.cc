// Filters and odometers against the best adversary, found by dynamic programming.
//
// The adversary plays a run: it sees the privacy loss so far, chooses the next step or stops, and
// wants E_P[(1 - e^{bound - loss})_+] at the end as large as possible. Over all strategies that a
// filter admits this is the largest delta at the budget's epsilon, and it must not exceed delta;
// with the odometer the bound is its report at the moment of stopping. Nothing here uses the
// composition theorems that the filters rest on.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>
#include <vector>

#include "sordino/accounting/filter.h"

namespace sordino {
namespace {

// The loss of a step as a law on multiples of the spacing.
struct FilterStep {
  Event event;
  std::vector<std::pair<int, double>> losses;
};

constexpr double kSpacing = 0.05;

// Randomised response, the worst epsilon-DP mechanism.
FilterStep PureStep(int multiple) {
  const double epsilon = multiple * kSpacing;
  const double p = 1 / (1 + std::exp(-epsilon));
  return {Event::Pure(Epsilon(epsilon)), {{multiple, p}, {-multiple, 1 - p}}};
}

// The loss N(mu^2/2, mu^2), rounded to the nearest multiple.
FilterStep GaussianStep(double mu) {
  FilterStep step{Event::Gaussian(NoiseMultiplier(1 / mu)), {}};
  const auto below = [&](double loss) {
    return 0.5 * std::erfc(-(loss - 0.5 * mu * mu) / (mu * std::numbers::sqrt2));
  };
  const int reach = static_cast<int>((0.5 * mu * mu + 6 * mu) / kSpacing) + 1;
  for (int k = -reach; k <= reach; ++k) {
    step.losses.emplace_back(k, below((k + 0.5) * kSpacing) - below((k - 0.5) * kSpacing));
  }
  return step;
}

// What two kinds of steps may do to a run: the state is how many of each were taken.
class Adversary {
 public:
  Adversary(FilterStep a, FilterStep b) : steps_{std::move(a), std::move(b)} {}

  // admitted(n, m): whether a run of n and m steps is; bound(n, m): what the loss is held against.
  double Gain(const std::function<bool(int, int)>& admitted,
              const std::function<double(int, int)>& bound, int most) {
    const int reach = most * std::max(steps_[0].losses.front().first, steps_[1].losses[0].first);
    width_ = 2 * std::abs(reach) + 1;
    // From long runs to short ones; values[n][m] by the loss.
    std::vector<std::vector<std::vector<double>>> values(
        static_cast<std::size_t>(most) + 1,
        std::vector<std::vector<double>>(static_cast<std::size_t>(most) + 1));
    for (int total = most; total >= 0; --total) {
      for (int n = 0; n <= total; ++n) {
        const int m = total - n;
        if (!admitted(n, m)) continue;
        std::vector<double>& here = values[At(n)][At(m)];
        here = Stopped(bound(n, m));
        if (total == most) continue;
        Take(values[At(n + 1)][At(m)], steps_[0], here);
        Take(values[At(n)][At(m + 1)], steps_[1], here);
      }
    }
    return values[0][0][At(width_ / 2)];
  }

 private:
  static std::size_t At(int i) { return static_cast<std::size_t>(i); }

  std::vector<double> Stopped(double bound) const {
    std::vector<double> gain(At(width_));
    const int middle = width_ / 2;
    for (int i = 0; i < width_; ++i) {
      gain[At(i)] = std::max(0.0, -std::expm1(bound - (i - middle) * kSpacing));
    }
    return gain;
  }

  // Losses beyond the ends stay at them; the ends are far out.
  void Take(const std::vector<double>& next, const FilterStep& step,
            std::vector<double>& here) const {
    if (next.empty()) return;
    for (int i = 0; i < width_; ++i) {
      double mean = 0;
      for (const auto& [k, p] : step.losses) {
        mean += p * next[At(std::clamp(i + k, 0, width_ - 1))];
      }
      here[At(i)] = std::max(here[At(i)], mean);
    }
  }

  FilterStep steps_[2];
  int width_ = 0;
};

// The adversary's gain against a filter; -1 when the filter admits more than `most` steps.
double GainAgainst(const PrivacyFilter& fresh, const FilterStep& a, const FilterStep& b,
                   double epsilon, int most) {
  std::vector<std::vector<bool>> admitted(static_cast<std::size_t>(most) + 1);
  for (int n = 0; n <= most; ++n) {
    for (int m = 0; m + n <= most; ++m) {
      PrivacyFilter filter = fresh;
      bool all = true;
      for (int i = 0; i < n && all; ++i) all = filter.Charge(a.event);
      for (int i = 0; i < m && all; ++i) all = filter.Charge(b.event);
      if (all && n + m == most) return -1;
      admitted[static_cast<std::size_t>(n)].push_back(all);
    }
  }
  return Adversary(a, b).Gain(
      [&](int n, int m) {
        return admitted[static_cast<std::size_t>(n)][static_cast<std::size_t>(m)];
      },
      [&](int, int) { return epsilon; }, most);
}

TEST(FilterAdversary, RenyiAndZcdpFiltersHoldAgainstEveryStrategy) {
  const FilterStep small = PureStep(2);
  const FilterStep large = PureStep(8);
  for (const double epsilon : {1.5, 2.0}) {
    for (const double delta : {1e-2, 1e-4}) {
      const double zcdp = GainAgainst(PrivacyFilter::Zcdp(Epsilon(epsilon), Delta(delta)), small,
                                      large, epsilon, 120);
      ASSERT_GE(zcdp, 0);
      EXPECT_LE(zcdp, delta);
      EXPECT_GE(zcdp, 0.03 * delta) << "the adversary is too weak to tell anything";
      for (const double order : {3.0, 8.0, 30.0}) {
        const double gain =
            GainAgainst(PrivacyFilter::Renyi(Epsilon(epsilon), Delta(delta), RenyiOrder(order)),
                        small, large, epsilon, 200);
        ASSERT_GE(gain, 0);
        EXPECT_LE(gain, delta) << epsilon << " " << delta << " " << order;
      }
    }
  }
}

// The filter of Gaussians is tight: the best strategy spends delta whole and no more. The loss on a
// lattice is off by kSpacing^2 / 24 a step.
TEST(FilterAdversary, GaussianFilterIsSpentWholeAndNoMore) {
  for (const double delta : {1e-2, 1e-3}) {
    const double gain = GainAgainst(PrivacyFilter::Gaussian(Epsilon(1.5), Delta(delta)),
                                    GaussianStep(0.2), GaussianStep(0.4), 1.5, 40);
    ASSERT_GE(gain, 0);
    EXPECT_LE(gain, delta * 1.005);
    EXPECT_GE(gain, 0.7 * delta);  // budgets are not whole numbers of steps
  }
}

// delta at epsilon of n and m randomised responses, chosen in advance, by their binomial counts.
double ExactDelta(const FilterStep& a, int n, const FilterStep& b, int m, double epsilon) {
  const auto weight = [](const FilterStep& step, int count, int ups) {
    return std::exp(std::lgamma(count + 1) - std::lgamma(ups + 1) - std::lgamma(count - ups + 1) +
                    ups * std::log(step.losses[0].second) +
                    (count - ups) * std::log(step.losses[1].second));
  };
  double delta = 0;
  for (int i = 0; i <= n; ++i) {
    for (int j = 0; j <= m; ++j) {
      const int steps = (2 * i - n) * a.losses[0].first + (2 * j - m) * b.losses[0].first;
      const double gain = std::max(0.0, -std::expm1(epsilon - steps * kSpacing));
      delta += weight(a, n, i) * weight(b, m, j) * gain;
    }
  }
  return delta;
}

// Comparing the exact composition of what was done with the budget, step by step, is not a filter:
// the adversary finds more than delta. This shows that it would notice a filter that is not one.
TEST(FilterAdversary, BeatsARuleThatComparesExactCompositions) {
  const double epsilon = 0.8;
  const double delta = 1e-2;
  const FilterStep small = PureStep(2);
  const FilterStep large = PureStep(8);
  const auto within = [&](int n, int m) {
    return ExactDelta(small, n, large, m, epsilon) <= delta;
  };
  const double gain = Adversary(small, large)
                          .Gain(
                              within, [&](int, int) { return epsilon; }, 60);
  EXPECT_GT(gain, 1.02 * delta);
}

TEST(FilterAdversary, OdometerHoldsWheneverTheRunStops) {
  for (const double delta : {1e-1, 1e-3}) {
    for (const bool renyi : {false, true}) {
      const int most = 60;
      const auto report = [&](int n, int m) {
        PrivacyOdometer odometer =
            renyi ? PrivacyOdometer(Delta(delta), RenyiOrder(6)) : PrivacyOdometer(Delta(delta));
        for (int i = 0; i < n; ++i) odometer.Charge(Event::Pure(Epsilon(2 * kSpacing)));
        for (int i = 0; i < m; ++i) odometer.Charge(Event::Pure(Epsilon(8 * kSpacing)));
        return odometer.Epsilon();
      };
      const double gain =
          Adversary(PureStep(2), PureStep(8)).Gain([](int, int) { return true; }, report, most);
      EXPECT_LE(gain, delta);
    }
  }
}

}  // namespace
}  // namespace sordino
