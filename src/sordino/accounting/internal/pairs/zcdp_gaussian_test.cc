#include "sordino/accounting/internal/pairs/zcdp_gaussian.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/gaussian.h"

namespace sordino {
namespace {

struct TwoLaws {
  std::vector<double> p;
  std::vector<double> q;
};

// The least rho of both directions, over a fine ladder of orders.
double RhoOf(const TwoLaws& laws) {
  double rho = 0;
  for (double order = 1.0001; order < 1e4; order *= 1.02) {
    double there = 0;
    double back = 0;
    for (std::size_t i = 0; i < laws.p.size(); ++i) {
      const double loss = std::log(laws.p[i] / laws.q[i]);
      there += laws.p[i] * std::exp((order - 1) * loss);
      back += laws.q[i] * std::exp(-(order - 1) * loss);
    }
    rho = std::max(
        {rho, std::log(there) / (order * (order - 1)), std::log(back) / (order * (order - 1))});
  }
  return rho * 1.001;
}

// The largest delta at e^epsilon = u of so many steps, each pair chosen by what came before.
double AdaptiveDelta(const std::vector<TwoLaws>& choices, int steps, double u) {
  if (steps == 0) return std::max(0.0, 1 - u);
  double most = 0;
  for (const TwoLaws& laws : choices) {
    double delta = 0;
    for (std::size_t i = 0; i < laws.p.size(); ++i) {
      delta += laws.p[i] * AdaptiveDelta(choices, steps - 1, u * laws.q[i] / laws.p[i]);
    }
    most = std::max(most, delta);
  }
  return most;
}

TEST(ZcdpGaussian, DominatesAdaptiveChoicesOfMechanisms) {
  std::mt19937_64 random(4);
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  for (int trial = 0; trial < 60; ++trial) {
    const double size = std::exp(-4 * uniform());
    std::vector<TwoLaws> choices;
    double rho = 0;
    for (int k = 0; k < 4; ++k) {
      TwoLaws laws;
      double p_sum = 0;
      double q_sum = 0;
      for (int i = 0; i < (k % 2 == 0 ? 2 : 3); ++i) {
        // Rare outcomes may have large losses.
        const double q = std::exp(-3 * uniform() * (i > 0 ? 1 : 0));
        laws.q.push_back(q);
        laws.p.push_back(q * std::exp(size * (2 * uniform() - 1) * 2));
        p_sum += laws.p.back();
        q_sum += laws.q.back();
      }
      for (double& p : laws.p) p /= p_sum;
      for (double& q : laws.q) q /= q_sum;
      rho = std::max(rho, RhoOf(laws));
      choices.push_back(laws);
    }
    if (rho > 0.5) continue;
    for (const int steps : {1, 2, 3}) {
      const double mu = ZcdpGaussianMu(rho, static_cast<std::uint64_t>(steps)).value();
      for (double z = -3; z <= 4; z += 0.25) {
        const double epsilon = z * std::sqrt(2 * rho * steps) + rho * steps;
        const double bound = epsilon >= 0 ? std::exp(GaussianLogDelta(mu, epsilon))
                                          : 1 - std::exp(epsilon) +
                                                std::exp(epsilon + GaussianLogDelta(mu, -epsilon));
        ASSERT_LE(AdaptiveDelta(choices, steps, std::exp(epsilon)), bound + 1e-12)
            << rho << " " << steps << " " << epsilon;
      }
    }
  }
}

TEST(ZcdpGaussian, ManyStepsAreCloseToGaussianOnes) {
  for (const auto& [rho, steps] : {std::pair(5e-5, 1000), std::pair(0.0026, 2500),
                                   std::pair(0.0034, 100000), std::pair(1e-8, 1 << 30)}) {
    const double ratio =
        ZcdpGaussianMu(rho, static_cast<std::uint64_t>(steps)).value() / std::sqrt(2 * rho * steps);
    EXPECT_GT(ratio, 1) << rho;
    EXPECT_LT(ratio, 1.005) << rho;
  }
  EXPECT_FALSE(ZcdpGaussianMu(0.6, 1).has_value());
  EXPECT_EQ(ZcdpGaussianMu(0, 10).value(), 0);
}

TEST(ZcdpGaussian, NarrowsTheIntervalOfManySteps) {
  for (const std::string text :
       {"2488*zcdp(0.00258)", "compose(20000*zcdp(0.0004), 100*laplace(3))"}) {
    const AccountReport report = Account(Event::Parse("add-remove: " + text), Delta(3e-8));
    EXPECT_LT(report.value.upper - report.value.lower, 0.01 * report.value.upper) << text;
  }
}

}  // namespace
}  // namespace sordino
