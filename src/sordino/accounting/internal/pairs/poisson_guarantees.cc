#include "sordino/accounting/internal/pairs/poisson_guarantees.h"

#include <cmath>
#include <utility>
#include <vector>

#include "sordino/accounting/internal/pairs/bounded_range.h"
#include "sordino/accounting/internal/pairs/outcomes.h"
#include "sordino/accounting/internal/pairs/sampled_range.h"
#include "sordino/accounting/internal/pairs/zcdp_gaussian.h"
#include "sordino/accounting/internal/renyi/renyi_moments.h"

namespace sordino {
namespace {

constexpr double kMaxSampledRange = 30;
constexpr double kMinZcdpSigma = 0.01;
// In few steps the best loss from below is looked for.
constexpr std::uint64_t kFewSampledRanges = 128;
constexpr int kTriedLosses = 24;

// Laws with either record, and with none or another one, that are pairwise within the guarantee.
bool HasThreeLaws(EventSampling sampler, Adjacency adjacency) {
  return adjacency == Adjacency::kReplaceOne || (sampler.fixed && adjacency == Adjacency::kZeroOut);
}

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

std::optional<DominatingPairs> SampledExponential(double range, EventSampling sampler,
                                                  Adjacency adjacency, const PairUse& use) {
  const double q = sampler.rate;
  if (!(range > 0 && range < kMaxSampledRange)) return std::nullopt;
  DominatingPairs pairs;
  if (HasThreeLaws(sampler, adjacency)) {
    const std::vector<LossPair> both = BothDirections(BoundedRangeOutcomes(range), q);
    pairs.upper = {Glue(both[0], both[1])};
  } else if (use.log_delta == -kInfinity) {
    pairs.upper = BothDirections(BoundedRangeOutcomes(range), q);
  } else {
    pairs.block = use.blocks ? BoundedRangeBlock(use.count, use.effort) : 1;
    const double log_copies = std::log(static_cast<double>(use.count / pairs.block + 1));
    auto [remove, add] =
        SampledRangeUpper(range, q, pairs.block, use.log_delta - log_copies - 12, use.effort);
    pairs.upper = {std::move(remove), std::move(add)};
  }
  // What counts is the variance of the sampled loss, q^2 (e^t - 1)(1 - e^{t-e}) in many steps, and
  // the largest loss in few.
  std::vector<double> losses = {std::log1p(0.5 * std::expm1(range)),
                                WorstLoss(range, 1, use.log_delta),
                                WorstLoss(range, use.count, use.log_delta)};
  if (use.count <= kFewSampledRanges && use.Closely()) {
    for (int i = 1; i < kTriedLosses; ++i) losses.push_back(range * i / kTriedLosses);
  }
  for (const double t : losses) {
    AppendPairs(pairs.lower, BothDirections(TwoLossOutcomes(range, t), q));
  }
  return pairs;
}

// From above a Gaussian that dominates any such mechanism, from below the Gaussian that is one.
std::optional<DominatingPairs> SampledZcdp(double rho, EventSampling sampler, Adjacency adjacency,
                                           const PairUse& use) {
  const auto sampled = [&](double noise, bool fixed) {
    const Event gaussian = Event::Gaussian(NoiseMultiplier(noise), adjacency);
    const SamplingRate rate(sampler.rate);
    return DominatingPairsOf(fixed ? Event::Fixed(rate, gaussian) : Event::Poisson(rate, gaussian),
                             use);
  };
  const double noise = 1 / std::sqrt(2 * rho);
  if (!(rho > 0) || noise < kMinZcdpSigma) return std::nullopt;
  DominatingPairs pairs;
  pairs.reason = "a zCDP mechanism of this rho has no dominating pair";
  // Under replace-one the record moves between two places at that distance.
  const bool doubled = !sampler.fixed && adjacency == Adjacency::kReplaceOne;
  pairs.lower = sampled(doubled ? 2 * noise : noise, sampler.fixed).attained();
  if (const auto mu = ZcdpGaussianMu(rho, 1)) {
    pairs.upper = sampled(1 / *mu, HasThreeLaws(sampler, adjacency)).upper;
  }
  return pairs;
}

}  // namespace sordino
