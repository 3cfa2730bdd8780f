// The tensors of one launch of the noise step, and what a thread does with the noise of a group of
// coordinates; for GPUs, and for the tests on the processor.
#ifndef SORDINO_KERNELS_NOISED_TENSORS_H_
#define SORDINO_KERNELS_NOISED_TENSORS_H_

#include <cstdint>

#include "sordino/base/device_function.h"
#include "sordino/device/descent_factors.h"
#include "sordino/kernels/grid_step.h"
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

// The first tensor that ends after a coordinate.
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

// Values are written where the tensors say.
struct NoisedTarget {
  template <typename T>
  SORDINO_DEVICE void Take(const NoisedTensor& tensor, int /*k*/, std::int64_t i, T value) const {
    static_cast<T*>(tensor.noised)[i] = value;
  }
};

// Values are gradients of a step of descent, and are written nowhere. Beside each tensor of the sum
// lie its parameter and, where the factors have momentum, what that keeps, in the type of the sum.
struct DescentTarget {
  struct Beside {
    void* parameter;
    void* momentum;
  };
  DescentFactors factors;
  Beside beside[NoisedTensors::kMost];

  template <typename T>
  SORDINO_DEVICE void Take(const NoisedTensor& /*tensor*/, int k, std::int64_t i, T value) const {
    T* const momentum = static_cast<T*>(beside[k].momentum);
    Descend(factors, value, static_cast<T*>(beside[k].parameter) + i,
            momentum == nullptr ? momentum : momentum + i);
  }
};

template <typename T, typename Target>
SORDINO_DEVICE inline void ReleaseValue(const NoisedTensor& tensor, int k, std::int64_t i,
                                        std::int64_t noise, const GridStep& step,
                                        const Target& target) {
  const auto value = static_cast<double>(static_cast<const T*>(tensor.sum)[i]);
  target.Take(tensor, k, i, static_cast<T>(NoisedValueOf(value, noise, step)));
}

// Releases those coordinates of a group that these tensors have, given its draws.
template <typename Target>
SORDINO_DEVICE inline void ReleaseGroup(const NoisedTensors& tensors, std::int64_t group,
                                        const std::int64_t (&draws)[kIndexedGroup],
                                        const GridStep& step, const Target& target) {
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
    const std::int64_t i = coordinate - tensor.begin;
    const std::int64_t noise = RoundedSteps(draws[k], step.finer_bits);
    if (tensor.is_double) {
      ReleaseValue<double>(tensor, at, i, noise, step, target);
    } else {
      ReleaseValue<float>(tensor, at, i, noise, step, target);
    }
  }
}

}  // namespace sordino::internal

#endif  // SORDINO_KERNELS_NOISED_TENSORS_H_
