// The cost model: by which form the norms of a term are found, in flops and bytes.
//
// For B examples of T rows with p and q features:
//
//   keep      2 B T p q flops for the gradients, which are written once and read once
//   discard   2 B T p q flops for the norms and as many for the sum, whose products are added up
//   Gram      2 B T^2 (p + q) flops for the norms and 2 B T p q for the sum, likewise
//
//   fused     2 B T p q flops for the norms and as many for the sum, and nothing is written: where
//             kernels of our own compute a term (fused_terms.h), nothing else is faster
//
// (T positions, and channels for p and q in the Gram matrices, for a convolution.)
//
// One row an example needs no matrix at all. Where gradients are kept, inputs and output gradients
// are freed; the clipper cuts a batch into parts where what is kept becomes too much.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_NORM_COST_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_NORM_COST_H_

#include "sordino/gradients/internal/terms/term.h"

namespace sordino {

NormForm CheapestForm(const Term& term);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_NORM_COST_H_
