// A kind of event that does not say what twice the reach makes of it does not compile: a silent
// answer would be too small under replace-one.
// expect: abstract
#include "sordino/accounting/internal/event_families.h"

namespace sordino {

class NewKind final : public NoiseFamily {
 public:
  NewKind() : NoiseFamily("new", {FieldOf<NoiseMultiplier>("noise")}) {}
  void Check(const EventArguments&) const override {}
#ifndef MISTAKE
  Event DoubledReach(const Event& event) const override {
    return Event::Gaussian(NoiseMultiplier(event.number("noise") / 2), event.adjacency());
  }
#endif
  Event Coarsened(const Event& event, const CoarseGrid&) const override { return event; }
  std::optional<double> ContourHits(const Event&, std::optional<double>) const override {
    return {};
  }
  DominatingPairs Pairs(const Event&, const PairUse&) const override { return Missing("no pair"); }
  std::optional<Outcomes> DiscreteOutcomes(const Event&) const override { return {}; }
  bool HasTooLittleNoise(const Event&) const override { return false; }
  std::optional<DominatingPairs> PoissonPairs(const Event&, double, const PairUse&) const override {
    return {};
  }
  RenyiFunction Renyi(const Event&) const override { return Infinite(); }
  std::optional<LossAtoms> SymmetricAtoms(const Event&) const override { return {}; }
  RenyiFunction PoissonRenyi(const Event&, double) const override { return {}; }
  ZcdpResult Zcdp(const Event&) const override { return {}; }
};

const EventKind& NewEvent() {
  static const NewKind kind;
  return kind;
}

}  // namespace sordino
