// The autograd graph of a vector of losses, as it stands.
//
// libtorch records a node for every operation of a forward pass. An edge of such a node leads to
// the node behind one of its inputs; the edge of a parameter leads to an AccumulateGrad leaf. The
// nodes are numbered in the order of a depth-first walk, which is the same for two graphs of the
// same structure.
//
// Nodes of an isolated pass (isolation.h) are of two kinds: the output of an own node has a part
// for each unit, and the output of a shared node is the same for all, a function of parameters and
// constants alone. They are told apart by size: in a pass with one unit more, outputs of own nodes
// are larger and outputs of shared nodes are not. Nothing depends on a value.
#ifndef SORDINO_GRADIENTS_INTERNAL_GRAPH_GRAPH_H_
#define SORDINO_GRADIENTS_INTERNAL_GRAPH_GRAPH_H_

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/function.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sordino/gradients/loss_function.h"

namespace sordino {

using TapeNode = std::shared_ptr<torch::autograd::Node>;

struct GraphEdge {
  std::size_t slot = 0;   // which input of the operation
  std::size_t child = 0;  // the node behind it
  std::uint32_t output = 0;
};

struct Graph {
  std::vector<TapeNode> nodes;  // the first one makes the losses
  std::vector<c10::SmallVector<GraphEdge, 3>> edges;
  // Of a leaf: the index of its parameter.
  std::vector<std::optional<std::size_t>> parameter;
  std::vector<bool> is_leaf;
  std::vector<std::size_t> finished;  // every node after all nodes behind it

  // The structure: equal for two forward passes of one model.
  std::vector<std::int64_t> topology;
  std::vector<std::int64_t> sizes;
  std::vector<std::size_t> sizes_end;  // of each node, into sizes
};

Graph ReadGraph(const at::Tensor& losses, const std::vector<NamedParameter>& parameters);

// Which nodes are shared, from a graph for `units` units and one for units + 1; nothing when the
// two have different structures.
std::optional<std::vector<bool>> SharedNodes(const Graph& graph, const Graph& with_one_more);

// Equal structure, where a size may differ that is a multiple of the number of examples.
bool SameStructure(const Graph& known, std::int64_t known_examples, const Graph& graph,
                   std::int64_t examples);

// "convolution", "native batch norm": the operation in words.
std::string OperationName(const torch::autograd::Node& node);

// Sizes of the gradient that arrives at output `output` of a node.
std::vector<std::int64_t> OutputSizes(const torch::autograd::Node& node, std::size_t output);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_GRAPH_GRAPH_H_
