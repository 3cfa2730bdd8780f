// A kind of noise of a test: each step's noise is its draw less half of the last one.
//
// The inverse of the coefficients is C = 1 + S / 2 + S^2 / 4 + ..., where S delays by a step. A
// record that is in every batch moves row t of C x by at most 1 + 1/2 + 1/4 + ... < 2 times the
// distance of neighbouring sums, wherever the process began, so that a step is gaussian(z / 2).
#include <cmath>

#include "sordino/base/error.h"
#include "sordino/noise/noise_component.h"

namespace sordino {
namespace {

class Lagged : public NoiseComponent {
 public:
  Lagged() : NoiseComponent({.name = "lagged", .help = "of a test"}) {}

  void CheckTerms(const NoiseTerms& terms) const override {
    if (terms.sampler.Rate(terms.sampling, 0).value() == 1 && terms.sampling.noise_is_constant) {
      return;
    }
    throw Error("lagged noise needs full batches and constant noise; use these.");
  }
  // What rounding adds to one row of C x is at most 1 + 1/2 + ... of its bound in a row of x.
  NoiseMemory Memory(const NoiseTerms&) const override {
    return {.kind = MemoryKind::kDraws, .factors = {-0.5}, .spread = 2};
  }
  std::int64_t StepsPerEvent(const NoiseTerms&) const override { return 1; }
  Event EventOf(const NoiseTerms& terms, std::int64_t first, std::int64_t last) const override {
    const NoiseMultiplier half(terms.multiplier(first).value() / 2);
    return Event::Repeat(Event::Gaussian(half, terms.sampling.adjacency),
                         static_cast<std::uint64_t>(last - first));
  }

  double UnitOfDistance(double coordinates) const override {
    return GaussianNoise().UnitOfDistance(coordinates);
  }
  double UnitOfRounding(double coordinates) const override {
    return GaussianNoise().UnitOfRounding(coordinates);
  }
  double DeviationOfScale() const override { return std::sqrt(1.25); }
  std::unique_ptr<NoiseDraws> Draws(double scale) const override {
    return GaussianNoise().Draws(scale);
  }
  double Distance(double draws) const override { return GaussianNoise().Distance(draws); }
};

}  // namespace

const NoiseComponent& LaggedNoise() {
  static const Lagged component;
  return component;
}

}  // namespace sordino
