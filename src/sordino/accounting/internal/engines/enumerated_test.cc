#include "sordino/accounting/internal/engines/enumerated.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/internal/pairs/dominating_pair.h"

namespace sordino {
namespace {

// delta(epsilon) of a composition of randomised responses with these losses, one by one.
double ResponseDelta(const std::vector<double>& losses, std::size_t first, double epsilon) {
  if (first == losses.size()) return std::max(0.0, -std::expm1(epsilon));
  const double high = 1 / (1 + std::exp(-losses[first]));
  return high * ResponseDelta(losses, first + 1, epsilon - losses[first]) +
         (1 - high) * ResponseDelta(losses, first + 1, epsilon + losses[first]);
}

TEST(Enumerated, LossesThatAreCloseTogetherAreToldApart) {
  const Event event = Event::Parse("add-remove: compose(pure(4), 10*pure(0.0001))");
  std::vector<double> losses(11, 0.0001);
  losses[0] = 4;
  for (const double epsilon : {3.9992, 4.0, 4.0002, 4.0007}) {
    const Interval delta = AccountDelta(event, Epsilon(epsilon)).value;
    const double exact = ResponseDelta(losses, 0, epsilon);
    EXPECT_LE(delta.lower, exact * (1 + 1e-12));
    EXPECT_GE(delta.upper, exact * (1 - 1e-12));
    EXPECT_GT(delta.lower, delta.upper * (1 - 1e-6)) << epsilon;
  }
  EXPECT_NEAR(AccountDelta(event, Epsilon(4.0002)).value.upper, 4.68e-5, 1e-7);
}

TEST(Enumerated, DifferentStepsAgreeWithEveryOutcome) {
  const Event event = Event::Parse("replace-one: compose(3*pure(0.7), pure(1.3), 4*pure(0.05))");
  const std::vector<double> losses = {0.7, 0.7, 0.7, 1.3, 0.05, 0.05, 0.05, 0.05};
  for (const double epsilon : {0.0, 0.3, 2.1, 3.4999}) {
    const Interval delta = AccountDelta(event, Epsilon(epsilon)).value;
    const double exact = ResponseDelta(losses, 0, epsilon);
    EXPECT_LE(delta.lower, exact * (1 + 1e-12));
    EXPECT_GE(delta.upper, exact * (1 - 1e-12));
    EXPECT_GT(delta.lower, delta.upper * (1 - 1e-9));
    const Interval back = Account(event, Delta(exact)).value;
    EXPECT_LE(back.lower, epsilon + 1e-9);
    EXPECT_GE(back.upper, epsilon - 1e-9);
  }
}

TEST(Enumerated, ManyOutcomesAreLeftToTheEngines) {
  const auto pairs = [](const char* text, std::uint64_t count) {
    return std::vector<CountedPair>{{DominatingPairsOf(Event::Parse(text)).upper[0], count}};
  };
  EXPECT_TRUE(Enumerated::Of(pairs("add-remove: pure(1)", 8000)));
  EXPECT_FALSE(Enumerated::Of(pairs("add-remove: pure(1)", 9000)));
  EXPECT_FALSE(Enumerated::Of(pairs("add-remove: laplace(1)", 2)));
  EXPECT_FALSE(Enumerated::Of(pairs("add-remove: gaussian(1)", 2)));
}

TEST(Enumerated, ChancesOfTellingEverythingAddUp) {
  const Event event = Event::Parse("add-remove: 20*approximate(0.2, 1e-5)");
  const double told = -std::expm1(20 * std::log1p(-1e-5));
  const Interval delta = AccountDelta(event, Epsilon(20)).value;
  EXPECT_NEAR(delta.lower / told, 1, 1e-9);
  EXPECT_NEAR(delta.upper / told, 1, 1e-9);
}

}  // namespace
}  // namespace sordino
