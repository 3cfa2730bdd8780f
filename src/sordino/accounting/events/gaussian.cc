// gaussian(noise): Gaussian noise, its standard deviation over the L2 sensitivity.
#include "sordino/accounting/internal/event_families.h"

namespace sordino {
namespace {

class GaussianKind final : public NoiseFamily {
 public:
  GaussianKind() : NoiseFamily("gaussian", {FieldOf<NoiseMultiplier>("noise")}) {}
  void Check(const EventArguments&) const override {}  // every adjacency
  Event DoubledReach(const Event& event) const override {
    return Event::Gaussian(NoiseMultiplier(event.number("noise") / 2), event.adjacency());
  }
  Event Coarsened(const Event& event, const CoarseGrid& grid) const override {
    return Event::Gaussian(grid.Noise(event.number("noise")), event.adjacency());
  }
  // Without sampling its schedule needs no rounding.
  std::optional<double> ContourHits(const Event&, std::optional<double> rate) const override {
    return rate;
  }
  std::optional<double> Precision(const Event& event) const override {
    const double noise = event.number("noise");
    return 1 / (noise * noise);
  }
  DominatingPairs Pairs(const Event& event, const PairUse&) const override {
    return Same({FromGaussian(1 / event.number("noise"))});
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

const EventKind& GaussianEvent() {
  static const GaussianKind kind;
  return kind;
}

Event Event::Gaussian(NoiseMultiplier noise, Adjacency adjacency) {
  return GaussianEvent().New({adjacency, {noise.value()}});
}

}  // namespace sordino
