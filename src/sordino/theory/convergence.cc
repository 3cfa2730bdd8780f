#include "sordino/theory/convergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"
#include "sordino/base/quantity.h"
#include "sordino/theory/internal/check_positive.h"
#include "sordino/theory/noise_schedule.h"

namespace sordino {
namespace {

std::int64_t WholeSteps(double steps) {
  if (!(steps <= static_cast<double>(kMaxExactCount))) {
    throw Error(
        "the best number of steps is above 2^53; give a smaller kappa, or a larger alpha (fewer "
        "records, a smaller budget).");
  }
  return static_cast<std::int64_t>(steps);
}

// The better one of the integers beside the real minimum of a function that falls and then rises.
template <typename Bound>
Horizon BesideMinimum(double minimum, Bound bound) {
  Horizon best{
      .steps = 0, .bound = 1, .formula_steps = {}, .bound_at_formula = {}, .published = {}};
  const double below = std::floor(minimum);
  for (const double steps : {below, below + 1}) {
    const double value = bound(steps);
    if (value < best.bound) {
      best.steps = WholeSteps(steps);
      best.bound = value;
    }
  }
  return best;
}

// g of Eq. 9.
double UniformOrder(double x) { return x * (1 + (x - 1) * std::log(x)); }

}  // namespace

ConvergenceProblem::ConvergenceProblem(double kappa, double alpha) : kappa_(kappa), alpha_(alpha) {
  CheckRange("kappa", kappa, 1, false, kInfinity, true);
  internal::CheckPositive("alpha", alpha);
}

ConvergenceProblem ConvergenceProblem::Of(const ProblemConstants& c) {
  internal::CheckPositive("the number of records", c.records);
  internal::CheckPositive("the dimension", c.dimension);
  internal::CheckPositive("the Lipschitz constant", c.lipschitz);
  internal::CheckPositive("the smoothness", c.smoothness);
  internal::CheckPositive("the strong convexity", c.strong_convexity);
  internal::CheckPositive("the initial gap", c.initial_gap);
  internal::CheckPositive("the budget", c.budget);
  if (c.strong_convexity > c.smoothness) {
    throw Error(fmt::format(
        "the strong convexity is {:g} and the smoothness {:g}; the first is never above the "
        "second.",
        c.strong_convexity, c.smoothness));
  }
  const double ratio = c.lipschitz / c.records;
  return {c.smoothness / c.strong_convexity,
          c.dimension * ratio * ratio / (2 * c.budget * c.smoothness * c.initial_gap)};
}

double ConvergenceProblem::Decay(double steps) const {
  if (steps == 0) return 1;
  return std::exp(steps * std::log1p(-1 / kappa_));
}

double ConvergenceProblem::UniformBound(double steps) const {
  const double decay = Decay(steps);
  return decay + steps * alpha_ * (1 - decay) * kappa_;
}

double ConvergenceProblem::DynamicBound(double steps) const {
  // 1 / (1 - sqrt(gamma)) = kappa (1 + sqrt(gamma)).
  const double sum = (1 - Decay(steps / 2)) * kappa_ * (1 + std::sqrt(gamma()));
  return Decay(steps) + alpha_ * sum * sum;
}

double ConvergenceProblem::BoundOf(std::span<const double> noise) const {
  const auto steps = static_cast<std::int64_t>(noise.size());
  return Decay(static_cast<double>(steps)) + NoiseTerm(Influence(steps), noise);
}

std::vector<double> ConvergenceProblem::Influence(std::int64_t steps) const {
  std::vector<double> influence(static_cast<std::size_t>(steps));
  for (std::int64_t t = 1; t <= steps; ++t) {
    influence[static_cast<std::size_t>(t - 1)] = alpha_ * Decay(static_cast<double>(steps - t));
  }
  return influence;
}

Horizon BestUniform(const ConvergenceProblem& problem) {
  const auto bound = [&](double steps) { return problem.UniformBound(steps); };
  const double rate = -std::log1p(-1 / problem.kappa());  // L
  if (std::isinf(rate)) return BesideMinimum(1, bound);
  const double share = problem.kappa() * problem.alpha();
  // Where e^(L T) = 1 + L / (alpha kappa) - L T; the right side is 0 at the upper end.
  double low = 0;
  double high = 1 / rate + 1 / share;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    if (std::expm1(rate * middle) < rate / share - rate * middle) {
      low = middle;
    } else {
      high = middle;
    }
  }
  Horizon best = BesideMinimum(0.5 * (low + high), bound);
  best.formula_steps = 0;
  best.bound_at_formula = 1;
  best.published = PublishedOrder{.value = 1, .least = kUniformShare, .most = 1};
  if (share < rate) {
    best.formula_steps = WholeSteps(std::ceil(std::log(rate / share) / rate));
    best.bound_at_formula = bound(static_cast<double>(*best.formula_steps));
    best.published = PublishedOrder{.value = UniformOrder(problem.kappa() * share),
                                    .least = kUniformShare / UniformOrder(problem.kappa() * rate),
                                    .most = 1 + rate * (1 + std::exp(-2))};
  }
  return best;
}

Horizon BestDynamic(const ConvergenceProblem& problem) {
  const auto bound = [&](double steps) { return problem.DynamicBound(steps); };
  const double rate = -std::log1p(-1 / problem.kappa());
  if (std::isinf(rate)) return BesideMinimum(1, bound);
  const double sum = problem.kappa() * (1 + std::sqrt(problem.gamma()));
  // 2 log_gamma(a / (1 + a)) = 2 log(1 + 1 / a) / L.
  const double minimum = 2 * std::log1p(1 / (problem.alpha() * sum * sum)) / rate;
  Horizon best = BesideMinimum(minimum, bound);
  best.formula_steps = WholeSteps(std::ceil(minimum));
  best.bound_at_formula = bound(static_cast<double>(*best.formula_steps));
  const double order = problem.kappa() * problem.kappa() * problem.alpha();
  const double root = 1 + std::sqrt(problem.gamma());
  best.published = PublishedOrder{
      .value = order / (1 + order), .least = 1, .most = (1 + problem.alpha()) * root * root};
  return best;
}

}  // namespace sordino
