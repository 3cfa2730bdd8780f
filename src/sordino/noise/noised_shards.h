// Noised gradients of which each of several processes has one shard (gradients/fixed_point_sum.h).
#ifndef SORDINO_NOISE_NOISED_SHARDS_H_
#define SORDINO_NOISE_NOISED_SHARDS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/noised_value.h"

namespace sordino {

class NoisedShards {
 public:
  // All shards as one: a tensor for each parameter, in its shape and on its device. `gather` fills
  // its second argument with the shards of all processes, in their order. What it gathers has noise
  // on it already.
  static NoisedGradients Join(
      const NoisedGradients& shard, int shards, const std::vector<NamedParameter>& parameters,
      const std::function<void(const at::Tensor& shard, at::Tensor& all)>& gather);

  // One of so many shards of the whole, on this device.
  static NoisedGradients Cut(const NoisedGradients& whole, int shard, int shards,
                             c10::Device device);
};

}  // namespace sordino

#endif  // SORDINO_NOISE_NOISED_SHARDS_H_
