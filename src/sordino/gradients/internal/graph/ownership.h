// Whose row is it? The ownership probe.
//
// The forward pass keeps the examples apart (isolation.h), but behind views and transposes the rows
// of an operation lie in any order. Guessing wrong is a privacy bug that makes no noise, so it is
// found out.
// Backward passes are linear in the gradient of the losses. With the loss of example i weighted by
// 2^k(i), every row that depends on example i alone comes out multiplied by exactly 2^k(i): scaling
// by a power of two commutes with rounding, so there is no tolerance to speak of, in bfloat16
// either. A row that mixes examples is multiplied by no power of two, or by different ones in
// different places. Sixteen exponents tell sixteen examples apart in one pass; ceil(log16 B) passes
// tell all. Weights up to 2^15 also magnify a mixing that is weak.
//
// Rows that are zero say nothing. When the others leave more than one layout possible, the layout
// is good for this batch (what is zero adds nothing) but is not kept for later ones.
#ifndef SORDINO_GRADIENTS_INTERNAL_GRAPH_OWNERSHIP_H_
#define SORDINO_GRADIENTS_INTERNAL_GRAPH_OWNERSHIP_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sordino/gradients/internal/graph/tape.h"
#include "sordino/gradients/internal/terms/use_rule.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/kernels/example_layout.h"

namespace sordino {

struct Ownership {
  std::vector<ExampleLayout> layouts;  // of each use
  bool settled = true;                 // no other layout fits what was seen
};

// Runs backward passes over the graph behind `losses` and keeps it. `units` is the number of
// examples that are told apart: losses.numel(), or a divisor of it when micro-batches of
// consecutive examples are taken together. Throws DifferentValues when rows are not in the order of
// a layout.
Ownership FindOwnership(const at::Tensor& losses, std::int64_t units, const Tape& tape,
                        const std::vector<std::unique_ptr<UseRule>>& rules,
                        const std::vector<NamedParameter>& parameters);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_GRAPH_OWNERSHIP_H_
