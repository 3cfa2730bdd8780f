// The second half of a step, once it is charged: noise on a clipped sum, and the update by it.
//
// On a GPU both are one launch where the optimizer's step is a descent (device/descent.h) and
// nobody else wants to see the noised gradients; the values are the same.
#ifndef SORDINO_TRAINING_NOISED_UPDATE_H_
#define SORDINO_TRAINING_NOISED_UPDATE_H_

#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/noise/noise_process.h"
#include "sordino/optimizers/optimizer.h"

namespace sordino {

class NoisedUpdate {
 public:
  // Both live longer.
  NoisedUpdate(NoiseProcess& process, Optimizer& optimizer)
      : process_(process), optimizer_(optimizer) {}

  // NoiseProcess::Add, and a step of the optimizer by the result. Throws Error as Optimizer::Step
  // does.
  void Step(const BoundedSum& sum, const StepNoise& noise);

 private:
  NoiseProcess& process_;
  Optimizer& optimizer_;
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_NOISED_UPDATE_H_
