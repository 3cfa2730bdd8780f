// Without a CUDA compiler (cmake/SordinoCuda.cmake): nobody calls what HasGroupNorm says no to.
#include "sordino/gradients/internal/device/group_norm.h"
#include "sordino/gradients/internal/device/not_built.h"

namespace sordino {

bool HasGroupNorm(const at::Tensor& /*input*/, std::int64_t /*groups*/, const at::Tensor& /*scale*/,
                  const at::Tensor& /*shift*/) {
  return false;
}
bool HasGroupNormOfOne(const at::Tensor& /*gradient*/, const at::Tensor& /*input*/,
                       const at::Tensor& /*mean*/, const at::Tensor& /*deviation*/,
                       const at::Tensor& /*scale*/) {
  return false;
}
GroupNormResult DeviceGroupNorm(const at::Tensor& /*input*/, std::int64_t /*groups*/,
                                const at::Tensor& /*scale*/, const at::Tensor& /*shift*/,
                                double /*eps*/) {
  device::NotBuilt();
}
GroupNormGradients DeviceGroupNormGradients(const at::Tensor& /*gradient*/,
                                            const at::Tensor& /*input*/, const at::Tensor& /*mean*/,
                                            const at::Tensor& /*deviation*/,
                                            const at::Tensor& /*scale*/) {
  device::NotBuilt();
}

}  // namespace sordino
