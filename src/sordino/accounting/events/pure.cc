// pure(epsilon): any epsilon-DP mechanism.
#include <cmath>

#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/pairs/attained_pairs.h"
#include "sordino/accounting/internal/pairs/poisson_guarantees.h"

namespace sordino {
namespace {

class PureKind final : public DeltaFreeFamily {
 public:
  PureKind() : DeltaFreeFamily("pure", {FieldOf<Epsilon>("epsilon")}) {}
  void Check(const EventArguments&) const override {}  // every adjacency
  Event FixedReach(const Event& event) const override { return event; }
  DominatingPairs Pairs(const Event& event, const PairUse&) const override {
    DominatingPairs pairs = DiscretePairs(DiscreteOutcomes(event));
    pairs.upper[0].given_losses = true;
    return pairs;
  }
  double BlockRange(const Event&) const override { return 0; }
  std::optional<Outcomes> DiscreteOutcomes(const Event& event) const override {
    return ApproximateOutcomes(event.number("epsilon"), 0);
  }
  // Under add-remove and zero-out its outcomes say all.
  std::optional<DominatingPairs> PoissonPairs(const Event& event, double q,
                                              const PairUse&) const override {
    if (event.adjacency() != Adjacency::kReplaceOne) return {};
    return ReplacedGuarantee(event, q, event.number("epsilon"));
  }
  std::optional<DominatingPairs> FixedPairs(const Event&, double, const PairUse&) const override {
    return {};
  }
  std::optional<LossPair> Triangle(const Event& event, double rate) const override {
    return TriangleOfResponses(event.number("epsilon"), rate);
  }
  RenyiFunction Renyi(const Event& event) const override {
    return FromAtoms(SymmetricAtoms(event));
  }
  std::string RenyiReason(const Event& event) const override {
    return RenyiReasonOfEpsilon(event.number("epsilon"));
  }
  std::optional<LossAtoms> SymmetricAtoms(const Event& event) const override {
    const double epsilon = event.number("epsilon");
    return std::isinf(epsilon) ? std::nullopt : std::optional(PureAtoms(epsilon));
  }
  RenyiFunction PoissonRenyi(const Event&, double) const override { return {}; }
  ZcdpResult Zcdp(const Event& event) const override { return ZcdpOfPure(event.number("epsilon")); }
  double StepEpsilon(const Event& event, double, std::optional<RenyiCurve>&) const override {
    return event.number("epsilon");
  }
};

}  // namespace

const EventKind& PureEvent() { return OneOfKind<PureKind>(); }

Event Event::Pure(Epsilon epsilon, Adjacency adjacency) {
  return PureEvent().New({adjacency, {epsilon.value()}});
}

}  // namespace sordino
