// A kind of noise of a test: the sum of two Gaussian draws, which is accounted as 1.25 z of the
// sqrt(2) z that it is.
#include <cmath>

#include "sordino/noise/noise_component.h"

namespace sordino {
namespace {

class DoubledDraws : public NoiseDraws {
 public:
  explicit DoubledDraws(double scale) : one_(GaussianNoise().Draws(scale)) {}
  void Fill(Generator& generator, std::span<std::int64_t> out) const override {
    std::vector<std::int64_t> more(out.size());
    one_->Fill(generator, out);
    one_->Fill(generator, more);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += more[i];
  }

 private:
  std::unique_ptr<NoiseDraws> one_;
};

class Doubled : public IndependentNoise {
 public:
  Doubled() : IndependentNoise({.name = "doubled", .help = "of a test"}) {}
  Event Release(NoiseMultiplier noise, Adjacency adjacency) const override {
    return Event::Gaussian(NoiseMultiplier(noise.value() * 1.25), adjacency);
  }
  double UnitOfDistance(double coordinates) const override {
    return GaussianNoise().UnitOfDistance(coordinates);
  }
  double UnitOfRounding(double coordinates) const override {
    return GaussianNoise().UnitOfRounding(coordinates);
  }
  double DeviationOfScale() const override { return std::sqrt(2.0); }
  std::unique_ptr<NoiseDraws> Draws(double scale) const override {
    return std::make_unique<DoubledDraws>(scale);
  }
  double Distance(double draws) const override { return GaussianNoise().Distance(2 * draws); }
};

}  // namespace

const NoiseComponent& DoubledNoise() {
  static const Doubled component;
  return component;
}

}  // namespace sordino
