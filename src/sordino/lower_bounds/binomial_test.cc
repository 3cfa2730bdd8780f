#include "sordino/lower_bounds/binomial.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sordino {
namespace {

TEST(Binomial, TailsAreSumsOfMasses) {
  for (const double p : {0.01, 0.3, 0.77}) {
    for (const std::int64_t n : {1, 7, 60}) {
      double tail = 0;
      for (std::int64_t k = n; k >= 0; --k) {
        const double log_mass =
            std::lgamma(static_cast<double>(n) + 1) - std::lgamma(static_cast<double>(k) + 1) -
            std::lgamma(static_cast<double>(n - k) + 1) + static_cast<double>(k) * std::log(p) +
            static_cast<double>(n - k) * std::log1p(-p);
        tail += std::exp(log_mass);
        EXPECT_NEAR(BinomialMass(n, k, p) / std::exp(log_mass), 1, 1e-11);
        EXPECT_NEAR(BinomialTail(n, k, p) / tail, 1, 1e-11);
      }
    }
  }
}

TEST(Binomial, ClopperPearsonHasTheReferenceValues) {
  EXPECT_NEAR(ClopperPearsonUpper(500, 0, .005), .010540688188676, 1e-14);
  EXPECT_NEAR(ClopperPearsonUpper(1000, 5, .05), .010484076911416, 1e-14);
  EXPECT_NEAR(ClopperPearsonUpper(100, 50, .05), .586378285369, 1e-11);
}

TEST(Binomial, ClopperPearsonIsWhereTheTailIsAlpha) {
  for (const std::int64_t k : {0, 1, 13, 99}) {
    for (const double alpha : {0.3, 0.01, 1e-6}) {
      const double upper = ClopperPearsonUpper(100, k, alpha);
      EXPECT_NEAR((1 - BinomialTail(100, k + 1, upper)) / alpha, 1, 1e-8);
      const double lower = ClopperPearsonLower(100, 100 - k, alpha);
      EXPECT_NEAR(BinomialTail(100, 100 - k, lower) / alpha, 1, 1e-8);
    }
  }
  EXPECT_EQ(ClopperPearsonUpper(10, 10, .05), 1);
  EXPECT_EQ(ClopperPearsonLower(10, 0, .05), 0);
}

}  // namespace
}  // namespace sordino
