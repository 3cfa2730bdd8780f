// none: nothing was released.
#include "sordino/accounting/internal/event_families.h"

namespace sordino {
namespace {

class NoneKind final : public DeltaFreeFamily {
 public:
  NoneKind() : DeltaFreeFamily("none", {}) {}
  void Check(const EventArguments&) const override {}  // every adjacency
  Event FixedReach(const Event& event) const override { return event; }
  DominatingPairs Pairs(const Event&, const PairUse&) const override { return Same({LossPair{}}); }
  double BlockRange(const Event&) const override { return 0; }
  std::optional<Outcomes> DiscreteOutcomes(const Event&) const override { return {}; }
  std::optional<DominatingPairs> PoissonPairs(const Event&, double, const PairUse&) const override {
    return {};
  }
  std::optional<DominatingPairs> FixedPairs(const Event&, double, const PairUse&) const override {
    return {};
  }
  std::optional<LossPair> Triangle(const Event&, double) const override { return {}; }
  RenyiFunction Renyi(const Event&) const override { return Linear(0); }
  std::string RenyiReason(const Event&) const override { return ""; }
  std::optional<LossAtoms> SymmetricAtoms(const Event&) const override { return {}; }
  RenyiFunction PoissonRenyi(const Event&, double) const override { return {}; }
  ZcdpResult Zcdp(const Event&) const override { return {0, ""}; }
  double StepEpsilon(const Event&, double, std::optional<RenyiCurve>&) const override { return 0; }
};

}  // namespace

const EventKind& NoneEvent() { return OneOfKind<NoneKind>(); }

Event Event::None(Adjacency adjacency) { return NoneEvent().New({adjacency, {}}); }

}  // namespace sordino
