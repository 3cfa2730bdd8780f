#include "sordino/mechanisms/private_selection.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

double MeanRuns(double gamma) { return (1 - gamma) / (gamma * -std::log(gamma)); }

void CheckMean(double mean) {
  if (mean > 1 && mean <= kMaxExpectedRuns) return;
  throw Error(fmt::format("{:g} runs are expected; give a number above 1 and at most {:g}.", mean,
                          kMaxExpectedRuns));
}

}  // namespace

// The mean falls in gamma, from infinity at 0 to 1 at 1.
LogarithmicRuns::LogarithmicRuns(double mean) : gamma_(0) {
  CheckMean(mean);
  double low = 1e-9;
  double high = 1;
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    (MeanRuns(middle) > mean ? low : high) = middle;
  }
  gamma_ = high;  // of a mean that is not above what was asked for
}

double LogarithmicRuns::Probability(std::int64_t runs) const {
  if (runs < 1) return 0;
  const auto k = static_cast<double>(runs);
  return std::exp(k * std::log1p(-gamma_)) / (k * -std::log(gamma_));
}

// By the inverse of the distribution function. Sums of doubles and the 2^-53 of the uniform number
// are far below the declared error.
std::int64_t LogarithmicRuns::Draw(Generator& generator) const {
  const double uniform = static_cast<double>(generator.Next64() >> 11U) * 0x1p-53;
  double below = 0;
  std::int64_t runs = 1;
  for (;; ++runs) {
    const double probability = Probability(runs);
    below += probability;
    // Behind the last double the tail is nothing.
    if (uniform < below || probability < 0x1p-70) return runs;
  }
}

std::optional<SelectionBudget> PlanSelection(Epsilon epsilon, Delta delta, double expected_runs,
                                             Adjacency adjacency) {
  CheckMean(expected_runs);
  if (!(epsilon.value() > 0) || !std::isfinite(epsilon.value())) {
    throw Error(
        fmt::format("epsilon is {:g}; a selection needs a finite one above 0.", epsilon.value()));
  }
  constexpr double kDown = 1 - 1e-12;  // more than the roundings below
  for (const double share : kFailureShares) {
    if (!FailuresArePaid(LogarithmicRuns::kDrawError, epsilon, delta.value() * share)) continue;
    const double left = DeltaForEvents(delta, share).value() * kDown;
    const double half = epsilon.value() / 2 * kDown;
    // (1 + e^half) / (1 + e^epsilon), without overflow.
    const double ratio = std::exp(-half) * (1 + std::exp(-half)) / (1 + std::exp(-2 * half));
    SelectionBudget budget;
    budget.run_epsilon = Epsilon(half);
    budget.run_delta = Delta(left * ratio / expected_runs * kDown);
    budget.event = Event::Approximate(Epsilon(2 * half), Delta(left), adjacency);
    budget.failure = LogarithmicRuns::kDrawError;
    return budget;
  }
  return std::nullopt;
}

}  // namespace sordino
