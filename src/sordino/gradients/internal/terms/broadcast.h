// Sums over what a parameter was broadcast over, but not over the examples.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_BROADCAST_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_BROADCAST_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/kernels/example_layout.h"

namespace sordino {

// `values`, viewed as `full`, is summed to `reduced` (of as many dimensions or fewer, by the rules
// of broadcasting) for each example apart; the layout counts single elements. Returns
// [examples, product of reduced], or an undefined tensor when `reduced` has more than one value
// where the examples lie.
at::Tensor ReducePerExample(const at::Tensor& values, const std::vector<std::int64_t>& full,
                            const std::vector<std::int64_t>& reduced, const ExampleLayout& layout);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_BROADCAST_H_
