// Tensors with names: what a checkpoint is made of.
#ifndef SORDINO_GRADIENTS_NAMED_TENSORS_H_
#define SORDINO_GRADIENTS_NAMED_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace sordino {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_NAMED_TENSORS_H_
