// From the draws of a step to its noise (memory_kind.h), for the processor and for GPUs.
#ifndef SORDINO_KERNELS_CORRELATED_BLOCK_H_
#define SORDINO_KERNELS_CORRELATED_BLOCK_H_

#include <cstdint>

#include "sordino/base/device_function.h"
#include "sordino/kernels/memory_kind.h"

namespace sordino::internal {

// A memory of noise (noise/noise_memory.h) and what it has kept; lies where the code runs.
struct MemoryView {
  MemoryKind kind;
  std::int32_t count;        // of the vectors that are kept
  std::int64_t coordinates;  // of each
  std::int64_t origin;       // the first step of the process
  const double* factors;
  const double* decays;
  double* kept;  // count x coordinates, in units of the scale of their step
};

// A double below 2^51 as the nearest whole number, ties to even.
SORDINO_DEVICE constexpr std::int64_t Nearest(double value) {
  constexpr double kRounding = 0x1.8p52;
  return static_cast<std::int64_t>((value + kRounding) - kRounding);
}

// The part of the noise of a step that is not its draw, in units of the scale, for `count`
// coordinates from `first` on. Terms are added in their order, so that the bits are those of any
// other block.
template <int kBlock>
SORDINO_DEVICE inline void AddRemembered(const MemoryView& memory, std::int64_t step,
                                         std::int64_t first, int count, double (&sum)[kBlock]) {
  std::int64_t age = step - memory.origin + 1;
  for (std::int32_t term = 0; term < memory.count; ++term) {
    std::int64_t slot = term;
    if (memory.kind == MemoryKind::kTree) {
      if ((age & 1) != 0) return;  // level `term` does not end here
      age >>= 1;
    } else if (memory.kind != MemoryKind::kBuffers) {
      slot = (step + memory.count - 1 - term) % memory.count;  // of step - 1 - term
    }
    const double factor = memory.factors[term];
    const double* const from = memory.kept + slot * memory.coordinates + first;
    for (int k = 0; k < count; ++k) sum[k] += factor * from[k];
  }
}

// Keeps the draw (or the noise) of a step, in units of its scale.
template <int kBlock>
SORDINO_DEVICE inline void Remember(const MemoryView& memory, std::int64_t step, std::int64_t first,
                                    int count, const double (&value)[kBlock]) {
  if (memory.kind == MemoryKind::kBuffers) {
    for (std::int32_t buffer = 0; buffer < memory.count; ++buffer) {
      double* const to = memory.kept + buffer * memory.coordinates + first;
      const double decay = memory.decays[buffer];
      for (int k = 0; k < count; ++k) to[k] = decay * to[k] + value[k];
    }
    return;
  }
  std::int64_t slot = step % memory.count;
  if (memory.kind == MemoryKind::kTree) {
    slot = 0;
    for (std::int64_t age = step - memory.origin + 1; (age & 1) == 0; age >>= 1) ++slot;
    if (slot >= memory.count) return;  // a level that no later step takes off
  }
  double* const to = memory.kept + slot * memory.coordinates + first;
  for (int k = 0; k < count; ++k) to[k] = value[k];
}

// Draws become noise, in place.
template <int kBlock>
SORDINO_DEVICE inline void CorrelateBlock(const MemoryView& memory, std::int64_t step, double scale,
                                          std::int64_t first, int count, std::int64_t* draws) {
  double value[kBlock] = {};
  AddRemembered<kBlock>(memory, step, first, count, value);
  const bool keeps_noise = memory.kind == MemoryKind::kNoise;
  for (int k = 0; k < count; ++k) {
    const std::int64_t noise = draws[k] + Nearest(scale * value[k]);
    value[k] = static_cast<double>(keeps_noise ? noise : draws[k]) / scale;
    draws[k] = noise;
  }
  Remember<kBlock>(memory, step, first, count, value);
}

}  // namespace sordino::internal

#endif  // SORDINO_KERNELS_CORRELATED_BLOCK_H_
