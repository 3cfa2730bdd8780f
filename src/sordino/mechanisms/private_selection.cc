#include "sordino/mechanisms/private_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

void CheckMean(double mean) {
  if (mean > 1 && mean <= kMaxExpectedRuns) return;
  throw Error(fmt::format("{:g} runs are expected; give a number above 1 and at most {:g}.", mean,
                          kMaxExpectedRuns));
}

}  // namespace

SecretRuns SelectionRuns(double expected_runs) {
  CheckMean(expected_runs);
  return SecretRuns::Within(RunCount::NegativeBinomialOfMean(0, expected_runs), 0x1p-60);
}

SecretRuns::SecretRuns(const RunCount& count, std::int64_t most) : count_(count), most_(most) {
  const double limit = count.IsPoisson() ? kMaxPoissonRuns : kMaxExpectedRuns;
  if (count.Mean() <= limit) return;
  throw Error(
      fmt::format("{:g} runs are expected; give a distribution with a mean of at most {:g}.",
                  count.Mean(), limit));
}

SecretRuns SecretRuns::Within(const RunCount& count, double probability) {
  SecretRuns runs(count, 1);
  std::int64_t low = 0;
  while (runs.Above(runs.most_) > probability) {
    low = runs.most_;
    runs.most_ *= 2;
  }
  while (runs.most_ - low > 1) {
    const std::int64_t middle = low + (runs.most_ - low) / 2;
    (runs.Above(middle) > probability ? low : runs.most_) = middle;
  }
  return runs;
}

double SecretRuns::First() const { return count_.Probability(Least()); }

double SecretRuns::Next(double p, double runs) const {
  if (count_.IsPoisson()) return p * (count_.Mean() / (runs + 1));
  return p * ((1 - count_.gamma()) * (runs + count_.eta()) / (runs + 1));
}

// The ratio of one probability to the one before falls from here on to 1 - gamma, or rises to it
// where eta is below 1; so what is left out is at most a geometric series.
double SecretRuns::Above(std::int64_t runs) const {
  double sum = 0;
  double k = static_cast<double>(runs) + 1;
  double p = count_.Probability(runs + 1);
  while (true) {
    sum += p;
    const double next = Next(p, k);
    const double ratio = count_.IsPoisson() ? next / p : std::max(next / p, 1 - count_.gamma());
    if (p == 0 || (ratio < 1 && next / (1 - ratio) < 1e-6 * sum)) return sum * (1 + 2e-6);
    p = next;
    ++k;
  }
}

// What Draw rounds, in units of 2^-53: the first probability is good to 400 of its own, as its
// exponent is at most 207; each further one to 5 more, so k of them cost 5 k P(K = k), 5 E[K] in
// all; each sum and the grid of the uniform number cost 3/2 for each number. Half of the total is
// the distance.
double SecretRuns::Failure() const {
  return Above(most_) + (256 + 3 * count_.Mean() + static_cast<double>(most_)) *
                            std::numeric_limits<double>::epsilon() / 2;
}

// By the inverse of the distribution function.
std::int64_t SecretRuns::Draw(Generator& generator) const {
  const double uniform = static_cast<double>(generator.Next64() >> 11U) * 0x1p-53;
  double p = First();
  double below = 0;
  for (std::int64_t runs = Least(); runs < most_; ++runs) {
    below += p;
    if (uniform < below) return runs;
    p = Next(p, static_cast<double>(runs));
  }
  return most_;
}

std::optional<SelectionBudget> PlanSelection(Epsilon epsilon, Delta delta, double expected_runs,
                                             Adjacency adjacency) {
  const SecretRuns runs = SelectionRuns(expected_runs);
  if (!(epsilon.value() > 0) || !std::isfinite(epsilon.value())) {
    throw Error(
        fmt::format("epsilon is {:g}; a selection needs a finite one above 0.", epsilon.value()));
  }
  const double failure = runs.Failure();
  constexpr double kDown = 1 - 1e-12;  // more than the roundings below
  for (const double share : kFailureShares) {
    if (!FailuresArePaid(failure, epsilon, delta.value() * share)) continue;
    const double left = DeltaForEvents(delta, share).value() * kDown;
    const double half = epsilon.value() / 2 * kDown;
    // (1 + e^half) / (1 + e^epsilon), without overflow.
    const double ratio = std::exp(-half) * (1 + std::exp(-half)) / (1 + std::exp(-2 * half));
    SelectionBudget budget;
    budget.run_epsilon = Epsilon(half);
    budget.run_delta = Delta(left * ratio / expected_runs * kDown);
    budget.event = Event::Approximate(Epsilon(2 * half), Delta(left), adjacency);
    budget.failure = failure;
    return budget;
  }
  return std::nullopt;
}

}  // namespace sordino
