#include "sordino/gradients/internal/graph/shared_gradients.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>

#include "sordino/gradients/internal/isolation/isolated_units.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/physical_batch.h"
#include "sordino/kernels/group_norm.h"

namespace sordino {
namespace {

namespace ag = torch::autograd;

void Accumulate(at::Tensor& sum, const at::Tensor& more) {
  if (more.defined()) sum = sum.defined() ? sum + more : more;
}

// Runs a node, for all examples of a layer or, without one, for a single example. Standardised
// weights are a group norm, which has a launch for the gradients of all examples.
ag::variable_list Run(const TapeNode& node, ag::variable_list arriving,
                      const IsolationLayer* layer) {
  const auto* norm = dynamic_cast<ag::generated::NativeGroupNormBackward0*>(node.get());
  if (layer != nullptr && norm != nullptr && arriving[0].defined()) {
    const at::Tensor input = norm->input_.unpack();
    const at::Tensor mean = norm->result1_.unpack(node);
    const at::Tensor deviation = norm->result2_.unpack(node);
    const at::Tensor scale = norm->weight_.unpack();
    const at::Tensor gradient = layer->Unwrap(arriving[0]).flatten(0, 1);
    const isolated::PlainTensors plain;
    if (HasGroupNormOfOne(gradient, input, mean, deviation, scale)) {
      const GroupNormGradients found =
          DeviceGroupNormGradients(gradient, input, mean, deviation, scale);
      return {layer->Wrap(found.input.unsqueeze(1)), layer->Wrap(found.scale),
              layer->Wrap(found.shift)};
    }
  }
  return (*node)(std::move(arriving));
}

// The gradients of the parameters, from those of the derived tensors in their own sizes.
std::vector<at::Tensor> Backward(const Tape& tape, const std::vector<at::Tensor>& gradients,
                                 const IsolationLayer* layer = nullptr) {
  const Graph& graph = tape.graph;
  std::vector<ag::variable_list> arriving(graph.nodes.size());
  const auto arrive = [&](std::size_t node, std::uint32_t output, const at::Tensor& gradient) {
    if (!gradient.defined()) return;
    if (arriving[node].empty()) arriving[node].resize(graph.nodes[node]->num_inputs());
    Accumulate(arriving[node][output], gradient);
  };
  for (std::size_t d = 0; d < gradients.size(); ++d) {
    arrive(tape.derived[d].node, tape.derived[d].output, gradients[d]);
  }
  std::vector<at::Tensor> result(tape.parameters);
  for (auto node = graph.finished.rbegin(); node != graph.finished.rend(); ++node) {
    if (arriving[*node].empty()) continue;
    if (graph.is_leaf[*node]) {
      if (graph.parameter[*node]) result[*graph.parameter[*node]] = arriving[*node][0];
      continue;
    }
    const ag::variable_list inputs = Run(graph.nodes[*node], std::move(arriving[*node]), layer);
    arriving[*node].clear();
    for (const GraphEdge& edge : graph.edges[*node]) {
      at::Tensor gradient = inputs[edge.slot];
      if (!gradient.defined()) continue;
      // The engine does this where an input was broadcast.
      const std::vector<std::int64_t> sizes = OutputSizes(*graph.nodes[edge.child], edge.output);
      if (gradient.sizes() != at::IntArrayRef(sizes)) gradient = at::sum_to(gradient, sizes);
      arrive(edge.child, edge.output, gradient);
    }
  }
  return result;
}

std::vector<at::Tensor> AllAtOnce(const Tape& tape, std::vector<at::Tensor> gradients,
                                  std::int64_t examples) {
  const IsolationLayer layer(examples);
  for (at::Tensor& gradient : gradients) {
    if (gradient.defined()) gradient = layer.Wrap(gradient);
  }
  std::vector<at::Tensor> result = Backward(tape, gradients, &layer);
  for (at::Tensor& gradient : result) {
    if (gradient.defined()) gradient = layer.Unwrap(gradient).reshape({examples, gradient.numel()});
  }
  return result;
}

std::vector<at::Tensor> OneByOne(const Tape& tape, const std::vector<at::Tensor>& gradients,
                                 std::int64_t examples) {
  std::vector<std::vector<at::Tensor>> rows(tape.parameters);
  for (std::int64_t k = 0; k < examples; ++k) {
    std::vector<at::Tensor> own;
    own.reserve(gradients.size());
    for (const at::Tensor& gradient : gradients) {
      own.push_back(gradient.defined() ? gradient.select(0, k) : gradient);
    }
    const std::vector<at::Tensor> result = Backward(tape, own);
    for (std::size_t p = 0; p < result.size(); ++p) {
      if (result[p].defined()) rows[p].push_back(result[p].reshape({1, result[p].numel()}));
    }
  }
  std::vector<at::Tensor> result(tape.parameters);
  for (std::size_t p = 0; p < result.size(); ++p) {
    if (!rows[p].empty()) result[p] = at::cat(rows[p]);
  }
  return result;
}

}  // namespace

std::vector<at::Tensor> SharedGradients(const Tape& tape,
                                        const std::vector<at::Tensor>& gradients) {
  const auto some = std::find_if(gradients.begin(), gradients.end(),
                                 [](const at::Tensor& g) { return g.defined(); });
  if (some == gradients.end()) return std::vector<at::Tensor>(tape.parameters);
  const std::int64_t examples = some->size(0);
  const at::NoGradGuard no_grad;
  try {
    return AllAtOnce(tape, gradients, examples);
  } catch (const std::exception& error) {
    if (IsOutOfMemory(error)) throw;
  }
  return OneByOne(tape, gradients, examples);
}

}  // namespace sordino
