#include "sordino/theory/noise_schedule.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/accounting/calibration.h"
#include "sordino/accounting/event.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/theory/internal/check_positive.h"

namespace sordino {
namespace {

double SumOfRoots(std::span<const double> influence) {
  if (influence.empty()) {
    throw Error("there are no influence weights; give one for each step, at least one.");
  }
  double sum = 0;
  for (const double weight : influence) {
    internal::CheckPositive("an influence weight", weight);
    sum += std::sqrt(weight);
  }
  return sum;
}

}  // namespace

std::vector<double> OptimalNoise(std::span<const double> influence, double budget) {
  internal::CheckPositive("the budget", budget);
  const double sum = SumOfRoots(influence);
  std::vector<double> noise;
  noise.reserve(influence.size());
  for (const double weight : influence) {
    noise.push_back(std::sqrt(sum / (budget * std::sqrt(weight))));
  }
  return noise;
}

double LeastNoiseTerm(std::span<const double> influence) {
  const double sum = SumOfRoots(influence);
  return sum * sum;
}

double NoiseTerm(std::span<const double> influence, std::span<const double> noise) {
  SORDINO_CHECK(influence.size() == noise.size(), "as many influence weights as steps");
  double sum = 0;
  for (std::size_t t = 0; t < noise.size(); ++t) sum += influence[t] * noise[t] * noise[t];
  return BudgetSpent(noise) * sum;
}

double BudgetSpent(std::span<const double> noise) {
  double budget = 0;
  for (const double multiplier : noise) {
    internal::CheckPositive("the noise of a step", multiplier);
    budget += 1 / (multiplier * multiplier);
  }
  return budget;
}

std::optional<double> BudgetOf(Epsilon epsilon, Delta delta) {
  const auto found =
      CalibrateNoise([](NoiseMultiplier noise) { return Event::Gaussian(noise); }, epsilon, delta);
  if (!found) return std::nullopt;
  return 1 / (found->noise.value() * found->noise.value());
}

double ZcdpBudgetOf(Epsilon epsilon, Delta delta) {
  // rho = (sqrt(log(1/delta) + epsilon) - sqrt(log(1/delta)))^2, without the cancellation.
  const double log_one_over = -std::log(delta.value());
  const double root =
      epsilon.value() / (std::sqrt(log_one_over + epsilon.value()) + std::sqrt(log_one_over));
  return 2 * root * root;
}

}  // namespace sordino
