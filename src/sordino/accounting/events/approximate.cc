// approximate(epsilon, delta): any (epsilon, delta)-DP mechanism.
#include <fmt/format.h>

#include <cmath>

#include "sordino/accounting/composition.h"
#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/pairs/poisson_guarantees.h"

namespace sordino {
namespace {

class ApproximateKind final : public GuaranteeFamily {
 public:
  ApproximateKind()
      : GuaranteeFamily("approximate", {FieldOf<Epsilon>("epsilon"), FieldOf<Delta>("delta")}) {}
  void Check(const EventArguments&) const override {}  // every adjacency
  Event FixedReach(const Event& event) const override { return event; }
  KeptPart Kept(const Event& event) const override {
    if (event.number("delta") == 0) return {event, 0};
    return {Event::Pure(Epsilon(event.number("epsilon")), event.adjacency()),
            event.number("delta")};
  }
  DominatingPairs Pairs(const Event& event, const PairUse&) const override {
    DominatingPairs pairs = DiscretePairs(DiscreteOutcomes(event));
    pairs.upper[0].given_losses = true;
    return pairs;
  }
  double BlockRange(const Event&) const override { return 0; }
  std::optional<Outcomes> DiscreteOutcomes(const Event& event) const override {
    return ApproximateOutcomes(event.number("epsilon"), event.number("delta"));
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
  std::optional<LossPair> Triangle(const Event&, double) const override { return {}; }
  RenyiFunction Renyi(const Event& event) const override {
    return FromAtoms(SymmetricAtoms(event));
  }
  std::string RenyiReason(const Event& event) const override {
    const double delta = event.number("delta");
    if (!(delta > 0)) return RenyiReasonOfEpsilon(event.number("epsilon"));
    return fmt::format(
        "an approximate event with delta {} has no finite Renyi divergence at any order", delta);
  }
  std::optional<LossAtoms> SymmetricAtoms(const Event& event) const override {
    const double epsilon = event.number("epsilon");
    if (std::isinf(epsilon) || event.number("delta") > 0) return std::nullopt;
    return PureAtoms(epsilon);
  }
  RenyiFunction PoissonRenyi(const Event&, double) const override { return {}; }
  ZcdpResult Zcdp(const Event& event) const override {
    const double delta = event.number("delta");
    if (delta == 0) return ZcdpOfPure(event.number("epsilon"));
    return {kInfinity,
            fmt::format("an approximate event with delta {} is not zCDP for any rho", delta)};
  }
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>&) const override {
    return log_delta >= LeastLogDelta(event) ? event.number("epsilon") : kInfinity;
  }
  double LeastLogDelta(const Event& event) const override {
    return std::log(event.number("delta"));
  }
  // The product of rate and delta is compared as it is.
  std::optional<double> EpsilonAtOwnDelta(const Event& event, double delta,
                                          std::optional<double> above) const override {
    const double rate = above.value_or(1);
    const double own = event.number("delta");
    const double product = rate * own;
    const bool within = product < delta || (product == delta && std::fma(rate, own, -product) <= 0);
    if (!within) return std::nullopt;
    return AmplifyBySampling({event.number("epsilon"), std::log(own), 1}, rate).epsilon;
  }
};

}  // namespace

const EventKind& ApproximateEvent() { return OneOfKind<ApproximateKind>(); }

Event Event::Approximate(Epsilon epsilon, Delta delta, Adjacency adjacency) {
  return ApproximateEvent().New({adjacency, {epsilon.value(), delta.value()}});
}

}  // namespace sordino
