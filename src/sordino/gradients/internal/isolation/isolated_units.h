// Tensors of an isolated pass (isolation.h), and the plain ones whose batch dimension holds the
// units: what the rules of operations are made of.
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_UNITS_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_UNITS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdint>
#include <optional>

namespace sordino::isolated {

using OptionalTensor = std::optional<at::Tensor>;

// Calls in its scope see plain tensors, and draw random numbers for each of their entries.
struct PlainTensors {
  c10::impl::ExcludeDispatchKeyGuard wrapped{c10::DispatchKey::FuncTorchBatched};
  c10::impl::ExcludeDispatchKeyGuard random{c10::DispatchKey::FuncTorchVmapMode};
};

// The layer of the pass; its level tells the wrapped tensors of this pass from others.
struct Layer {
  std::int64_t level = -1;
  std::int64_t units = 0;
};

Layer CurrentLayer();

// Not wrapped: the same for all examples.
bool IsPlain(const at::Tensor& tensor);
bool IsPlain(const OptionalTensor& tensor);
bool IsPlain(at::TensorList tensors);

// In forward mode; an undefined tensor has none.
bool HasForwardDerivative(const at::Tensor& tensor);

// Wrapped, and of this pass.
bool IsOf(const Layer& layer, const at::Tensor& tensor);

// The plain tensor with the units merged into dimension `dim` of a unit.
at::Tensor Merge(const Layer& layer, const at::Tensor& tensor, std::int64_t dim);

// Back from a plain tensor whose dimension `dim` holds the units.
at::Tensor Split(const Layer& layer, const at::Tensor& merged, std::int64_t dim);

// [units * rows, ...] from the value of a wrapped tensor, [units, rows, ...].
at::Tensor MergeUnits(const at::Tensor& value);

// Releases the tensors of a pass that is over.
void ForgetSplits();

}  // namespace sordino::isolated

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_UNITS_H_
