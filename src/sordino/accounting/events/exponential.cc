// exponential(epsilon): the exponential mechanism, whose losses span a range of epsilon
// (internal/pairs/bounded_range.h).
#include <cmath>

#include "sordino/accounting/internal/engines/enumerated.h"
#include "sordino/accounting/internal/engines/exact_release.h"
#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/pairs/bounded_range.h"
#include "sordino/accounting/internal/pairs/poisson_guarantees.h"

namespace sordino {
namespace {

// Above this range an exponential mechanism counts as a pure one.
constexpr double kMaxRange = 100;

DominatingPairs ExponentialPairs(double range, const PairUse& use) {
  if (range == 0) return Same({LossPair{}});
  DominatingPairs pairs;
  if (use.log_delta == -kInfinity || range > kMaxRange) {
    pairs.upper = {FromOutcomes(ApproximateOutcomes(range, 0))};
  } else {
    const std::uint64_t block = use.blocks ? BoundedRangeBlock(use.count, use.effort) : 1;
    const double log_copies = std::log(static_cast<double>(use.count / block + 1));
    pairs.block = block;
    pairs.upper = {BoundedRangeUpper(range, block, use.log_delta - log_copies - 12, use.effort)};
  }
  if (range > kMaxRange) {
    pairs.lower = {FromOutcomes(ApproximateOutcomes(range / 2, 0))};
    return pairs;
  }
  pairs.lower = {FromOutcomes(TwoLossOutcomes(range, WorstLoss(range, use.count, use.log_delta)))};
  const bool whole = use.blocks && use.alone && use.count > 1 && pairs.block >= use.count;
  if (whole && use.effort == Effort::kFull) {
    // The points of a strategy may be too far apart for a tiny delta.
    LossPair strategy = BoundedRangeStrategy(range, use.count, use.log_delta);
    const auto fixed = Enumerated::Of({{pairs.lower[0], use.count}});
    if (!fixed || ExactEpsilon(strategy, use.log_delta) > fixed->Epsilon(use.log_delta).lower) {
      pairs.lower_block = use.count;
      pairs.lower = {std::move(strategy)};
    }
    return pairs;
  }
  if (!use.alone) {
    // Beside other releases a large variance may count for more; each in both directions of theirs.
    const double even = std::log1p(0.5 * std::expm1(range));
    const LossPair wide = FromOutcomes(TwoLossOutcomes(range, even));
    pairs.lower.insert(pairs.lower.end(), {pairs.lower[0], wide, wide});
  }
  return pairs;
}

class ExponentialKind final : public DeltaFreeFamily {
 public:
  ExponentialKind() : DeltaFreeFamily("exponential", {FieldOf<Epsilon>("epsilon")}) {}
  void Check(const EventArguments&) const override {}  // every adjacency
  Event FixedReach(const Event& event) const override { return event; }
  DominatingPairs Pairs(const Event& event, const PairUse& use) const override {
    return ExponentialPairs(event.number("epsilon"), use);
  }
  double BlockRange(const Event& event) const override { return event.number("epsilon"); }
  std::optional<Outcomes> DiscreteOutcomes(const Event&) const override { return {}; }
  std::optional<DominatingPairs> PoissonPairs(const Event& event, double q,
                                              const PairUse& use) const override {
    return SampledExponential(event.number("epsilon"), {q, false}, event.adjacency(), use);
  }
  std::optional<DominatingPairs> FixedPairs(const Event& event, double q,
                                            const PairUse& use) const override {
    return SampledExponential(event.number("epsilon"), {q, true}, event.adjacency(), use);
  }
  std::optional<LossPair> Triangle(const Event&, double) const override { return {}; }
  RenyiFunction Renyi(const Event& event) const override {
    return [epsilon = event.number("epsilon")](double order) {
      return BoundedRangeRenyi(epsilon, order);
    };
  }
  std::string RenyiReason(const Event& event) const override {
    return RenyiReasonOfEpsilon(event.number("epsilon"));
  }
  std::optional<LossAtoms> SymmetricAtoms(const Event&) const override { return {}; }
  RenyiFunction PoissonRenyi(const Event& event, double q) const override {
    if (event.adjacency() == Adjacency::kReplaceOne) return {};
    return Smaller(PoissonRenyiBound(q, Renyi(event)),
                   SampledAtoms(PureAtoms(event.number("epsilon")), q));
  }
  ZcdpResult Zcdp(const Event& event) const override {
    ZcdpResult result = ZcdpOfPure(event.number("epsilon"));
    result.rho *= 0.25;
    return result;
  }
  double StepEpsilon(const Event& event, double, std::optional<RenyiCurve>&) const override {
    return event.number("epsilon");
  }
};

}  // namespace

const EventKind& ExponentialEvent() { return OneOfKind<ExponentialKind>(); }

Event Event::Exponential(Epsilon epsilon, Adjacency adjacency) {
  return ExponentialEvent().New({adjacency, {epsilon.value()}});
}

}  // namespace sordino
