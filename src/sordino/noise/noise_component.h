// A kind of noise: a component that owns its distribution, what a step's noise remembers of earlier
// steps (noise_memory.h), its unit of charging and its event.
//
// A new one is a file that defines a class derived from IndependentNoise, or from NoiseComponent
// where steps share draws, and a function that returns it, and a line in noise_list.inc.
#ifndef SORDINO_NOISE_NOISE_COMPONENT_H_
#define SORDINO_NOISE_NOISE_COMPONENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "sordino/accounting/event.h"
#include "sordino/base/component.h"
#include "sordino/base/quantity.h"
#include "sordino/noise/noise_memory.h"
#include "sordino/random/generator.h"
#include "sordino/random/random_source.h"
#include "sordino/sampling/sampler_component.h"

namespace sordino {

// Independent whole numbers of one distribution; may be used from several threads at once.
class NoiseDraws {
 public:
  virtual ~NoiseDraws() = default;
  virtual void Fill(Generator& generator, std::span<std::int64_t> out) const = 0;
};

class NoiseProcess;

// What noise needs to know of a plan (training/privacy_plan.h); all of it lives longer.
struct NoiseTerms {
  const SamplerComponent& sampler;  // who takes part in which steps
  const SamplingPlan& sampling;
  const OptionValues& options;  // of the component
  // z of a step; its unit is the distance of neighbouring sums, or what the sampler says. Not
  // known to CheckTerms, Memory and StepsPerEvent.
  std::function<NoiseMultiplier(std::int64_t step)> multiplier = {};
};

// What noise may choose for.
struct NoiseQuestion {
  const SamplerComponent& sampler;
  const SamplingPlan& sampling;  // with independent noise
  Epsilon epsilon;
  Delta delta;
};

class NoiseComponent : public Component {
 public:
  using Component::Component;

  // Throws Error for plans that EventOf does not cover.
  virtual void CheckTerms(const NoiseTerms& terms) const { static_cast<void>(terms); }
  virtual NoiseMemory Memory(const NoiseTerms& terms) const = 0;
  // The unit of charging: how many steps have one event together. An event is charged before its
  // first step, and again where a run goes on inside of it.
  virtual std::int64_t StepsPerEvent(const NoiseTerms& terms) const = 0;
  // What steps [first, last), rounded to whole events, release beside all earlier ones. The process
  // has begun at step 0 or at any step up to `first`.
  virtual Event EventOf(const NoiseTerms& terms, std::int64_t first, std::int64_t last) const = 0;
  // The process of a run. The source, of one rank, lives longer.
  virtual std::unique_ptr<NoiseProcess> Start(const NoiseTerms& terms, RandomSource& source) const;

  // Whether draws are Gaussian.
  virtual bool IsGaussian() const { return false; }
  // Over how many steps of `steps` what a record adds to one of them is protected together; 1 for
  // independent noise.
  virtual std::int64_t Bands(const OptionValues& options, std::int64_t steps) const;
  bool IsIndependent(const OptionValues& options) const { return Bands(options, 2) == 1; }
  // Whether the options leave something to Chosen, which gives options that do not.
  virtual bool IsOpen(const OptionValues& options) const;
  virtual OptionValues Chosen(const OptionValues& options, const NoiseQuestion& budget) const;
  // "gaussian", for people.
  virtual std::string Description(const OptionValues& options) const;

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

// Noise whose steps share no draw: the sampler makes the event of a step of its release.
class IndependentNoise : public NoiseComponent {
 public:
  using NoiseComponent::NoiseComponent;

  // What adding noise of this multiplier to a sum releases, where the unit of the multiplier is the
  // distance of neighbouring sums.
  virtual Event Release(NoiseMultiplier noise, Adjacency adjacency) const = 0;

  NoiseMemory Memory(const NoiseTerms&) const override { return {}; }
  std::int64_t StepsPerEvent(const NoiseTerms& terms) const override;
  Event EventOf(const NoiseTerms& terms, std::int64_t first, std::int64_t last) const override;

 private:
  Event StepEvent(const NoiseTerms& terms, std::int64_t step) const;
};

const Registry<NoiseComponent>& Noises();

// The one that is meant where none is named.
const NoiseComponent& GaussianNoise();

}  // namespace sordino

#endif  // SORDINO_NOISE_NOISE_COMPONENT_H_
