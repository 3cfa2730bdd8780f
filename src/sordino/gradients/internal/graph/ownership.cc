#include "sordino/gradients/internal/graph/ownership.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <cstdint>
#include <utility>

#include "sordino/gradients/internal/graph/row_owners.h"

namespace sordino {
namespace {

namespace ag = torch::autograd;

std::vector<at::Tensor> Backward(const at::Tensor& losses, const at::Tensor& weights,
                                 const ag::edge_list& outputs) {
  return ag::Engine::get_default_engine().execute({ag::impl::gradient_edge(losses)}, {weights},
                                                  /*keep_graph=*/true, /*create_graph=*/false,
                                                  /*accumulate_grad=*/false, outputs);
}

// Gradients that arrive at some outputs, plain and under the weights of each pass.
struct Captured {
  std::vector<at::Tensor> plain;
  std::vector<std::vector<at::Tensor>> weighted;  // by pass
};

Captured Capture(const at::Tensor& losses, const UnitCode& code, const ag::edge_list& outputs) {
  Captured captured;
  captured.plain = Backward(losses, at::ones_like(losses), outputs);
  for (std::size_t pass = 0; pass < code.exponent.size(); ++pass) {
    captured.weighted.push_back(Backward(losses, code.Weights(pass, losses), outputs));
  }
  return captured;
}

// The same for what the rules take at each use.
Captured CaptureAtUses(const at::Tensor& losses, const UnitCode& code, const Tape& tape,
                       const std::vector<std::unique_ptr<UseRule>>& rules) {
  ag::edge_list outputs;
  for (const ParameterUse& use : tape.uses) {
    const TapeNode& node = tape.graph.nodes[use.node];
    for (std::uint32_t k = 0; k < node->num_inputs(); ++k) outputs.emplace_back(node, k);
  }
  Captured captured = Capture(losses, code, outputs);
  const auto arriving = [&](std::vector<at::Tensor>& gradients) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> at_uses;
    auto first = gradients.begin();
    for (std::size_t k = 0; k < tape.uses.size(); ++k) {
      const auto last = first + tape.graph.nodes[tape.uses[k].node]->num_inputs();
      at_uses.push_back(rules[k]->Arriving({first, last}));
      first = last;
    }
    gradients = std::move(at_uses);
  };
  arriving(captured.plain);
  for (auto& pass : captured.weighted) arriving(pass);
  return captured;
}

}  // namespace

Ownership FindOwnership(const at::Tensor& losses, std::int64_t units, const Tape& tape,
                        const std::vector<std::unique_ptr<UseRule>>& rules,
                        const std::vector<NamedParameter>& parameters) {
  const UnitCode code(units, losses.scalar_type() == at::kHalf);
  const Captured captured = CaptureAtUses(losses, code, tape, rules);

  Ownership ownership;
  for (std::size_t k = 0; k < tape.uses.size(); ++k) {
    const std::string& name = RootName(tape, tape.uses[k].root, parameters);
    if (!captured.plain[k].defined() || captured.plain[k].numel() == 0) {
      ownership.layouts.push_back({0, units, 0});
      ownership.settled = false;
      continue;
    }
    const at::Tensor plain = rules[k]->Rows(captured.plain[k]);
    if (units == 1) {
      ownership.layouts.push_back({1, 1, plain.size(0)});
      ownership.settled = false;
      continue;
    }
    std::vector<at::Tensor> weighted;
    for (const auto& pass : captured.weighted) weighted.push_back(rules[k]->Rows(pass[k]));
    const LayoutFit fit = FitRows(code, plain, weighted, units, RowArithmetic::Of(plain));
    if (!fit.layout) {
      throw DifferentValues("the rows of the operation '" +
                            OperationName(*tape.graph.nodes[tape.uses[k].node]) +
                            "' of the parameter '" + name +
                            "' are not as many, or not in the same order, for every example; "
                            "pad the examples to one size and keep their order.");
    }
    ownership.layouts.push_back(*fit.layout);
    ownership.settled = ownership.settled && fit.unique;
  }
  return ownership;
}

}  // namespace sordino
