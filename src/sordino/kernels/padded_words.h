// The words of a padded copy (padded_copy.h), by plain pointers, for the processor and for GPUs.
// The stream is a cudaStream_t.
#ifndef SORDINO_KERNELS_PADDED_WORDS_H_
#define SORDINO_KERNELS_PADDED_WORDS_H_

#include <cstdint>

#include "sordino/base/device_function.h"

namespace sordino::kernels {

inline constexpr int kMaxCopies = 8;

struct PaddedTensor {
  const void* from = nullptr;  // [examples, ...]
  void* to = nullptr;          // [size, ...]
  std::int64_t words = 0;      // of an example
  int word = 1;                // bytes: 1, 4, 8 or 16
};

struct alignas(16) Word16 {
  std::uint64_t low;
  std::uint64_t high;
};

struct PaddedTensors {
  PaddedTensor tensors[kMaxCopies];
  int count = 0;
  std::int64_t examples = 0;  // that are there, at least one
  std::int64_t size = 0;      // with padding
  bool* mask = nullptr;       // [units]
  std::int64_t units = 0;
  std::int64_t real_units = 0;
};

template <typename Word>
SORDINO_DEVICE inline void CopyWord(const PaddedTensor& tensor, std::int64_t examples,
                                    std::int64_t at) {
  const std::int64_t from = at < examples * tensor.words ? at : at % tensor.words;
  static_cast<Word*>(tensor.to)[at] = static_cast<const Word*>(tensor.from)[from];
}

// Word `at` of the inputs of tensor k, below size * words; of the mask for k = count.
SORDINO_DEVICE inline void CopyPadded(const PaddedTensors& all, int k, std::int64_t at) {
  if (k == all.count) {
    all.mask[at] = at < all.real_units;
    return;
  }
  const PaddedTensor& tensor = all.tensors[k];
  switch (tensor.word) {
    case 16:
      return CopyWord<Word16>(tensor, all.examples, at);
    case 8:
      return CopyWord<std::uint64_t>(tensor, all.examples, at);
    case 4:
      return CopyWord<std::uint32_t>(tensor, all.examples, at);
    default:
      return CopyWord<std::uint8_t>(tensor, all.examples, at);
  }
}

// How many words tensor k has, or the mask.
SORDINO_DEVICE inline std::int64_t WordsOf(const PaddedTensors& all, int k) {
  return k == all.count ? all.units : all.size * all.tensors[k].words;
}

void LaunchPaddedCopy(const PaddedTensors& all, void* stream);

}  // namespace sordino::kernels

#endif  // SORDINO_KERNELS_PADDED_WORDS_H_
