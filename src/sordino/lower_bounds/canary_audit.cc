#include "sordino/lower_bounds/canary_audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/lower_bounds/binomial.h"

namespace sordino {
namespace {

// How many of m canaries are guessed.
std::int64_t GuessesFor(std::int64_t m) {
  const double best = 2.5 * std::pow(static_cast<double>(m), 0.6);
  const auto even = 2 * static_cast<std::int64_t>(best / 2);
  return std::clamp(even, kMinAuditCanaries, m);
}

// The canaries by falling scores.
std::vector<std::size_t> ByScore(const std::vector<double>& scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  return order;
}

OneRun Guessed(const ScoredCanaries& canaries, const std::vector<std::size_t>& order,
               std::int64_t guesses) {
  OneRun run;
  run.canaries = static_cast<std::int64_t>(order.size());
  run.guesses = guesses;
  const std::int64_t in = guesses / 2;
  for (std::int64_t i = 0; i < guesses; ++i) {
    const bool says_in = i < in;
    const std::int64_t place = says_in ? i : run.canaries - 1 - (i - in);
    if ((canaries.is_in[order[static_cast<std::size_t>(place)]] != 0) == says_in) ++run.correct;
  }
  return run;
}

GaussianLowerBound SignsBound(const ScoredCanaries& canaries, Delta delta, double significance) {
  std::int64_t right = 0;
  for (std::size_t i = 0; i < canaries.scores.size(); ++i) {
    if ((canaries.is_in[i] != 0) == (canaries.scores[i] > 0)) ++right;
  }
  const auto count = static_cast<std::int64_t>(canaries.scores.size());
  const double share = ClopperPearsonLower(count, right, significance);
  return GaussianBoundOf(share > 0.5 ? 2 * UpperQuantile(1 - share) : 0, delta);
}

}  // namespace

CanaryAudit AuditCanaries(const ScoredCanaries& canaries, Delta delta, double significance) {
  SORDINO_CHECK(canaries.is_in.size() == canaries.scores.size(),
                "canaries do not have one score each");
  const auto count = static_cast<std::int64_t>(canaries.scores.size());
  if (count < kMinAuditCanaries) {
    throw Error(fmt::format("{} canaries were given; an audit needs at least {}.", count,
                            kMinAuditCanaries));
  }
  if (std::any_of(canaries.scores.begin(), canaries.scores.end(),
                  [](double score) { return std::isnan(score); })) {
    throw Error("the score of a canary is not a number, so there is nothing to guess by.");
  }
  CanaryAudit audit;
  audit.outcome = Guessed(canaries, ByScore(canaries.scores), GuessesFor(count));
  audit.epsilon = OneRunEpsilon(audit.outcome, delta, significance);
  audit.gaussian = OneRunGaussian(audit.outcome, delta, significance);
  audit.signs = SignsBound(canaries, delta, significance);
  return audit;
}

}  // namespace sordino
