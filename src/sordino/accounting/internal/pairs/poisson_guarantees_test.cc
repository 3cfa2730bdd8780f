#include "sordino/accounting/internal/pairs/poisson_guarantees.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/accounting/renyi.h"

namespace sordino {
namespace {

using Law = std::array<double, 4>;

// The least e with a <= e^e b and b <= e^e a everywhere.
double Distance(const Law& a, const Law& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(std::log(a[i] / b[i])));
  return most;
}

Law RandomLaw(std::mt19937_64& random, double spread) {
  Law law;
  double sum = 0;
  for (double& p : law) {
    p = std::exp(spread * (static_cast<double>(random() >> 11) * 0x1p-53 - 0.5));
    sum += p;
  }
  for (double& p : law) p /= sum;
  return law;
}

TEST(PoissonGuarantees, DominateRandomTriplesUnderReplaceOne) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 400; ++i) {
    const double spread = i % 2 == 0 ? 1 : 4;
    const Law with = RandomLaw(random, spread);
    const Law other = RandomLaw(random, spread);
    const Law without = RandomLaw(random, spread);
    const double epsilon =
        std::max({Distance(with, other), Distance(with, without), Distance(other, without)});
    const double q = 0.05 + 0.9 * static_cast<double>(i) / 400;
    const Event event = Event::Pure(Epsilon(epsilon), Adjacency::kReplaceOne);
    const DominatingPairs pairs = *ReplacedGuarantee(event, q, epsilon);
    for (const double at : {-0.5, -0.1, 0.0, 0.05, 0.3, 1.0}) {
      double delta = 0;
      for (std::size_t k = 0; k < with.size(); ++k) {
        const double p = (1 - q) * without[k] + q * with[k];
        const double p_other = (1 - q) * without[k] + q * other[k];
        delta += std::max(0.0, p - std::exp(at) * p_other);
      }
      ASSERT_LE(delta, std::exp(ExactLogDelta(pairs.upper[0], at)) + 1e-12) << epsilon << " " << q;
      for (const LossPair& lower : pairs.lower) {
        ASSERT_LE(ExactLogDelta(lower, at), ExactLogDelta(pairs.upper[0], at) + 1e-9);
      }
    }
  }
}

TEST(PoissonGuarantees, IntervalsHaveALowerEnd) {
  for (const char* text :
       {"replace-one: 40*poisson(0.05, pure(0.3))", "replace-one: 9*poisson(0.2, pure(2))",
        "replace-one: 40*poisson(0.05, approximate(0.3, 1e-9))",
        "replace-one: 40*poisson(0.05, randomized-response(0.5, 4))",
        "add-remove: 300*poisson(0.05, exponential(0.5))",
        "zero-out: 4*poisson(0.3, exponential(2))",
        "replace-one: 50*poisson(0.1, exponential(1))"}) {
    const Interval value = Account(Event::Parse(text), Delta(1e-6)).value;
    EXPECT_GT(value.lower, 0.75 * value.upper) << text << " " << value.lower << " " << value.upper;
  }
}

TEST(PoissonGuarantees, AChanceOfTellingEverythingAboveDeltaIsProven) {
  for (const char* adjacency : {"add-remove", "replace-one"}) {
    const Event event =
        Event::Parse(std::string(adjacency) + ": 2985*poisson(0.02, approximate(0.001, 5e-12))");
    EXPECT_EQ(Account(event, Delta(7e-12)).value.lower, kInfinity) << adjacency;
  }
}

TEST(PoissonGuarantees, SampledExponentialIsBelowSampledPure) {
  for (const char* rate : {"0.001", "0.1", "0.7"}) {
    const std::string head = "add-remove: 100*poisson(" + std::string(rate) + ", ";
    const Interval value = Account(Event::Parse(head + "exponential(0.8))"), Delta(1e-7)).value;
    const Interval pure = Account(Event::Parse(head + "pure(0.8))"), Delta(1e-7)).value;
    EXPECT_LE(value.upper, pure.upper * (1 + 1e-6));
    EXPECT_LE(value.lower, value.upper);
  }
}

TEST(NestedPoisson, RatesMultiplyUnderEveryAdjacency) {
  for (const std::string adjacency : {"add-remove", "replace-one", "zero-out"}) {
    for (const std::string leaf :
         {"gaussian(1)", "laplace(0.7)", "discrete-laplace(3, 2)", "pure(0.5)"}) {
      const Event nested =
          Event::Parse(adjacency + ": 30*poisson(0.25, poisson(0.5, poisson(0.5, " + leaf + ")))");
      const Event merged = Event::Parse(adjacency + ": 30*poisson(0.0625, " + leaf + ")");
      const Interval found = Account(nested, Delta(1e-6)).value;
      const Interval expected = Account(merged, Delta(1e-6)).value;
      EXPECT_GT(found.lower, 0);
      EXPECT_NEAR(found.lower / expected.lower, 1, 1e-9) << nested.ToString();
      EXPECT_NEAR(found.upper / expected.upper, 1, 1e-9) << nested.ToString();
      RenyiCurve nested_curve(nested);
      RenyiCurve merged_curve(merged);
      EXPECT_NEAR(nested_curve(7) / merged_curve(7), 1, 1e-9);
    }
  }
  // What was written stays what it was.
  const std::string text = "add-remove: poisson(0.25, poisson(0.5, gaussian(1)))";
  EXPECT_EQ(Event::Parse(text).ToString(), text);
}

TEST(SampledMixture, IsTheMixtureWithOneShiftMore) {
  const Event sampled =
      Event::Parse("add-remove: 20*poisson(0.5, mixture-gaussian(2, 0, 0.5, 1, 0.25, 2, 0.25))");
  const Event mixture =
      Event::Parse("add-remove: 20*mixture-gaussian(2, 0, 0.75, 1, 0.125, 2, 0.125)");
  const Interval found = Account(sampled, Delta(1e-6)).value;
  const Interval expected = Account(mixture, Delta(1e-6)).value;
  EXPECT_NEAR(found.lower / expected.lower, 1, 1e-6);
  EXPECT_NEAR(found.upper / expected.upper, 1, 1e-6);
}

TEST(OwnDelta, TheSamplingTheoremHoldsAtExactlyItsDelta) {
  const Event event = Event::Parse("add-remove: poisson(0.01, approximate(1, 1e-6))");
  const double epsilon = std::log1p(0.01 * std::expm1(1.0));
  const Interval value = Account(event, Delta(1e-8)).value;
  EXPECT_NEAR(value.upper, epsilon, 1e-11);
  EXPECT_NEAR(value.lower, epsilon, 1e-11);
  EXPECT_EQ(Account(event, Delta(0.99e-8)).value.upper, kInfinity);
  const Event third = Event::Parse("add-remove: poisson(0.3, approximate(1, 1e-5))");
  EXPECT_EQ(Account(third, Delta(0.3 * 1e-5 * (1 - 1e-9))).value.upper, kInfinity);
  EXPECT_NEAR(Account(third, Delta(std::nextafter(0.3 * 1e-5, 1.0))).value.upper,
              std::log1p(0.3 * std::expm1(1.0)), 1e-11);
}

}  // namespace
}  // namespace sordino
