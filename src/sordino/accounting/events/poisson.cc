// poisson(rate, event): each record enters the batch with that probability, independently of all
// others.
#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/renyi/renyi_gaussian.h"

namespace sordino {
namespace {

// A Poisson sample of Poisson samples is one, with the product of the rates, whatever the
// neighbours. The rounding of the product is far below what every method rounds outward by.
Event Merged(double rate, const Event& sampler) {
  const Event* inner = &sampler;
  while (&inner->kind() == &sampler.kind()) {
    rate *= inner->number("rate");
    inner = &ChildOf(*inner);
  }
  return Event::Poisson(SamplingRate(rate), *inner);
}

RenyiFunction PoissonReplaced(double q, const Event& child) {
  if (const std::optional<double> sigma = EquivalentGaussian(child)) {
    if (q == 1) return Linear(4 / (2 * *sigma * *sigma));
    return FromMoments<ReplacedGaussian>(q, *sigma);
  }
  const Event doubled = DoubledReach(child);
  if (const auto atoms = doubled.kind().SymmetricAtoms(doubled)) {
    return FromNodes(HalfProfileNodes(*atoms, q));
  }
  return FixedRenyiBound(q, RenyiOf(doubled));
}

class PoissonKind final : public RateFamily {
 public:
  PoissonKind() : RateFamily("poisson", false) {}
  Event DoubledReach(const Event& event) const override { return event; }  // it doubles inside
  Event FixedReach(const Event& event) const override {
    return Event::Poisson(SamplingRate(event.number("rate")), sordino::FixedReach(ChildOf(event)));
  }
  KeptPart Kept(const Event& event) const override {
    if (event.adjacency() == Adjacency::kReplaceOne) return {event, 0};
    KeptPart kept = KeptPartOf(ChildOf(event));
    return {Event::Poisson(SamplingRate(event.number("rate")), std::move(kept.event)), kept.loss};
  }
  DominatingPairs Pairs(const Event& event, const PairUse& use) const override {
    const double q = event.number("rate");
    const Event& child = ChildOf(event);
    if (q == 0) return Same({LossPair{}});
    if (sordino::HasTooLittleNoise(child)) return Missing(kTooLittleNoise);
    if (auto own = child.kind().PoissonPairs(child, q, use)) return *std::move(own);
    const std::optional<double> sigma = EquivalentGaussian(child);
    if (event.adjacency() == Adjacency::kReplaceOne) {
      if (!sigma) {
        return Missing(
            "no dominating pair is known for this mechanism under Poisson sampling and "
            "replace-one");
      }
      if (q == 1) return Same({FromGaussian(2 / *sigma)});
      return Same({FromDensity(ReplaceDensity(*sigma, q, 1))});
    }
    if (q == 1 && sigma) return Same({FromGaussian(1 / *sigma)});
    const auto directions = sordino::SampledDirections(child, q);
    if (!directions) return Missing("no dominating pair is known for sampling this mechanism");
    return Same({directions->first, directions->second});
  }
  std::optional<DominatingPairs> PoissonPairs(const Event& event, double q,
                                              const PairUse& use) const override {
    return DominatingPairsOf(Merged(q, event), use);
  }
  RenyiFunction Renyi(const Event& event) const override {
    const double q = event.number("rate");
    const Event& child = ChildOf(event);
    if (q == 0) return Linear(0);
    if (RenyiFunction own = child.kind().PoissonRenyi(child, q)) return own;
    if (event.adjacency() == Adjacency::kReplaceOne) return PoissonReplaced(q, child);
    if (const std::optional<double> sigma = EquivalentGaussian(child)) {
      if (q == 1 || *sigma < kMinSampledNoise) return Linear(1 / (2 * *sigma * *sigma));
      return FromMoments<SampledGaussian>(q, *sigma);
    }
    if (const auto atoms = child.kind().SymmetricAtoms(child)) return SampledAtoms(*atoms, q);
    return PoissonRenyiBound(q, RenyiOf(child));
  }
  RenyiFunction PoissonRenyi(const Event& event, double q) const override {
    return RenyiOf(Merged(q, event));
  }
  ZcdpResult Zcdp(const Event& event) const override {
    if (event.number("rate") == 0) return {0, ""};
    const Event& child = ChildOf(event);
    return ZcdpOf(event.adjacency() == Adjacency::kReplaceOne ? sordino::DoubledReach(child)
                                                              : child);
  }
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>& curve) const override {
    const bool replace = event.adjacency() == Adjacency::kReplaceOne;
    const Event& child = ChildOf(event);
    return SampledStepEpsilon(replace ? sordino::DoubledReach(child) : child, event.number("rate"),
                              log_delta, curve);
  }
};

}  // namespace

const EventKind& PoissonEvent() { return OneOfKind<PoissonKind>(); }

Event Event::Poisson(SamplingRate rate, Event child) {
  return PoissonEvent().New({child.adjacency(), {rate.value()}, {{std::move(child), 1}}});
}

}  // namespace sordino
