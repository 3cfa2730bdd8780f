#include "sordino/accounting/internal/poisson_guarantees.h"

#include <cmath>
#include <utility>
#include <vector>

#include "sordino/accounting/internal/bounded_range.h"
#include "sordino/accounting/internal/outcomes.h"
#include "sordino/accounting/internal/renyi_moments.h"

namespace sordino {
namespace {

using Kind = Event::Kind;

constexpr double kMaxSampledRange = 30;
constexpr double kMinZcdpSigma = 0.01;

std::vector<LossPair> BothDirections(const Outcomes& outcomes, double q) {
  const Outcomes sampled = SampleOutcomes(outcomes, q);
  return {FromOutcomes(sampled), FromOutcomes(Swapped(sampled))};
}

void AppendPairs(std::vector<LossPair>& pairs, std::vector<LossPair> more) {
  for (LossPair& pair : more) pairs.push_back(std::move(pair));
}

LossPair ThreeOutcomes(double epsilon, double q) {
  const double fall = std::exp(-epsilon);
  const double b = (1 - fall) / (std::exp(epsilon) + 1 - 2 * fall);
  const double loss = SampledLoss(q, epsilon);
  const double log_b = std::log(b);
  const double rest = std::log1p(-b - b * std::exp(loss));
  return FromOutcomes({{log_b + loss, log_b, loss}, {log_b, log_b + loss, -loss}, {rest, rest, 0}});
}

std::optional<DominatingPairs> ReplacedGuarantee(const Event& child, double q) {
  const bool guarantee = child.kind() == Kind::kPure || child.kind() == Kind::kApproximate;
  if (!guarantee && child.kind() != Kind::kRandomizedResponse) return std::nullopt;
  if (guarantee && !(child.numbers()[0] < kMaxSampledRange)) return std::nullopt;
  const std::optional<Outcomes> outcomes = OutcomesOf(child);
  if (!outcomes) return std::nullopt;
  DominatingPairs pairs;
  pairs.lower = BothDirections(*outcomes, q);
  pairs.upper = {Glue(pairs.lower[0], pairs.lower[1])};
  if (guarantee && child.numbers()[0] > 0) {
    pairs.lower.push_back(ThreeOutcomes(child.numbers()[0], q));
  }
  return pairs;
}

DominatingPairs SampledExponential(double range, double q, bool replace, const PairUse& use) {
  DominatingPairs pairs;
  pairs.upper = BothDirections(BoundedRangeOutcomes(range), q);
  if (replace) pairs.upper = {Glue(pairs.upper[0], pairs.upper[1])};
  // What counts is the variance of the sampled loss, q^2 (e^t - 1)(1 - e^{t-e}) in many steps, and
  // the largest loss in few.
  const double even = std::log1p(0.5 * std::expm1(range));
  for (const double t :
       {even, WorstLoss(range, 1, use.log_delta), WorstLoss(range, use.count, use.log_delta)}) {
    AppendPairs(pairs.lower, BothDirections(TwoLossOutcomes(range, t), q));
  }
  return pairs;
}

}  // namespace

Event MergedSamplers(const Event& event) {
  double rate = 1;
  Event inner = event;
  while (inner.kind() == Kind::kPoisson) {
    rate *= inner.numbers()[0];
    inner = Event(inner.children()[0].first);
  }
  return Event::Poisson(SamplingRate(rate), inner);
}

std::optional<DominatingPairs> PoissonGuaranteePairs(const Event& event, const PairUse& use) {
  const double q = event.numbers()[0];
  const Event& child = event.children()[0].first;
  const bool replace = event.adjacency() == Adjacency::kReplaceOne;
  if (!(q > 0)) return std::nullopt;
  if (child.kind() == Kind::kExponential) {
    const double range = child.numbers()[0];
    if (!(range > 0 && range < kMaxSampledRange)) return std::nullopt;
    return SampledExponential(range, q, replace, use);
  }
  if (child.kind() == Kind::kZcdp) {
    const double rho = child.numbers()[0];
    if (!(rho > 0) || q == 1) return std::nullopt;
    const Event gaussian =
        Event::Gaussian(NoiseMultiplier(1 / std::sqrt(2 * rho)), event.adjacency());
    if (gaussian.numbers()[0] < kMinZcdpSigma) return std::nullopt;
    // Under replace-one the record moves between two places at that distance.
    const Event sampled = Event::Poisson(
        SamplingRate(q),
        replace ? Event::Gaussian(NoiseMultiplier(2 / std::sqrt(2 * rho)), event.adjacency())
                : gaussian);
    const DominatingPairs below = DominatingPairsOf(sampled, use);
    return DominatingPairs{{},    below.upper, "a zCDP mechanism has no single dominating pair",
                           false, 1,           1};
  }
  return replace ? ReplacedGuarantee(child, q) : std::nullopt;
}

}  // namespace sordino
