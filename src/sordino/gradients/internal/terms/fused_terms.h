// Terms whose norms and sums the kernels of fused_product.h take.
//
// Where a program was built without a CUDA compiler, no term is one of them.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_FUSED_TERMS_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_FUSED_TERMS_H_

#include <ATen/core/Tensor.h>

#include "sordino/gradients/internal/terms/term.h"

namespace sordino {

// How the kernels would compute a term: kNone where they cannot, and else by what libtorch is
// allowed for matrix products (device/precision.h). Norms and sum of a term are to be computed in
// the same way, so it is asked once and kept in the term.
FusedUse FusedUseOf(const Term& term);

// Adds the squared norms of a term with term.fused to `squared` [examples], float64.
void AddFusedSquaredNorms(const Term& term, const at::Tensor& squared);

// The gradients of the examples of a term with term.fused, [examples, w.numel()], of the same bits.
at::Tensor FusedMaterialise(const Term& term);

// sum_i factors[i] g_i in the sizes of w, of the bits whose norms were taken, in float32 or, where
// it is to be `wide`, in float64; factors [examples], float64.
at::Tensor FusedWeightedSum(const Term& term, const at::Tensor& factors, bool wide = false);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_FUSED_TERMS_H_
