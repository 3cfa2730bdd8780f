// half-pure(epsilon): a kind of event for event_kind_test.cc, with the guarantee of pure(epsilon /
// 2).
#include "sordino/accounting/composition.h"
#include "sordino/accounting/internal/event_families.h"

namespace sordino {
namespace {

class HalfPureKind final : public DeltaFreeFamily {
 public:
  HalfPureKind() : DeltaFreeFamily("half-pure", {FieldOf<Epsilon>("epsilon")}) {}
  void Check(const EventArguments&) const override {}  // every adjacency
  Event FixedReach(const Event& event) const override { return event; }
  DominatingPairs Pairs(const Event& event, const PairUse& use) const override {
    return DominatingPairsOf(Pure(event), use);
  }
  double BlockRange(const Event&) const override { return 0; }
  std::optional<Outcomes> DiscreteOutcomes(const Event& event) const override {
    return OutcomesOf(Pure(event));
  }
  std::optional<DominatingPairs> PoissonPairs(const Event& event, double q,
                                              const PairUse& use) const override {
    return Pure(event).kind().PoissonPairs(Pure(event), q, use);
  }
  std::optional<DominatingPairs> FixedPairs(const Event&, double, const PairUse&) const override {
    return {};
  }
  std::optional<LossPair> Triangle(const Event& event, double rate) const override {
    return Pure(event).kind().Triangle(Pure(event), rate);
  }
  RenyiFunction Renyi(const Event& event) const override { return RenyiOf(Pure(event)); }
  std::string RenyiReason(const Event& event) const override {
    return RenyiReasonOfEpsilon(event.number("epsilon"));
  }
  std::optional<LossAtoms> SymmetricAtoms(const Event& event) const override {
    return PureAtoms(event.number("epsilon") / 2);
  }
  RenyiFunction PoissonRenyi(const Event&, double) const override { return {}; }
  ZcdpResult Zcdp(const Event& event) const override { return ZcdpOf(Pure(event)); }
  double StepEpsilon(const Event& event, double, std::optional<RenyiCurve>&) const override {
    return event.number("epsilon") / 2;
  }

 private:
  static Event Pure(const Event& event) {
    return Event::Pure(Epsilon(event.number("epsilon") / 2), event.adjacency());
  }
};

}  // namespace

const EventKind& HalfPureEvent() { return OneOfKind<HalfPureKind>(); }

}  // namespace sordino
