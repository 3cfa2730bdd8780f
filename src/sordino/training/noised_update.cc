#include "sordino/training/noised_update.h"

#include "sordino/device/descent.h"

namespace sordino {

NoisedUpdate::NoisedUpdate(RandomSource& source, Optimizer& optimizer)
    : adder_(source), optimizer_(optimizer) {}

void NoisedUpdate::Step(const BoundedSum& sum, const StepNoise& noise) {
  const bool is_done =
      NoiseAdder::DrawsOnDevice(sum, noise) && optimizer_.StepBy([&](const Descent& descent) {
        return adder_.Descend(sum, noise, descent);
      });
  if (!is_done) optimizer_.Step(Noised(sum, noise));
}

NoisedGradients NoisedUpdate::Noised(const BoundedSum& sum, const StepNoise& noise) {
  return adder_.Add(sum, noise);
}

}  // namespace sordino
