// The examples of a batch, and copies of the first one after them, into the inputs of a recording,
// with the mask that says which are which: one launch instead of two for each tensor and two for
// the mask.
#ifndef SORDINO_GRADIENTS_INTERNAL_DEVICE_PADDED_COPY_H_
#define SORDINO_GRADIENTS_INTERNAL_DEVICE_PADDED_COPY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/gradients/internal/device/padded_words.h"

namespace sordino {

// Whether the kernel is built.
bool HasPaddedCopy();

// Whether examples of `from` [examples, ...] can be copied to `to` [size, ...] at once: there are
// not too many tensors, they are contiguous, and of the types and on the device of those that they
// are copied to.
bool CanCopyPadded(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to);
device::PaddedTensors PaddedTensorsOf(const std::vector<at::Tensor>& from,
                                      const std::vector<at::Tensor>& to, const at::Tensor& mask,
                                      std::int64_t real_units);

// On the current stream of the mask's device.
void DevicePaddedCopy(const device::PaddedTensors& all, const at::Tensor& mask);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_DEVICE_PADDED_COPY_H_
