// tree(noise, steps): binary-tree aggregation of Gaussian noise over so many steps, with one
// participation (internal/pairs/tree.h).
#include <cmath>

#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/pairs/tree.h"

namespace sordino {
namespace {

class TreeKind final : public NoiseFamily {
 public:
  TreeKind()
      : NoiseFamily("tree", {FieldOf<NoiseMultiplier>("noise"),
                             WholeField("steps", "the number of steps of a tree")}) {}
  void Check(const EventArguments&) const override {}  // every adjacency
  Event DoubledReach(const Event& event) const override {
    return Event::Tree(NoiseMultiplier(event.number("noise") / 2), WholeNumber(event, "steps"),
                       event.adjacency());
  }
  Event Coarsened(const Event& event, const CoarseGrid&) const override { return event; }
  std::optional<double> ContourHits(const Event&, std::optional<double>) const override {
    return {};
  }
  std::optional<double> Precision(const Event& event) const override {
    const double noise = event.number("noise");
    return TreeHeight(WholeNumber(event, "steps")) / (noise * noise);
  }
  DominatingPairs Pairs(const Event& event, const PairUse&) const override {
    const auto height = static_cast<double>(TreeHeight(WholeNumber(event, "steps")));
    return Same({FromGaussian(std::sqrt(height) / event.number("noise"))});
  }
  std::optional<Outcomes> DiscreteOutcomes(const Event&) const override { return {}; }
  bool HasTooLittleNoise(const Event&) const override { return false; }
  std::optional<DominatingPairs> PoissonPairs(const Event&, double, const PairUse&) const override {
    return {};
  }
  std::optional<std::pair<LossPair, LossPair>> SampledDirections(const Event&,
                                                                 double) const override {
    return {};
  }
  std::optional<LossPair> Triangle(const Event&, double) const override { return {}; }
  // Where its precision overflows.
  RenyiFunction Renyi(const Event&) const override { return Infinite(); }
  std::optional<LossAtoms> SymmetricAtoms(const Event&) const override { return {}; }
  RenyiFunction PoissonRenyi(const Event&, double) const override { return {}; }
  ZcdpResult Zcdp(const Event& event) const override {
    const double sigma = EquivalentGaussian(event).value_or(0);
    if (sigma == 0) return {kInfinity, "the noise is too small for a finite rho"};
    return {0.5 / (sigma * sigma), ""};
  }
  double StepEpsilon(const Event& event, double log_delta,
                     std::optional<RenyiCurve>& curve) const override {
    return EpsilonByCurve(event, log_delta, curve);
  }
};

}  // namespace

const EventKind& TreeEvent() {
  static const TreeKind kind;
  return kind;
}

Event Event::Tree(NoiseMultiplier noise, std::uint64_t steps, Adjacency adjacency) {
  return TreeEvent().New({adjacency, {noise.value(), WholeNumber(steps)}});
}

}  // namespace sordino
