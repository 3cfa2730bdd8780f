// A step of gradient descent on tensors, for whoever makes it in one launch (descent_factors.h).
#ifndef SORDINO_DEVICE_DESCENT_H_
#define SORDINO_DEVICE_DESCENT_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "sordino/device/descent_factors.h"

namespace sordino {

struct Descent {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> momenta = {};  // m of each parameter; empty without momentum
  DescentFactors factors = {};
};

}  // namespace sordino

#endif  // SORDINO_DEVICE_DESCENT_H_
