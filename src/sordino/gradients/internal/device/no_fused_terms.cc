// Without a CUDA compiler (cmake/SordinoCuda.cmake).
#include "sordino/base/check.h"
#include "sordino/gradients/internal/device/fused_terms.h"

namespace sordino {

FusedUse FusedUseOf(const Term& /*term*/) { return FusedUse::kNone; }

void AddFusedSquaredNorms(const Term& /*term*/, const at::Tensor& /*squared*/) {
  SORDINO_CHECK(false, "no term is fused without kernels");
}

at::Tensor FusedMaterialise(const Term& /*term*/) {
  SORDINO_CHECK(false, "no term is fused without kernels");
  return {};
}

at::Tensor FusedWeightedSum(const Term& /*term*/, const at::Tensor& /*factors*/, bool /*wide*/) {
  SORDINO_CHECK(false, "no term is fused without kernels");
  return {};
}

}  // namespace sordino
