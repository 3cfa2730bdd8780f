// The tensors of one launch of the noise step, and what a thread does with the noise of a group of
// coordinates; for GPUs, and for the tests on the processor.
#ifndef SORDINO_NOISE_INTERNAL_NOISED_TENSORS_H_
#define SORDINO_NOISE_INTERNAL_NOISED_TENSORS_H_

#include <cstdint>

#include "sordino/base/device_function.h"
#include "sordino/noise/internal/grid_step.h"
#include "sordino/random/indexed_draw.h"

namespace sordino::internal {

// A tensor of the sum and where it goes: coordinates begin ... end - 1 of all.
struct NoisedTensor {
  const void* sum;
  void* noised;
  std::int64_t begin;
  std::int64_t end;
  bool is_double;  // else float
};

// Consecutive tensors, none of them empty. So many that all fit into the arguments of a kernel,
// which are 4 KiB where nothing more is asked for.
struct NoisedTensors {
  static constexpr int kMost = 96;
  std::int32_t count;
  NoisedTensor tensor[kMost];
};

// The first tensor that ends behind a coordinate.
SORDINO_DEVICE constexpr int TensorOf(const NoisedTensors& tensors, std::int64_t coordinate) {
  int low = 0;
  int high = tensors.count - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (coordinate < tensors.tensor[middle].end) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

SORDINO_DEVICE inline void ReleaseValue(const NoisedTensor& tensor, std::int64_t i,
                                        std::int64_t noise, const GridStep& step) {
  if (tensor.is_double) {
    static_cast<double*>(tensor.noised)[i] =
        NoisedValueOf(static_cast<const double*>(tensor.sum)[i], noise, step);
  } else {
    const auto value = static_cast<double>(static_cast<const float*>(tensor.sum)[i]);
    static_cast<float*>(tensor.noised)[i] = static_cast<float>(NoisedValueOf(value, noise, step));
  }
}

// Releases those coordinates of a group that these tensors have, given its draws.
SORDINO_DEVICE inline void ReleaseGroup(const NoisedTensors& tensors, std::int64_t group,
                                        const std::int64_t (&draws)[kIndexedGroup],
                                        const GridStep& step) {
  const std::int64_t first = group * kIndexedGroup;
  int at = TensorOf(tensors, first);
  SORDINO_DEVICE_UNROLL
  for (int k = 0; k < kIndexedGroup; ++k) {
    const std::int64_t coordinate = first + k;
    // As no tensor is empty, the next coordinate is in this one or the next.
    if (coordinate >= tensors.tensor[at].end) ++at;
    if (at == tensors.count) return;
    const NoisedTensor& tensor = tensors.tensor[at];
    if (coordinate < tensor.begin) continue;
    ReleaseValue(tensor, coordinate - tensor.begin, RoundedSteps(draws[k]), step);
  }
}

}  // namespace sordino::internal

#endif  // SORDINO_NOISE_INTERNAL_NOISED_TENSORS_H_
