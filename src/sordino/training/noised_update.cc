#include "sordino/training/noised_update.h"

#include "sordino/device/descent.h"

namespace sordino {

void NoisedUpdate::Step(const BoundedSum& sum, const StepNoise& noise) {
  const bool is_done =
      process_.DrawsOnDevice(sum, noise) && optimizer_.StepBy([&](const Descent& descent) {
        return process_.Descend(sum, noise, descent);
      });
  if (!is_done) optimizer_.Step(process_.Add(sum, noise));
}

}  // namespace sordino
