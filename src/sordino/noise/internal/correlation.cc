#include "sordino/noise/internal/correlation.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/correlation/bands_choice.h"
#include "sordino/correlation/strategy.h"

namespace sordino::internal {
namespace {

Participation PatternOf(std::int64_t steps, std::int64_t separation) {
  return {.steps = steps, .separation = separation, .count = (steps - 1) / separation + 1};
}

double SumOfSizes(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0,
                         [](double sum, double number) { return sum + std::abs(number); });
}

// 2^l, l < count, are the lags of a tree; larger ones are in no step.
NoiseMemory MemoryOfTree(std::int64_t steps) {
  NoiseMemory memory{.kind = MemoryKind::kTree};
  for (std::int64_t lag = 1; 2 * lag <= steps; lag *= 2) memory.factors.push_back(-1);
  // A row of C has at most all ones, a column one in each level.
  const auto rows = static_cast<double>(steps);
  const auto levels = static_cast<double>(memory.factors.size() + 1);
  memory.spread = std::sqrt(rows) * std::sqrt(rows * levels);
  return memory;
}

// `rows`: in so many rows the noise of neighbours is rounded apart.
NoiseMemory MemoryOf(const Strategy& strategy, std::int64_t steps, std::int64_t rows) {
  if (!strategy.IsToeplitz()) return MemoryOfTree(steps);
  const NoiseFilter filter = strategy.Filter(0);
  NoiseMemory memory;
  const double norm = std::sqrt(static_cast<double>(rows));
  if (!filter.earlier_noise.empty()) {
    memory.kind = MemoryKind::kNoise;
    for (const double factor : filter.earlier_noise) memory.factors.push_back(-factor);
  } else if (!filter.buffers.empty()) {
    memory.kind = MemoryKind::kBuffers;
    for (const NoiseBuffer& buffer : filter.buffers) {
      memory.factors.push_back(buffer.weight);
      memory.decays.push_back(buffer.decay);
    }
  } else {
    memory.kind = MemoryKind::kDraws;
    memory.factors = filter.earlier_draws;
  }
  if (memory.kind == MemoryKind::kNoise) {
    memory.spread = norm;
    memory.largest *= SumOfSizes(strategy.NoiseCoefficients(steps)) * (1 + 1e-9);
  } else {
    memory.spread = norm * SumOfSizes(strategy.Coefficients(steps)) * (1 + 1e-9);
  }
  return memory;
}

Correlation Found(const std::string& text, std::int64_t steps, std::int64_t separation) {
  const Participation pattern = PatternOf(steps, separation);
  const std::unique_ptr<Strategy> strategy = MakeStrategy(text, pattern);
  Correlation found;
  found.is_by_round = strategy->IsToeplitz() && strategy->Bands() <= separation;
  const std::int64_t rows = found.is_by_round ? strategy->Bands() : steps;
  found.steps_per_event = found.is_by_round ? separation : steps;
  found.memory = MemoryOf(*strategy, steps, rows);
  const Participation of_event =
      found.is_by_round ? Participation{.steps = steps, .separation = separation, .count = 1}
                        : pattern;
  found.sensitivity = strategy->Sensitivity(of_event);
  return found;
}

}  // namespace

Event Correlation::EventOf(const NoiseTerms& terms, std::int64_t first, std::int64_t last) const {
  const Event release =
      Event::Matrix(terms.multiplier(first), sensitivity, terms.sampling.adjacency);
  const std::int64_t events = (last - 1) / steps_per_event - first / steps_per_event + 1;
  return Event::Repeat(
      is_by_round ? terms.sampler.StepEvent(terms.sampling, first, release) : release,
      static_cast<std::uint64_t>(events));
}

void CheckCorrelation(const std::string& text) {
  if (text != kChosenCorrelation) static_cast<void>(CorrelatedBands(text, 2));
}

std::int64_t CorrelatedBands(const std::string& text, std::int64_t steps) {
  return text == kChosenCorrelation ? steps : BandsOf(text, steps);
}

void CheckCorrelated(const NoiseTerms& terms, const std::string& text) {
  const auto require = [](bool condition, const std::string& sentence) {
    if (!condition) throw Error(sentence);
  };
  require(
      text != kChosenCorrelation,
      "the correlation of the noise is 'auto', which is chosen for a budget; give an epsilon, or "
      "a strategy such as banded:8.");
  const std::int64_t separation = terms.sampler.Separation(terms.sampling);
  require(separation > 0,
          fmt::format("noise that is correlated between steps needs records that rest between two "
                      "steps, and the sampling is {}; use cyclic (Poisson sampling from groups in "
                      "turn), ordered or full.",
                      terms.sampler.name()));
  require(terms.sampling.noise_is_constant,
          "noise that is correlated between steps is accounted for steps of equal noise, and the "
          "noise has a schedule; leave one of them out.");
  require(terms.sampling.rows_per_user <= 1,
          "noise that is correlated between steps is accounted for one row per user; declare one "
          "row per user, or use independent noise.");
  static_cast<void>(CorrelationOf(terms, text));
}

std::string ChooseCorrelation(const NoiseQuestion& budget) {
  const SamplingPlan& plan = budget.sampling;
  const std::int64_t separation = budget.sampler.Separation(plan);
  if (budget.sampler.OverflowProbability() > 0) {
    if (separation > 1) return fmt::format("banded:{}", separation);
    const std::optional<BandsChoice> choice = ChooseBands({.steps = plan.steps,
                                                           .rate = *plan.rate,
                                                           .epsilon = budget.epsilon,
                                                           .delta = budget.delta,
                                                           .adjacency = plan.adjacency});
    return choice ? choice->strategy() : "none";
  }
  if (separation == 0) return "none";
  const Participation pattern = PatternOf(plan.steps, separation);
  std::string best = "none";
  double least = kInfinity;
  for (const StrategyKind* kind : Strategies().all()) {
    const std::unique_ptr<Strategy> strategy = MakeStrategy(kind->name(), pattern);
    const double rmse = strategy->Rmse();
    if (rmse >= least) continue;
    least = rmse;
    best = strategy->text();
  }
  return best;
}

const Correlation& CorrelationOf(const NoiseTerms& terms, const std::string& text) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::int64_t, std::int64_t>,
                  std::unique_ptr<const Correlation>>
      known;
  const std::int64_t separation = terms.sampler.Separation(terms.sampling);
  const std::lock_guard lock(mutex);
  auto& found = known[{text, terms.sampling.steps, separation}];
  if (!found) {
    found = std::make_unique<const Correlation>(Found(text, terms.sampling.steps, separation));
  }
  return *found;
}

}  // namespace sordino::internal
