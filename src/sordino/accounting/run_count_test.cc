#include "sordino/accounting/run_count.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace sordino {
namespace {

// Sums over k of the probabilities as their papers write them.
struct Series {
  double mean = 0;
  double none = 0;
  double slope = 0;  // of E[s^K] at s
  double grown = 0;  // E[s^K] - E[low^K]
};

Series Sum(const std::function<double(int)>& probability, double s, double low) {
  Series sum;
  sum.none = probability(0);
  for (int k = 1; k < 5000; ++k) {
    const double p = probability(k);
    sum.mean += k * p;
    sum.slope += k * p * std::pow(s, k - 1);
    sum.grown += p * (std::pow(s, k) - std::pow(low, k));
  }
  return sum;
}

void ExpectSeries(const RunCount& runs, const std::function<double(int)>& probability) {
  for (const double u : {0.0, 0.01, 0.3, 0.9}) {
    const double width = 0.7 * (1 - u);
    const Series sum = Sum(probability, 1 - u, 1 - u - width);
    EXPECT_NEAR(runs.None(), sum.none, 1e-14);
    EXPECT_NEAR(runs.Mean(), sum.mean, 1e-9 * sum.mean);
    EXPECT_NEAR(runs.Slope(u), sum.slope, 1e-9 * sum.slope);
    EXPECT_NEAR(runs.Mass(u, width), sum.grown, 1e-9 * sum.grown);
  }
  EXPECT_NEAR(runs.Mass(0, 1) + runs.None(), 1, 1e-12);
  for (const int k : {0, 1, 2, 7, 60}) {
    EXPECT_NEAR(runs.Probability(k), probability(k), 1e-12 * probability(k));
  }
}

TEST(RunCount, TruncatedNegativeBinomialIsItsSeries) {
  for (const double eta : {-0.5, 1e-3, 0.7, 1.0, 3.0}) {
    for (const double gamma : {0.02, 0.1, 0.6}) {
      const double scale = 1 / (std::pow(gamma, -eta) - 1);
      // (1 - gamma)^k / (gamma^-eta - 1) product of (l + eta) / (l + 1) over l < k.
      const auto probability = [&](int k) {
        if (k == 0) return 0.0;
        double p = scale;
        for (int l = 0; l < k; ++l) p *= (l + eta) / (l + 1) * (1 - gamma);
        return p;
      };
      ExpectSeries(RunCount::TruncatedNegativeBinomial(eta, gamma), probability);
    }
  }
}

TEST(RunCount, EtaZeroIsLogarithmic) {
  const double gamma = 0.05;
  ExpectSeries(RunCount::TruncatedNegativeBinomial(0, gamma), [&](int k) {
    return k == 0 ? 0.0 : std::pow(1 - gamma, k) / (k * -std::log(gamma));
  });
}

TEST(RunCount, NegativeBinomialsAreFoundByTheirMeans) {
  for (const double eta : {-0.5, 0.0, 1.0, 5.0}) {
    for (const double mean : {1.01, 2.0, 10.0, 1000.0}) {
      const double found = RunCount::NegativeBinomialOfMean(eta, mean).Mean();
      EXPECT_NEAR(found / mean, 1, 1e-6) << eta;
      EXPECT_LE(found, mean) << eta;
    }
  }
  // Where no gamma of an event has this mean, the nearest one.
  EXPECT_LT(RunCount::NegativeBinomialOfMean(-0.9, 1000).Mean(), 10);
}

TEST(RunCount, PoissonIsItsSeries) {
  for (const double mean : {0.2, 3.0, 40.0}) {
    ExpectSeries(RunCount::Poisson(mean),
                 [&](int k) { return std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0)); });
  }
}

}  // namespace
}  // namespace sordino
