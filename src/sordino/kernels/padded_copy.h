// The examples of a batch, and copies of the first one after them, into the inputs of a recording,
// with the mask that says which are which: one launch instead of two for each tensor and two for
// the mask.
#ifndef SORDINO_KERNELS_PADDED_COPY_H_
#define SORDINO_KERNELS_PADDED_COPY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/kernels/padded_words.h"

namespace sordino {

// Whether examples of `from` [examples, ...] can be copied to `to` [size, ...] at once: there are
// not too many tensors, they are contiguous, and of the types and on the device of those that they
// are copied to.
bool CanCopyPadded(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to);
kernels::PaddedTensors PaddedTensorsOf(const std::vector<at::Tensor>& from,
                                       const std::vector<at::Tensor>& to, const at::Tensor& mask,
                                       std::int64_t real_units);

// On the device of the mask.
void DevicePaddedCopy(const kernels::PaddedTensors& all, const at::Tensor& mask);

}  // namespace sordino

#endif  // SORDINO_KERNELS_PADDED_COPY_H_
