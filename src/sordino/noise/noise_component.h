// The distribution of the noise: a component that owns its event, its unit and its draws.
//
// A new one is a file that defines a class derived from NoiseComponent and a function that returns
// it, and a line in noise_list.inc.
#ifndef SORDINO_NOISE_NOISE_COMPONENT_H_
#define SORDINO_NOISE_NOISE_COMPONENT_H_

#include <cstdint>
#include <memory>
#include <span>

#include "sordino/accounting/event.h"
#include "sordino/base/component.h"
#include "sordino/base/quantity.h"
#include "sordino/random/generator.h"

namespace sordino {

// Independent whole numbers of one distribution; may be used from several threads at once.
class NoiseDraws {
 public:
  virtual ~NoiseDraws() = default;
  virtual void Fill(Generator& generator, std::span<std::int64_t> out) const = 0;
};

class NoiseComponent : public Component {
 public:
  using Component::Component;

  // What adding noise of this multiplier to a sum releases, where the unit of the multiplier is the
  // distance of neighbouring sums.
  virtual Event Release(NoiseMultiplier noise, Adjacency adjacency) const = 0;
  // Whether that event is gaussian(z), for what is proven for Gaussian noise only.
  virtual bool IsGaussian() const { return false; }

  // The unit of the multiplier for d coordinates: that of sums whose L2 distance is 1, and that of
  // sums which differ by 1 in every coordinate.
  virtual double UnitOfDistance(double coordinates) const = 0;
  virtual double UnitOfRounding(double coordinates) const = 0;

  // Noise of scale s has the standard deviation s * DeviationOfScale().
  virtual double DeviationOfScale() const = 0;
  // Draws of this scale, at least 2^39, on the integers.
  virtual std::unique_ptr<NoiseDraws> Draws(double scale) const = 0;
  // Whether IndexedGaussian (random/indexed_gaussian.h) of the scale may be drawn instead, as a
  // device does (device_noise.h).
  virtual bool DrawsByIndex() const { return false; }
  // Bound on the distance in total variation of n draws from what is accounted, those by index
  // included.
  virtual double Distance(double draws) const = 0;
};

const Registry<NoiseComponent>& Noises();

// The one that is meant where none is named.
const NoiseComponent& GaussianNoise();

}  // namespace sordino

#endif  // SORDINO_NOISE_NOISE_COMPONENT_H_
