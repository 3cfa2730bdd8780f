// Rules of operations that look at indices or values of an example, and of dropout, in an isolated
// pass.
//
//   index_put, index_put_ with one boolean mask   written with where
//   index_add, index_copy, index_fill             written with scatter_add and scatter, because
//                                                 libtorch's rules call them unit by unit
//   histc                                         written with comparisons
//   dropout of a tensor that is the same for all  one mask for each unit
//   _nested_tensor_from_mask_left_aligned         false: what is padded stays padded
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_INDICES_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_INDICES_H_

#include <torch/library.h>

namespace sordino {

void RegisterCounts(torch::Library& rules);

// Where libtorch looks first: what has no index or mask of an example takes libtorch's own rule.
void RegisterFirstRules(torch::Library& first);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_ISOLATED_INDICES_H_
