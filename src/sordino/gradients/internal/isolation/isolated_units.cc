#include "sordino/gradients/internal/isolation/isolated_units.h"

#include <ATen/TensorOperators.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>

#include <vector>

namespace sordino::isolated {
namespace {

namespace functorch = at::functorch;
using at::Tensor;

// The last result of Split for units of one row, and what it is a view of: merging it again needs
// no view of a view. A pass ends with a loss that was just split.
struct LastSplit {
  Tensor value;
  Tensor merged;
};
thread_local LastSplit last_split;

}  // namespace

Layer CurrentLayer() {
  const auto& stack = functorch::getDynamicLayerStack();
  if (stack.size() != 1 || stack.front().key() != functorch::TransformType::Vmap) return {};
  return {stack.front().layerId(), stack.front().batchSize().expect_int()};
}

bool HasForwardDerivative(const Tensor& tensor) {
  return tensor.defined() && tensor._fw_grad(/*level=*/0).defined();
}

bool IsPlain(const Tensor& tensor) { return !functorch::isBatchedTensor(tensor); }
bool IsPlain(const OptionalTensor& tensor) {
  return !tensor || !tensor->defined() || IsPlain(*tensor);
}
bool IsPlain(at::TensorList tensors) {
  for (const Tensor& tensor : tensors) {
    if (!IsPlain(tensor)) return false;
  }
  return true;
}

bool IsOf(const Layer& layer, const Tensor& tensor) {
  const auto* wrapped = functorch::maybeGetBatchedImpl(tensor);
  return wrapped != nullptr && wrapped->level() == layer.level;
}

Tensor Merge(const Layer& layer, const Tensor& tensor, std::int64_t dim) {
  const auto* wrapped = functorch::maybeGetBatchedImpl(tensor);
  if (wrapped == nullptr) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes.insert(sizes.begin() + dim, layer.units);
    return tensor.unsqueeze(dim).expand(sizes).flatten(dim, dim + 1);
  }
  Tensor value = wrapped->value();
  if (dim == 0 && value.is_same(last_split.value)) return last_split.merged;
  if (wrapped->bdim() != dim) value = value.movedim(wrapped->bdim(), dim);
  return value.size(dim + 1) == 1 ? value.squeeze(dim + 1) : value.flatten(dim, dim + 1);
}

Tensor Split(const Layer& layer, const Tensor& merged, std::int64_t dim) {
  const std::int64_t each = merged.size(dim) / layer.units;
  const Tensor value =
      each == 1 ? merged.unsqueeze(dim + 1) : merged.unflatten(dim, {layer.units, each});
  if (each == 1 && dim == 0) last_split = {value, merged};
  return functorch::makeBatched(value, dim, layer.level);
}

at::Tensor MergeUnits(const at::Tensor& value) {
  return value.is_same(last_split.value) ? last_split.merged : value.flatten(0, 1);
}

void ForgetSplits() { last_split = {}; }

}  // namespace sordino::isolated
