// zcdp(rho): any rho-zCDP mechanism.
#include <cmath>

#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/pairs/poisson_guarantees.h"
#include "sordino/accounting/internal/pairs/zcdp_gaussian.h"

namespace sordino {
namespace {

class ZcdpKind final : public DeltaFreeFamily {
 public:
  ZcdpKind() : DeltaFreeFamily("zcdp", {FieldOf<Rho>("rho")}) {}
  void Check(const EventArguments&) const override {}  // every adjacency
  Event FixedReach(const Event& event) const override { return event; }
  DominatingPairs Pairs(const Event& event, const PairUse& use) const override {
    const double rho = event.number("rho");
    DominatingPairs pairs = Missing("a zCDP mechanism of this rho has no dominating pair");
    pairs.block = use.blocks ? use.count : 1;
    if (const auto mu = ZcdpGaussianMu(rho, pairs.block); mu && use.log_delta > -kInfinity) {
      pairs.upper = {FromGaussian(*mu)};
    }
    pairs.lower = {FromGaussian(std::sqrt(2 * rho))};  // the Gaussian is one
    return pairs;
  }
  // A range of e has a loss of variance e^2 / 4 at most.
  double BlockRange(const Event& event) const override {
    return std::sqrt(8 * event.number("rho"));
  }
  std::optional<Outcomes> DiscreteOutcomes(const Event&) const override { return {}; }
  std::optional<DominatingPairs> PoissonPairs(const Event& event, double q,
                                              const PairUse& use) const override {
    if (q == 1 && event.adjacency() != Adjacency::kReplaceOne) return Pairs(event, use);
    return SampledZcdp(event.number("rho"), {q, false}, event.adjacency(), use);
  }
  std::optional<DominatingPairs> FixedPairs(const Event& event, double q,
                                            const PairUse& use) const override {
    if (q == 1) return Pairs(event, use);
    return SampledZcdp(event.number("rho"), {q, true}, event.adjacency(), use);
  }
  std::optional<LossPair> Triangle(const Event&, double) const override { return {}; }
  RenyiFunction Renyi(const Event& event) const override { return Linear(event.number("rho")); }
  std::string RenyiReason(const Event&) const override { return ""; }
  std::optional<LossAtoms> SymmetricAtoms(const Event&) const override { return {}; }
  RenyiFunction PoissonRenyi(const Event&, double) const override { return {}; }
  ZcdpResult Zcdp(const Event& event) const override { return {event.number("rho"), ""}; }
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>& curve) const override {
    return EpsilonByCurve(event, log_delta, curve);
  }
};

}  // namespace

const EventKind& ZcdpEvent() { return OneOfKind<ZcdpKind>(); }

Event Event::Zcdp(Rho rho, Adjacency adjacency) {
  return ZcdpEvent().New({adjacency, {rho.value()}});
}

}  // namespace sordino
