// Gradients of parameters from those of the tensors that are computed from them.
//
// Backward functions are linear, so the gradients of all examples go through the shared part of a
// graph (graph.h) in one pass, with a dimension for the examples that is hidden from it as in
// isolation.h. Where an operation cannot be batched, the examples go one after another.
#ifndef SORDINO_GRADIENTS_INTERNAL_GRAPH_SHARED_GRADIENTS_H_
#define SORDINO_GRADIENTS_INTERNAL_GRAPH_SHARED_GRADIENTS_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "sordino/gradients/internal/graph/tape.h"

namespace sordino {

// `gradients[d]` is [examples, ...sizes] for the derived tensor d of the tape, or undefined. The
// result has [examples, entries] for each parameter, undefined where no gradient arrives.
std::vector<at::Tensor> SharedGradients(const Tape& tape, const std::vector<at::Tensor>& gradients);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_GRAPH_SHARED_GRADIENTS_H_
