// fixed(rate, event): a batch of fixed size, drawn without replacement; rate = batch / dataset.
#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/pairs/attained_pairs.h"
#include "sordino/accounting/internal/renyi/renyi_gaussian.h"

namespace sordino {
namespace {

class FixedKind final : public RateFamily {
 public:
  FixedKind() : RateFamily("fixed", true) {}
  // Its unit is the replace-one sensitivity already.
  Event DoubledReach(const Event& event) const override { return event; }
  Event FixedReach(const Event& event) const override { return event; }
  KeptPart Kept(const Event& event) const override { return {event, 0}; }
  DominatingPairs Pairs(const Event& event, const PairUse& use) const override {
    const double q = event.number("rate");
    const Event& sampled = ChildOf(event);
    const Event child = sordino::FixedReach(sampled);
    if (q == 0) return Same({LossPair{}});
    if (sordino::HasTooLittleNoise(child)) return Missing(kTooLittleNoise);
    if (auto own = sampled.kind().FixedPairs(sampled, q, use)) return *std::move(own);
    const bool replace = event.adjacency() == Adjacency::kReplaceOne;
    const std::optional<double> sigma = EquivalentGaussian(child);
    if (q == 1 && !replace && sigma) return Same({FromGaussian(1 / *sigma)});
    const auto directions = sordino::SampledDirections(child, q);
    if (!directions) return Missing("no dominating pair is known for sampling this mechanism");
    if (event.adjacency() == Adjacency::kAddRemove) {
      return Same({directions->first, directions->second});
    }
    DominatingPairs pairs;
    // All other records equal the one that is added, or the null record.
    const auto attained = child == sampled ? directions : sordino::SampledDirections(sampled, q);
    if (attained) pairs.lower = {attained->first, attained->second};
    pairs.upper = {Glue(directions->first, directions->second)};
    if (q == 1 || child != sampled) return pairs;
    if (use.Closely()) {
      if (auto triangle = TriangleOfFixedBatch(child, q)) {
        pairs.lower.push_back(std::move(*triangle));
        return pairs;
      }
    }
    if (replace && sigma) {
      // All other records contribute nothing, and the one moves from -1/2 to 1/2.
      pairs.lower.push_back(FromDensity(ReplaceDensity(*sigma, q, 0.5)));
    }
    return pairs;
  }
  RenyiFunction Renyi(const Event& event) const override {
    const double q = event.number("rate");
    if (q == 0) return Linear(0);
    const Event child = sordino::FixedReach(ChildOf(event));
    if (q == 1) return RenyiOf(child);
    if (const std::optional<double> sigma = EquivalentGaussian(child)) {
      return FromMoments<HalfProfileGaussian>(q, *sigma);
    }
    if (const auto atoms = child.kind().SymmetricAtoms(child)) {
      return FromNodes(HalfProfileNodes(*atoms, q));
    }
    return FixedRenyiBound(q, RenyiOf(child));
  }
  ZcdpResult Zcdp(const Event& event) const override {
    if (event.number("rate") == 0) return {0, ""};
    return ZcdpOf(sordino::FixedReach(ChildOf(event)));
  }
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>& curve) const override {
    return SampledStepEpsilon(sordino::FixedReach(ChildOf(event)), event.number("rate"), log_delta,
                              curve);
  }
};

}  // namespace

const EventKind& FixedEvent() { return OneOfKind<FixedKind>(); }

Event Event::Fixed(SamplingRate rate, Event child) {
  return FixedEvent().New({child.adjacency(), {rate.value()}, {{std::move(child), 1}}});
}

}  // namespace sordino
