// Gaussian noise: the event is gaussian(z), its unit the L2 distance of neighbouring sums.
//
// How near draws are to the Gaussian that is accounted. A draw is a discrete Gaussian of sigma >=
// 2^39 (random/discrete_gaussian.h), rounded to a coarser grid (gradient_noise.h). A continuous
// Gaussian rounded to the integers is post-processing of the Gaussian mechanism, and the two are
// close: the ratio of their probabilities at x is, up to a constant, E exp(-(2 x u + u^2) / (2
// sigma^2)) for u uniform in [-1/2, 1/2], which lies in [1 - 1 / (8 sigma^2), exp(x^2 / (24
// sigma^4))]. For |x| <= 13 sigma its logarithm varies by less than e = 7.2 / sigma^2. So n draws
// have a Kullback-Leibler divergence of at most n e^2 / 2 and by Pinsker's inequality a distance in
// total variation of at most e sqrt(n) / 2 < 2^-76 sqrt(n). What the samplers leave out, the tails
// beyond 13 sigma and what a device does not decide exactly, is below 2^-120 a draw for both of
// them (TotalVariationBound() of discrete_gaussian.h and indexed_gaussian.h); 2^-119 n is added.
#include <cmath>

#include "sordino/noise/noise_component.h"
#include "sordino/random/discrete_gaussian.h"
#include "sordino/random/indexed_gaussian.h"

namespace sordino {
namespace {

class GaussianDraws : public NoiseDraws {
 public:
  explicit GaussianDraws(double scale) : sampler_(scale) {}
  void Fill(Generator& generator, std::span<std::int64_t> out) const override {
    sampler_.Fill(generator, out);
  }

 private:
  DiscreteGaussian sampler_;
};

class Gaussian : public IndependentNoise {
 public:
  Gaussian() : IndependentNoise({.name = "gaussian", .help = "of standard deviation z C"}) {}

  Event Release(NoiseMultiplier noise, Adjacency adjacency) const override {
    return Event::Gaussian(noise, adjacency);
  }
  bool IsGaussian() const override { return true; }
  double UnitOfDistance(double) const override { return 1; }
  double UnitOfRounding(double coordinates) const override { return std::sqrt(coordinates); }
  double DeviationOfScale() const override { return 1; }
  std::unique_ptr<NoiseDraws> Draws(double scale) const override {
    return std::make_unique<GaussianDraws>(scale);
  }
  bool DrawsByIndex() const override { return true; }
  double Distance(double draws) const override {
    static_assert(DiscreteGaussian::TotalVariationBound() <= 0x1p-120 &&
                  IndexedGaussian::TotalVariationBound() <= 0x1p-120);
    return std::sqrt(draws) * 0x1p-76 + draws * 0x1p-119;
  }
};

}  // namespace

const NoiseComponent& GaussianNoise() {
  static const Gaussian component;
  return component;
}

}  // namespace sordino
