#include "sordino/gradients/own_tensor.h"

#include <ATen/functorch/BatchedTensorImpl.h>

#include <cstdint>
#include <vector>

#include "sordino/gradients/internal/isolation/isolated_units.h"

namespace sordino {

at::Tensor OwnTensor(const at::Tensor& tensor) {
  const isolated::Layer layer = isolated::CurrentLayer();
  if (layer.level < 0 || !tensor.defined() || !isolated::IsPlain(tensor)) return tensor;
  const isolated::PlainTensors plain;
  std::vector<std::int64_t> sizes = tensor.sizes().vec();
  sizes.insert(sizes.begin(), layer.units);
  const at::Tensor own = tensor.unsqueeze(0).expand(sizes).clone(at::MemoryFormat::Contiguous);
  return at::functorch::makeBatched(own, 0, layer.level);
}

}  // namespace sordino
