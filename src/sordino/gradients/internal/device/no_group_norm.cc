// Without a CUDA compiler (cmake/SordinoCuda.cmake): nobody calls what HasGroupNorm says no to.
#include "sordino/base/check.h"
#include "sordino/gradients/internal/device/group_norm.h"

namespace sordino {
namespace {

[[noreturn]] void GroupNormNotBuilt() {
  internal::CheckFailed("false", "kernels were called that are not built", __FILE__, __LINE__);
}

}  // namespace

bool HasGroupNorm(const at::Tensor& /*input*/, std::int64_t /*groups*/, const at::Tensor& /*scale*/,
                  const at::Tensor& /*shift*/) {
  return false;
}
GroupNormResult DeviceGroupNorm(const at::Tensor& /*input*/, std::int64_t /*groups*/,
                                const at::Tensor& /*scale*/, const at::Tensor& /*shift*/,
                                double /*eps*/) {
  GroupNormNotBuilt();
}
GroupNormGradients DeviceGroupNormGradients(const at::Tensor& /*gradient*/,
                                            const at::Tensor& /*input*/, const at::Tensor& /*mean*/,
                                            const at::Tensor& /*deviation*/,
                                            const at::Tensor& /*scale*/) {
  GroupNormNotBuilt();
}

}  // namespace sordino
