// Named tensors as bytes, from one rank to another.
#ifndef SORDINO_TRAINING_INTERNAL_PACKED_TENSORS_H_
#define SORDINO_TRAINING_INTERNAL_PACKED_TENSORS_H_

#include <string>

#include "sordino/gradients/named_tensors.h"

namespace sordino {

std::string PackTensors(const NamedTensors& tensors);
// On the CPU. Stops the program when the bytes are not those of PackTensors.
NamedTensors UnpackTensors(const std::string& bytes);

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_PACKED_TENSORS_H_
