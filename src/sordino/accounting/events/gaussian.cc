// gaussian(noise): Gaussian noise, its standard deviation over the L2 sensitivity.
#include "sordino/accounting/internal/event_families.h"

namespace sordino {
namespace {

class GaussianKind final : public GaussianFamily {
 public:
  GaussianKind() : GaussianFamily("gaussian", {FieldOf<NoiseMultiplier>("noise")}) {}
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
};

}  // namespace

const EventKind& GaussianEvent() { return OneOfKind<GaussianKind>(); }

Event Event::Gaussian(NoiseMultiplier noise, Adjacency adjacency) {
  return GaussianEvent().New({adjacency, {noise.value()}});
}

}  // namespace sordino
