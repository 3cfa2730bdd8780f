// The autograd graph of a vector of losses, read for the places where parameters enter it.
//
// libtorch records a node for every operation of a forward pass. An edge of such a node leads to
// the node behind one of its inputs; the edge of a parameter leads to an AccumulateGrad leaf,
// perhaps through views, transposes, slices and casts of the parameter (its path). The first node
// on the way that also depends on data is a use of the parameter: a linear layer, a convolution,
// a lookup, a broadcasting addition.
//
// A parameter that is expanded or repeated over the batch before it meets data (a class token, the
// scale of an instance norm) is used by the expansion itself, whose output has one part for each
// example. Whether an expansion runs over the batch is not visible in the graph; the ownership
// probe finds out, and the reader is told (expansions_in_path).
#ifndef SORDINO_GRADIENTS_TAPE_H_
#define SORDINO_GRADIENTS_TAPE_H_

#include <ATen/core/Tensor.h>
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

// A view, slice or cast between a use and the parameter, with the output of it that is used.
struct PathStep {
  TapeNode node;
  std::uint32_t output = 0;
};

struct ParameterUse {
  std::size_t parameter = 0;   // index into the parameters
  std::size_t node = 0;        // index into Tape::nodes
  std::size_t slot = 0;        // which input of the operation the parameter is
  std::vector<PathStep> path;  // nearest the use first; empty when the parameter enters as it is
  std::vector<std::int64_t> sizes;       // of the tensor that enters the operation
  std::optional<std::size_t> expansion;  // the use is this expansion of the parameter
};

struct Tape {
  std::vector<TapeNode> nodes;                      // operations on data, in the order of a walk
  std::vector<std::vector<std::size_t>> consumers;  // of each node's output
  std::vector<bool> leads_to_use;                   // a node behind this one uses a parameter
  std::vector<ParameterUse> uses;
  std::size_t expansions = 0;  // expansions of parameters that were met

  // The structure: equal for two forward passes of one model on batches of one shape.
  std::vector<std::int64_t> topology;
  std::vector<std::int64_t> sizes;
  // An operation moves rows about by the values of an index, so that equal structure does not
  // mean equal ownership.
  bool moves_rows_by_value = false;
};

// Reads the graph behind `losses` (shape [examples]). expansions_in_path[k] puts the k-th expansion
// of a parameter into its path; others are uses.
Tape ReadTape(const at::Tensor& losses, const std::vector<NamedParameter>& parameters,
              const std::vector<bool>& expansions_in_path);

// Equal structure, where a size may differ that is a multiple of the number of examples.
bool SameStructure(const Tape& known, std::int64_t known_examples, const Tape& tape,
                   std::int64_t examples);

// "convolution", "native batch norm": the operation in words.
std::string OperationName(const torch::autograd::Node& node);

// Sizes of the gradient that arrives at output `output` of a node.
std::vector<std::int64_t> OutputSizes(const torch::autograd::Node& node, std::size_t output);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TAPE_H_
