#include "sordino/accounting/step_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/accounting/best_of.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

// CalibrateSteps doubles up to 10^12; an answer as large as this one was not bounded by the budget.
constexpr std::uint64_t kUnboundedSteps = std::uint64_t{1} << 39;
// CalibrateNoise stops looking for less noise near 1e-4.
constexpr double kMinNoise = 3e-4;

}  // namespace

Event StepQuestion::EventAt(NoiseMultiplier at_noise, SamplingRate at_rate,
                            std::uint64_t at_steps) const {
  Event run = Event::Repeat(shape.Step(at_noise, at_rate), shape.CountOf(at_steps, at_rate));
  return select ? BestOf(*select, std::move(run)) : run;
}

double TakesPart(const StepQuestion& question) {
  const bool is_drawn =
      question.shape.sampling == Sampling::kPoisson || question.shape.sampling == Sampling::kFixed;
  if (!is_drawn) return 1;
  const double rate = question.shape.ReleaseRate(question.RateOrOne()).value();
  if (rate == 1) return 1;
  constexpr double kRounding = 1e-12;
  const auto steps =
      static_cast<double>(question.shape.CountOf(*question.steps, question.RateOrOne()));
  return std::min(1.0, -std::expm1(steps * std::log1p(-rate)) * (1 + kRounding));
}

bool AnyNoiseMeets(const StepQuestion& question) {
  return question.unknown == StepUnknown::kNoise && !question.select &&
         TakesPart(question) <= question.budget.delta.value();
}

std::optional<NoiseCalibration> LeastNoise(const StepQuestion& question, std::uint64_t steps) {
  return CalibrateNoise(
      [&](NoiseMultiplier noise) { return question.EventAt(noise, question.RateOrOne(), steps); },
      question.budget.epsilon, question.budget.delta);
}

std::optional<StepAnswer> SolveStep(const StepQuestion& question) {
  const StepBudget& budget = question.budget;
  if (question.select && question.unknown == StepUnknown::kSteps) {
    throw Error(
        "the best of several runs was given without the steps of a run; give --steps, and leave "
        "out --noise or --rate.");
  }
  if (AnyNoiseMeets(question)) return StepAnswer{0, false, {0, 0}, std::nullopt};
  switch (question.unknown) {
    case StepUnknown::kNoise:
      if (const auto found = LeastNoise(question, *question.steps)) {
        return StepAnswer{found->noise.value(), found->noise.value() < kMinNoise, found->epsilon,
                          question.EventAt(found->noise, question.RateOrOne(), *question.steps)};
      }
      break;
    case StepUnknown::kSteps:
      if (const auto found =
              CalibrateSteps(question.EventAt(*question.noise, question.RateOrOne(), 1),
                             budget.epsilon, budget.delta)) {
        // Whole allocations, where records are allocated.
        const std::uint64_t steps = found->steps * question.shape.StepsOfOne(question.RateOrOne());
        return StepAnswer{static_cast<double>(steps), found->steps >= kUnboundedSteps,
                          found->epsilon,
                          question.EventAt(*question.noise, question.RateOrOne(), steps)};
      }
      break;
    case StepUnknown::kRate:
      if (const auto found = CalibrateRate(
              [&](SamplingRate rate) {
                return question.EventAt(*question.noise, rate, *question.steps);
              },
              budget.epsilon, budget.delta)) {
        return StepAnswer{found->rate.value(), found->rate.value() == 1, found->epsilon,
                          question.EventAt(*question.noise, found->rate, *question.steps)};
      }
      break;
  }
  return std::nullopt;
}

std::string WhyNothingMeets(const StepQuestion& question) {
  const double epsilon = question.budget.epsilon.value();
  const double delta = question.budget.delta.value();
  const std::string budget = fmt::format("epsilon {:g} at delta {:g}", epsilon, delta);
  const bool gaussian = question.shape.mechanism == Mechanism::kGaussian ||
                        question.shape.mechanism == Mechanism::kDiscreteGaussian;
  if (delta == 0 && gaussian) {
    return fmt::format(
        "nothing meets {}: Gaussian noise has no pure guarantee; give a delta above 0, or use "
        "Laplace noise.",
        budget);
  }
  switch (question.unknown) {
    case StepUnknown::kNoise:
      return fmt::format("no noise up to 1e12 meets {} for {} steps; allow more or do less.",
                         budget, *question.steps);
    case StepUnknown::kSteps:
      return fmt::format(
          "not even one step with noise {:g} meets {}; give more noise, a lower rate or a larger "
          "budget.",
          question.noise->value(), budget);
    case StepUnknown::kRate:
      break;
  }
  return fmt::format(
      "no sampling rate meets {} with noise {:g} for {} steps; give more noise, fewer steps or a "
      "larger budget.",
      budget, question.noise->value(), *question.steps);
}

}  // namespace sordino
