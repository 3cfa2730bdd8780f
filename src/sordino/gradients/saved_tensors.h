// The state of a run as tensors, taken apart when it is restored.
#ifndef SORDINO_GRADIENTS_SAVED_TENSORS_H_
#define SORDINO_GRADIENTS_SAVED_TENSORS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "sordino/gradients/named_tensors.h"

namespace sordino {

// A saved state, whose tensors are taken one by one; all throw Error.
class SavedTensors {
 public:
  explicit SavedTensors(const NamedTensors& tensors);  // refuses two of one name

  // The tensor of this name, which has to have this shape and type.
  at::Tensor Take(const std::string& name, at::IntArrayRef sizes, at::ScalarType type);
  std::int64_t TakeNumber(const std::string& name, std::int64_t least, std::int64_t most);
  void CheckAllTaken() const;

 private:
  std::map<std::string, at::Tensor> tensors_;
};

// A copy that later steps do not change.
at::Tensor CopyToCpu(const at::Tensor& tensor);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_SAVED_TENSORS_H_
