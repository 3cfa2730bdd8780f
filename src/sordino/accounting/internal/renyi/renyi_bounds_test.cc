#include "sordino/accounting/internal/renyi/renyi_bounds.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sordino/accounting/gaussian.h"
#include "sordino/accounting/testing/published_renyi.h"
#include "sordino/base/error.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

TEST(BoundedRangeRenyi, IsTheLargestOverAllPairs) {
  for (const double epsilon : {1e-4, 0.5, 2.0, 10.0}) {
    for (const double order : {1.5, 3.0, 20.0}) {
      double largest = 0;
      for (int i = 1; i < 4000; ++i) {
        const double t = epsilon * i / 4000;
        const double x = std::expm1(epsilon - t) / std::expm1(epsilon);
        const double moment =
            x * std::expm1(order * t) + (1 - x) * std::expm1(order * (t - epsilon));
        largest = std::max(largest, std::log1p(moment) / (order - 1));
      }
      const double value = BoundedRangeRenyi(epsilon, order);
      ASSERT_GE(value, largest * (1 - 1e-6));
      ASSERT_LE(value, largest * (1 + 1e-5)) << epsilon << " " << order;
      ASSERT_LE(value, order * epsilon * epsilon / 8 * (1 + 1e-9));
      ASSERT_LE(value, epsilon);
    }
  }
}

TEST(PoissonRenyiBound, MatchesTheTheoremTermByTerm) {
  const double q = 0.1;
  const double rho = 0.2;
  const int order = 4;
  double total = std::pow(1 - q, order - 1) * (order * q - q + 1) +
                 6 * q * q * std::pow(1 - q, 2) * std::exp(2 * rho);
  total += 3 * (4 * (1 - q) * std::pow(q, 3) * std::exp(2 * 3 * rho) +
                std::pow(q, 4) * std::exp(3 * 4 * rho));
  const RenyiFunction bound = PoissonRenyiBound(q, [rho](double a) { return rho * a; });
  EXPECT_NEAR(bound(order), std::log(total) / (order - 1), 1e-9);
}

TEST(FixedRenyiBound, IsAboveThePublishedGaussianBound) {
  const double sigma = 2;
  const RenyiFunction bound =
      FixedRenyiBound(0.05, [sigma](double a) { return a / (2 * sigma * sigma); });
  for (const int order : {2, 3, 10, 40}) {
    ASSERT_GE(bound(order) * (1 + 1e-9), testing::PublishedFixedGaussianRenyi(0.05, sigma, order));
  }
  EXPECT_NEAR(bound(2.5) * 1.5, 0.5 * (bound(2) + 2 * bound(3)), 1e-12);
}

TEST(BestOfNegativeBinomialRenyi, DoublesOrTriplesPurePrivacy) {
  const RenyiFunction pure = [](double) { return 0.7; };
  const auto at = [&](double eta) {
    const RunCount runs = RunCount::TruncatedNegativeBinomial(eta, 0.01);
    return BestOfNegativeBinomialRenyi(pure, runs, 1e12);
  };
  EXPECT_NEAR(at(1), 0.7 * 3, 1e-8);
  EXPECT_NEAR(at(0), 0.7 * 2, 1e-8);
  EXPECT_NEAR(at(-0.5), 0.7 * 1.5, 1e-8);
}

// A moment cannot be smaller than that of the empty result.
TEST(BestOfPoissonRenyi, CountsTheChanceOfNoRun) {
  const RenyiFunction inner = [](double order) { return order / 32; };
  const auto log_delta = [](double epsilon) { return GaussianLogDelta(0.25, epsilon); };
  for (const double mean : {1e-3, 0.1, 1.0, 10.0}) {
    for (const double order : {1.5, 2.0, 8.0}) {
      EXPECT_GT(BestOfPoissonRenyi(inner, log_delta, mean, order), 0);
    }
  }
}

}  // namespace
}  // namespace sordino
