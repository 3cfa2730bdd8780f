#include "sordino/gradients/internal/equal_places.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::int64_t kPlacesOfThread = 64;
constexpr std::int64_t kPlacesOnDevice = 8;

}  // namespace

std::int64_t PlacesOfPart(c10::Device device) {
  return device.is_cpu() ? kThreadsOfEqualPlaces * kPlacesOfThread : kPlacesOnDevice;
}

void CheckEqualPlaces(c10::Device device) {
  const int threads = at::get_num_threads();
  if (!device.is_cpu() || threads <= kThreadsOfEqualPlaces) return;
  throw Error("gradients were to be the same at every place of a batch, and libtorch has " +
              std::to_string(threads) + " threads; use at most " +
              std::to_string(kThreadsOfEqualPlaces) + " in a process.");
}

std::int64_t EqualPlacesPart(c10::Device device, std::int64_t examples, std::int64_t most,
                             std::int64_t micro_batch) {
  const std::int64_t multiple = PlacesOfPart(device) * micro_batch;
  const std::int64_t wanted = (std::max<std::int64_t>(examples, 1) + multiple - 1) / multiple;
  return std::max<std::int64_t>(1, std::min(wanted, most / multiple)) * multiple;
}

Batch Padded(const Batch& batch, std::int64_t examples) {
  Batch padded;
  for (const at::Tensor& tensor : batch) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes.front() = examples - tensor.size(0);
    padded.push_back(at::cat({tensor, tensor.narrow(0, 0, 1).expand(sizes)}).contiguous());
  }
  return padded;
}

}  // namespace sordino
