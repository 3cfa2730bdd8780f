#include "sordino/accounting/noise_formulas.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/base/error.h"

namespace sordino {
namespace {

void CheckInputs(SamplingRate rate, std::uint64_t steps, Epsilon epsilon, Delta delta) {
  CheckRange("the sampling rate", rate.value(), 0, true, 1, false);
  CheckRange("epsilon", epsilon.value(), 0, true, kInfinity, true);
  CheckRange("delta", delta.value(), 0, true, 1, true);
  if (steps == 0) throw Error("the number of steps is 0; it must be at least 1.");
}

}  // namespace

double BasicNoise(SamplingRate rate, std::uint64_t steps, Epsilon epsilon, Delta delta) {
  CheckInputs(rate, steps, epsilon, delta);
  const double qt = rate.value() * static_cast<double>(steps);
  const double log_term = std::log(1.25) + std::log(qt) - std::log(delta.value());
  if (log_term <= 0) {
    throw Error(fmt::format(
        "the basic noise formula was given delta {:g} for {:g} expected visits; delta must be "
        "below 1.25 times that number.",
        delta.value(), qt));
  }
  return qt * std::sqrt(2 * log_term) / epsilon.value();
}

double AdvancedNoise(SamplingRate rate, std::uint64_t steps, Epsilon epsilon, Delta delta) {
  CheckInputs(rate, steps, epsilon, delta);
  const double t = static_cast<double>(steps);
  const double log_inverse = -std::log(delta.value());
  return rate.value() * std::sqrt(t * log_inverse * (std::log(t) + log_inverse)) / epsilon.value();
}

double MomentsNoise(SamplingRate rate, std::uint64_t steps, Epsilon epsilon, Delta delta,
                    double constant) {
  CheckInputs(rate, steps, epsilon, delta);
  CheckRange("the constant of the moments formula", constant, 0, true, kInfinity, true);
  const double t = static_cast<double>(steps);
  return constant * rate.value() * std::sqrt(-t * std::log(delta.value())) / epsilon.value();
}

std::vector<NoiseFormulaRow> NoiseFormulaTable(SamplingRate rate, Epsilon epsilon, Delta delta,
                                               std::span<const std::uint64_t> steps,
                                               const std::function<double(std::uint64_t)>& exact) {
  std::vector<NoiseFormulaRow> rows;
  rows.reserve(steps.size());
  for (const std::uint64_t t : steps) {
    NoiseFormulaRow row{};
    row.steps = t;
    row.basic = BasicNoise(rate, t, epsilon, delta);
    row.advanced = AdvancedNoise(rate, t, epsilon, delta);
    row.moments = MomentsNoise(rate, t, epsilon, delta);
    row.exact = exact ? exact(t) : std::nan("");
    row.advanced_over_basic = row.advanced / row.basic;
    row.ratio_times_sqrt_steps = row.advanced_over_basic * std::sqrt(static_cast<double>(t));
    row.moments_over_basic = row.moments / row.basic;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace sordino
