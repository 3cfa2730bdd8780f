// The places where parameters meet the data of the examples.
//
// A use is an edge of the graph from an own node to a shared one (graph.h): a linear layer, a
// convolution, a lookup, a broadcasting addition, and what enters it. What enters is a parameter,
// perhaps through views, transposes and slices (its path) and casts, or a derived tensor: the
// result of other functions of parameters and constants (weight norm, a product of low-rank
// factors, learned positions). Gradients per example are found for parameters and derived tensors
// alike, the roots; those of derived tensors then go back through the shared part of the graph, all
// examples at once (shared_gradients.h).
#ifndef SORDINO_GRADIENTS_INTERNAL_GRAPH_TAPE_H_
#define SORDINO_GRADIENTS_INTERNAL_GRAPH_TAPE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sordino/gradients/internal/graph/graph.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

// A view or slice between a use and the parameter, with the output of it that is used.
struct PathStep {
  TapeNode node;
  std::uint32_t output = 0;
};

struct ParameterUse {
  std::size_t root = 0;        // index of a parameter, or after them of a derived tensor
  std::size_t node = 0;        // index into Graph::nodes
  std::size_t slot = 0;        // which input of the operation the root is
  std::vector<PathStep> path;  // nearest the use first; empty when the root enters as it is or cast
  std::vector<std::int64_t> sizes;  // of the tensor that enters the operation
};

struct DerivedTensor {
  std::size_t node = 0;  // index into Graph::nodes
  std::uint32_t output = 0;
  std::vector<std::int64_t> sizes;
  std::vector<std::size_t> parameters;  // that it is computed from
};

struct Tape {
  Graph graph;
  std::vector<bool> shared;  // of each node
  std::vector<c10::SmallVector<std::size_t, 2>>
      consumers;                   // own nodes that take each node's output
  std::vector<bool> leads_to_use;  // an own node behind this one has a use
  std::vector<ParameterUse> uses;
  std::vector<DerivedTensor> derived;
  std::size_t parameters = 0;

  std::size_t roots() const { return parameters + derived.size(); }
};

Tape MakeTape(Graph graph, std::vector<bool> shared, const std::vector<NamedParameter>& parameters);

at::IntArrayRef RootSizes(const Tape& tape, std::size_t root,
                          const std::vector<NamedParameter>& parameters);

// The parameter, or one that the derived tensor is computed from.
const std::string& RootName(const Tape& tape, std::size_t root,
                            const std::vector<NamedParameter>& parameters);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_GRAPH_TAPE_H_
