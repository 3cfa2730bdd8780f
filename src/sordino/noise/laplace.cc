// Laplace noise of scale z U on every coordinate, where U bounds the L1 distance of neighbouring
// sums: sqrt(d) times their L2 distance for d coordinates; for a scalar they are the same. Its
// event is pure: epsilon = 1 / z.
//
// The discrete Laplace is exact (its own epsilon is 1 / z whatever the grid) but for values above
// 2^52 steps, which are rounded: exp(-2^22) is not counted.
#include <cmath>
#include <numbers>

#include "sordino/noise/noise_component.h"
#include "sordino/random/discrete_laplace.h"

namespace sordino {
namespace {

class LaplaceDraws : public NoiseDraws {
 public:
  explicit LaplaceDraws(double scale) : sampler_(scale) {}
  void Fill(Generator& generator, std::span<std::int64_t> out) const override {
    sampler_.Fill(generator, out);
  }

 private:
  DiscreteLaplace sampler_;
};

class Laplace : public IndependentNoise {
 public:
  Laplace()
      : IndependentNoise({.name = "laplace", .help = "of scale z √d C on each of d parameters"}) {}

  Event Release(NoiseMultiplier noise, Adjacency adjacency) const override {
    return Event::Pure(Epsilon((1 / noise.value()) * (1 + 0x1p-50)), adjacency);
  }
  double UnitOfDistance(double coordinates) const override { return std::sqrt(coordinates); }
  double UnitOfRounding(double coordinates) const override { return coordinates; }
  double DeviationOfScale() const override { return std::numbers::sqrt2; }
  std::unique_ptr<NoiseDraws> Draws(double scale) const override {
    return std::make_unique<LaplaceDraws>(scale);
  }
  double Distance(double) const override { return 0; }
};

}  // namespace

const NoiseComponent& LaplaceNoise() {
  static const Laplace component;
  return component;
}

}  // namespace sordino
