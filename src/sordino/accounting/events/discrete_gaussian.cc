// discrete-gaussian(sigma, sensitivity): Gaussian noise on the integers, for a query of whole
// numbers.
#include "sordino/accounting/internal/event_families.h"
#include "sordino/accounting/internal/renyi/renyi_gaussian.h"

namespace sordino {
namespace {

class DiscreteGaussianKind final : public DiscreteNoiseFamily {
 public:
  DiscreteGaussianKind()
      : DiscreteNoiseFamily(
            "discrete-gaussian",
            {{"sigma", "the sigma of a discrete Gaussian", 0, true, kInfinity, true},
             WholeField("sensitivity", "the sensitivity of a discrete Gaussian")}) {}
  Event DoubledReach(const Event& event) const override {
    return Event::DiscreteGaussian(event.number("sigma"), 2 * WholeNumber(event, "sensitivity"),
                                   event.adjacency());
  }
  std::optional<Outcomes> SampledOutcomes(const Event& event, double q, double r) const override {
    return DiscreteGaussianOutcomes(event.number("sigma"), event.number("sensitivity"), q, r);
  }
  RenyiFunction Renyi(const Event& event) const override {
    const double sigma = event.number("sigma");
    const double sensitivity = event.number("sensitivity");
    return Linear(sensitivity * sensitivity / (2 * sigma * sigma));
  }
  std::optional<LossAtoms> SymmetricAtoms(const Event&) const override { return {}; }
  RenyiFunction PoissonRenyi(const Event& event, double q) const override {
    const double sigma = event.number("sigma");
    const double noise = sigma / event.number("sensitivity");
    if (event.adjacency() == Adjacency::kReplaceOne) {
      if (q == 1) return Linear(4 / (2 * noise * noise));
      return FromMoments<ReplacedGaussian>(q, noise, 1 / sigma);
    }
    if (q == 1 || noise < kMinSampledNoise) return Linear(1 / (2 * noise * noise));
    return FromMoments<SampledGaussian>(q, noise, 1 / sigma);
  }
  ZcdpResult Zcdp(const Event& event) const override {
    const double sigma = event.number("sigma");
    const double sensitivity = event.number("sensitivity");
    return {0.5 * sensitivity * sensitivity / (sigma * sigma), ""};
  }
};

}  // namespace

const EventKind& DiscreteGaussianEvent() { return OneOfKind<DiscreteGaussianKind>(); }

Event Event::DiscreteGaussian(double sigma, std::uint64_t sensitivity, Adjacency adjacency) {
  return DiscreteGaussianEvent().New({adjacency, {sigma, WholeNumber(sensitivity)}});
}

}  // namespace sordino
