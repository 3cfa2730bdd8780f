// The best adaptive choice of parts, by enumeration of all outcomes, against the ends of parallel
// events.
#include "sordino/accounting/internal/pairs/adaptive_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "sordino/accounting/accountant.h"

namespace sordino {
namespace {

struct ListedOutcome {
  double p;
  double loss;
};
using Part = std::vector<ListedOutcome>;

// Randomised response, sampled with rate q; with q = 1 it is pure(epsilon).
Part ResponsePart(double epsilon, double q, bool remove) {
  const double truth = 1 / (1 + std::exp(-epsilon));
  Part part;
  for (const double with : {truth, 1 - truth}) {
    const double p = q * with + (1 - q) * (1 - with);
    const double other = 1 - with;
    part.push_back(remove ? ListedOutcome{p, std::log(p / other)}
                          : ListedOutcome{other, std::log(other / p)});
  }
  return part;
}

// delta left at epsilon, with `steps` choices and then none to come.
double BestDelta(const std::vector<Part>& parts, int steps, double epsilon) {
  if (steps == 0) return std::max(0.0, -std::expm1(epsilon));
  double best = 0;
  for (const Part& part : parts) {
    double sum = 0;
    for (const auto& [p, loss] : part) sum += p * BestDelta(parts, steps - 1, epsilon - loss);
    best = std::max(best, sum);
  }
  return best;
}

double BestEpsilon(const std::vector<std::vector<Part>>& directions, int steps, double delta) {
  double low = 0;
  double high = 40;
  for (int i = 0; i < 50; ++i) {
    const double middle = 0.5 * (low + high);
    double most = 0;
    for (const std::vector<Part>& parts : directions) {
      most = std::max(most, BestDelta(parts, steps, middle));
    }
    (most > delta ? low : high) = middle;
  }
  return high;
}

TEST(AdaptiveChoice, MatchesTheEnumerationOfAllStrategies) {
  std::mt19937_64 random(7);
  const auto uniform = [&](double low, double high) {
    return low + (high - low) * static_cast<double>(random() >> 11) * 0x1p-53;
  };
  for (int round = 0; round < 12; ++round) {
    const int steps = 2 + round % 3;
    std::vector<std::vector<Part>> directions(2);
    std::string text;
    for (int i = 0; i < 2 + round % 2; ++i) {
      // A weak response of everybody, strong ones of few.
      const double epsilon = i == 0 ? uniform(0.2, 0.8) : uniform(1, 4);
      const double q = i == 0 ? 1 : uniform(0.02, 0.3);
      text += (i == 0 ? "" : ", ");
      text += i == 0 ? "pure(" + std::to_string(epsilon) + ")"
                     : "poisson(" + std::to_string(q) + ", pure(" + std::to_string(epsilon) + "))";
      const double told = std::stod(std::to_string(epsilon));
      directions[0].push_back(ResponsePart(told, std::stod(std::to_string(q)), true));
      directions[1].push_back(ResponsePart(told, std::stod(std::to_string(q)), false));
    }
    const double delta = std::exp(uniform(std::log(1e-4), std::log(0.03)));
    const Event event =
        Event::Parse("add-remove: " + std::to_string(steps) + "*parallel(" + text + ")");
    const double truth = BestEpsilon(directions, steps, delta);
    const Interval full = Account(event, Delta(delta)).value;
    EXPECT_GE(full.upper, truth * (1 - 1e-12)) << event.ToString() << " " << delta;
    EXPECT_LE(full.lower, truth * (1 + 1e-12)) << event.ToString() << " " << delta;
    EXPECT_LE(full.upper - full.lower, 5e-3 * full.upper) << event.ToString() << " " << delta;
    const Interval quick = Account(event, Delta(delta), Effort::kQuick).value;
    EXPECT_GE(quick.upper, truth * (1 - 1e-12)) << event.ToString() << " " << delta;
    EXPECT_LE(quick.lower, truth * (1 + 1e-12)) << event.ToString() << " " << delta;
    // The other way round.
    double most = 0;
    for (const std::vector<Part>& parts : directions) {
      most = std::max(most, BestDelta(parts, steps, 0.8 * truth));
    }
    const Interval at = AccountDelta(event, Epsilon(0.8 * truth)).value;
    EXPECT_GE(at.upper, most * (1 - 1e-12)) << event.ToString();
    EXPECT_LE(at.lower, most * (1 + 1e-12)) << event.ToString();
    EXPECT_LE(at.upper - at.lower, 2e-2 * at.upper) << event.ToString();
  }
}

// Given values: the worst of all fixed choices is 3.837936 and 1.860503, and an adaptive choice
// attains at least 3.883889 and exactly 1.909358.
TEST(AdaptiveChoice, IsAboveEveryFixedChoice) {
  const auto spent = [](const std::string& event, double delta) {
    return Account(Event::Parse(event), Delta(delta)).value;
  };
  const Interval noise = spent("add-remove: 3*parallel(laplace(1), gaussian(2))", 1e-5);
  EXPECT_GE(noise.upper, 3.883889);
  EXPECT_GE(noise.lower, 3.883);
  EXPECT_LE(noise.upper - noise.lower, 1e-3 * noise.upper);
  const Interval responses =
      spent("add-remove: 3*parallel(pure(0.5), poisson(0.1, pure(3)))", 0.01);
  EXPECT_GE(responses.upper, 1.909357);
  EXPECT_LE(responses.lower, 1.909359);
  EXPECT_LE(responses.upper - responses.lower, 5e-3 * responses.upper);
}

// A parallel event that stands alone costs its worst part, whatever is chosen inside.
TEST(AdaptiveChoice, APartMayHaveChoicesOfItsOwn) {
  const auto spent = [](const std::string& event) {
    return CertifiedEpsilon(Event::Parse("add-remove: " + event), std::log(1e-5)).value;
  };
  const std::string inner = "3*parallel(laplace(1), gaussian(2))";
  const Interval alone = spent(inner);
  const Interval outer = spent("parallel(gaussian(3), " + inner + ")");
  EXPECT_EQ(outer.upper, alone.upper);
  EXPECT_EQ(outer.lower, alone.lower);
  EXPECT_EQ(spent("parallel(gaussian(0.5), " + inner + ")").upper, spent("gaussian(0.5)").upper);
}

// Another release may come first and tell which part is worse: at least what the choice without it
// has, and one part alone is no choice.
TEST(AdaptiveChoice, OtherReleasesMayComeFirst) {
  const auto spent = [](const std::string& event) {
    return Account(Event::Parse("add-remove: " + event), Delta(1e-5)).value;
  };
  const Interval both = spent("compose(gaussian(1), parallel(laplace(1), gaussian(2)))");
  EXPECT_GE(both.upper, spent("compose(gaussian(1), laplace(1))").lower);
  EXPECT_GE(both.upper, spent("compose(gaussian(1), gaussian(2))").lower);
  EXPECT_LE(both.upper - both.lower, 1e-3 * both.upper);
  // Two kinds of choices, in any order: no less than either kind in all steps.
  const Interval kinds =
      spent("compose(2*parallel(laplace(1), gaussian(2)), parallel(pure(0.5), gaussian(3)))");
  EXPECT_GE(kinds.lower, spent("compose(2*laplace(1), pure(0.5))").lower * (1 - 1e-3));
  EXPECT_LE(kinds.upper - kinds.lower, 2e-3 * kinds.upper);
}

}  // namespace
}  // namespace sordino
