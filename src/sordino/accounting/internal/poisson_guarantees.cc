#include "sordino/accounting/internal/poisson_guarantees.h"

#include <cmath>
#include <utility>
#include <vector>

#include "sordino/accounting/internal/bounded_range.h"
#include "sordino/accounting/internal/outcomes.h"
#include "sordino/accounting/internal/renyi_moments.h"

namespace sordino {
namespace {

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

}  // namespace

std::optional<DominatingPairs> ReplacedGuarantee(const Event& child, double q,
                                                 std::optional<double> epsilon) {
  if (epsilon && !(*epsilon < kMaxSampledRange)) return std::nullopt;
  const std::optional<Outcomes> outcomes = OutcomesOf(child);
  if (!outcomes) return std::nullopt;
  DominatingPairs pairs;
  pairs.lower = BothDirections(*outcomes, q);
  pairs.upper = {Glue(pairs.lower[0], pairs.lower[1])};
  if (epsilon && *epsilon > 0) pairs.lower.push_back(ThreeOutcomes(*epsilon, q));
  return pairs;
}

std::optional<DominatingPairs> SampledExponential(double range, double q, Adjacency adjacency,
                                                  const PairUse& use) {
  if (!(range > 0 && range < kMaxSampledRange)) return std::nullopt;
  DominatingPairs pairs;
  pairs.upper = BothDirections(BoundedRangeOutcomes(range), q);
  if (adjacency == Adjacency::kReplaceOne) pairs.upper = {Glue(pairs.upper[0], pairs.upper[1])};
  // What counts is the variance of the sampled loss, q^2 (e^t - 1)(1 - e^{t-e}) in many steps, and
  // the largest loss in few.
  const double even = std::log1p(0.5 * std::expm1(range));
  for (const double t :
       {even, WorstLoss(range, 1, use.log_delta), WorstLoss(range, use.count, use.log_delta)}) {
    AppendPairs(pairs.lower, BothDirections(TwoLossOutcomes(range, t), q));
  }
  return pairs;
}

std::optional<DominatingPairs> SampledZcdp(double rho, double q, Adjacency adjacency,
                                           const PairUse& use) {
  if (!(rho > 0) || q == 1) return std::nullopt;
  const double noise = 1 / std::sqrt(2 * rho);
  if (noise < kMinZcdpSigma) return std::nullopt;
  // Under replace-one the record moves between two places at that distance.
  const bool replace = adjacency == Adjacency::kReplaceOne;
  const Event gaussian =
      Event::Gaussian(NoiseMultiplier(replace ? 2 / std::sqrt(2 * rho) : noise), adjacency);
  const DominatingPairs below = DominatingPairsOf(Event::Poisson(SamplingRate(q), gaussian), use);
  return DominatingPairs{{},    below.upper, "a zCDP mechanism has no single dominating pair",
                         false, 1,           1};
}

}  // namespace sordino
