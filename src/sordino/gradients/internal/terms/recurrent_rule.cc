#include "sordino/gradients/internal/terms/recurrent_rule.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_thnn_fused_gru_cell_backward.h>
#include <ATen/ops/_thnn_fused_lstm_cell_backward.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/generated/Functions.h>

#include <algorithm>
#include <cstdint>
#include <typeinfo>
#include <utility>
#include <vector>

#include "sordino/gradients/internal/isolation/recurrent_node.h"
#include "sordino/gradients/internal/terms/recurrent_layer.h"

namespace sordino {
namespace {

namespace ag = torch::autograd;
namespace generated = torch::autograd::generated;
using Slot = RecurrentLayerBackward::Slot;

}  // namespace

class RecurrentLayerPass {
 public:
  explicit RecurrentLayerPass(RecurrentLayerBackward& node)
      : layer_(node.Layer()), rows_(RowsOf(layer_)) {
    layer_.input.reset();
    layer_.output.reset();
  }

  const RecurrentRows& rows() const { return rows_; }

  // For what arrives at the outputs of the operation; all undefined when nothing does. The last
  // answer is kept: the uses of the node and its stand-in ask for the same one after another.
  const RecurrentGradients& Backward(const std::vector<at::Tensor>& gradients) {
    const auto same = [](const at::Tensor& x, const at::Tensor& y) { return x.is_same(y); };
    if (std::equal(gradients.begin(), gradients.end(), asked_.begin(), asked_.end(), same)) {
      return answer_;
    }
    asked_ = gradients;
    answer_ = {};
    RecurrentOutputGradients arriving;
    if (ArrivingAt(gradients, arriving)) answer_ = RecurrentBackward(layer_, rows_, arriving);
    return answer_;
  }

  at::Tensor InputGradient() const {
    return RecurrentInputGradient(layer_, answer_).transpose(0, 1);
  }

 private:
  RecurrentLayer layer_;
  RecurrentRows rows_;
  std::vector<at::Tensor> asked_;
  RecurrentGradients answer_;
};

namespace {

// Hands on what the rules of the layer have computed already, so that it is not computed twice.
class RecurrentStandIn : public ag::Node {
 public:
  RecurrentStandIn(TapeNode node, std::shared_ptr<RecurrentLayerPass> pass)
      : ag::Node(node->sequence_nr(), DataEdges(*node)),
        node_(std::move(node)),
        pass_(std::move(pass)) {
    for (std::uint32_t k = 0; k < node_->num_inputs(); ++k) {
      add_input_metadata(
          at::empty({}, node_->input_metadata(k).options()).expand(OutputSizes(*node_, k)));
    }
  }

  ag::variable_list apply(ag::variable_list&& gradients) override {
    ag::variable_list inputs(Slot::kSlots);
    const RecurrentGradients& found = pass_->Backward(gradients);
    if (!found.input_gates.defined()) return inputs;
    const auto wanted = [&](Slot slot) { return task_should_compute_output(slot); };
    if (wanted(Slot::kInput)) inputs[Slot::kInput] = pass_->InputGradient();
    if (wanted(Slot::kFirstHidden)) inputs[Slot::kFirstHidden] = found.first_hidden;
    if (wanted(Slot::kFirstCell)) inputs[Slot::kFirstCell] = found.first_cell;
    return inputs;
  }

  std::string name() const override { return node_->name(); }

  void release_variables() override { pass_.reset(); }

 private:
  static ag::edge_list DataEdges(const ag::Node& node) {
    ag::edge_list edges = node.next_edges();
    for (std::size_t slot = 0; slot < edges.size(); ++slot) {
      if (RecurrentLayerBackward::IsWeight(slot)) edges[slot] = {};
    }
    return edges;
  }

  TapeNode node_;
  std::shared_ptr<RecurrentLayerPass> pass_;
};

class RecurrentLayerUse : public UseRule {
 public:
  RecurrentLayerUse(TapeNode node, std::size_t slot, std::vector<std::int64_t> sizes,
                    std::shared_ptr<RecurrentLayerPass> pass)
      : node_(std::move(node)), slot_(slot), sizes_(std::move(sizes)), pass_(std::move(pass)) {}

  at::Tensor Arriving(const std::vector<at::Tensor>& gradients) override {
    const RecurrentGradients& found = pass_->Backward(gradients);
    return of_input() ? found.input_gates : found.hidden_gates;
  }

  at::Tensor Rows(const at::Tensor& gradient) const override { return gradient; }

  TermKind kind() const override { return is_bias() ? TermKind::kRows : TermKind::kOuter; }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    Term term{.kind = kind(), .layout = layout, .sizes = sizes_};
    if (is_bias()) {
      term.b = gradient;
      return term;
    }
    term.a = gradient;
    term.b = of_input() ? pass_->rows().input : pass_->rows().previous_hidden;
    return term;
  }

  // A hook on the graph's own node would not be heard on another.
  TapeNode Replacement(bool keep_graph) override {
    if (!node_->pre_hooks().empty() || !node_->tensor_pre_hooks().empty() ||
        !node_->post_hooks().empty() || !node_->retains_grad_hooks().empty()) {
      return nullptr;
    }
    // The pass has taken out what it needs.
    if (!keep_graph) node_->release_variables();
    return std::make_shared<RecurrentStandIn>(node_, pass_);
  }

 private:
  bool is_bias() const { return slot_ == Slot::kInputBias || slot_ == Slot::kHiddenBias; }
  bool of_input() const { return slot_ == Slot::kInputWeight || slot_ == Slot::kInputBias; }

  TapeNode node_;
  std::size_t slot_;
  std::vector<std::int64_t> sizes_;
  std::shared_ptr<RecurrentLayerPass> pass_;
};

// A bias of a fused cell: the gradient of an example is its row of the gradient of the gates.
class FusedCellBias : public UseRule {
 public:
  FusedCellBias(TapeNode node, bool of_input) : node_(std::move(node)), of_input_(of_input) {}

  at::Tensor Arriving(const std::vector<at::Tensor>& gradients) override {
    if (auto* cell = dynamic_cast<generated::ThnnFusedLstmCellBackward0*>(node_.get())) {
      if (!gradients[0].defined() && !gradients[1].defined()) return {};
      return std::get<0>(at::_thnn_fused_lstm_cell_backward(
          gradients[0], gradients[1], cell->cx_.unpack(), cell->result1_.unpack(node_),
          cell->result2_.unpack(node_), /*has_bias=*/false));
    }
    if (!gradients[0].defined()) return {};
    auto& cell = static_cast<generated::ThnnFusedGruCellBackward0&>(*node_);
    const auto gates = at::_thnn_fused_gru_cell_backward(gradients[0], cell.result1_.unpack(node_),
                                                         /*has_bias=*/false);
    return of_input_ ? std::get<0>(gates) : std::get<1>(gates);
  }

  at::Tensor Rows(const at::Tensor& gradient) const override { return gradient; }

  TermKind kind() const override { return TermKind::kRows; }

  Term MakeTerm(const at::Tensor& gradient, const ExampleLayout& layout) const override {
    return {.kind = TermKind::kRows, .b = gradient, .layout = layout, .sizes = {gradient.size(1)}};
  }

 private:
  TapeNode node_;
  bool of_input_;
};

}  // namespace

std::unique_ptr<UseRule> MakeRecurrentLayerRule(const TapeNode& node, std::size_t slot,
                                                std::vector<std::int64_t> sizes,
                                                RecurrentPasses& passes) {
  if (!RecurrentLayerBackward::IsWeight(slot)) return nullptr;
  std::shared_ptr<RecurrentLayerPass>& pass = passes[node.get()];
  if (pass == nullptr) {
    pass = std::make_shared<RecurrentLayerPass>(static_cast<RecurrentLayerBackward&>(*node));
  }
  return std::make_unique<RecurrentLayerUse>(node, slot, std::move(sizes), pass);
}

std::unique_ptr<UseRule> MakeFusedCellRule(const TapeNode& node, std::size_t slot) {
  const auto& type = *node;
  const bool lstm = typeid(type) == typeid(generated::ThnnFusedLstmCellBackward0);
  // (input gates, hidden gates, cell or hidden state, input bias, hidden bias)
  constexpr std::size_t kCellInputBias = 3;
  constexpr std::size_t kCellHiddenBias = 4;
  if (slot != kCellInputBias && slot != kCellHiddenBias) return nullptr;
  return std::make_unique<FusedCellBias>(node, lstm || slot == kCellInputBias);
}

void RefuseFusedLayers(const std::string& what) {
  throw NotPerExample(what +
                      " is run by a fused layer of oneDNN or cuDNN in a way that has no gradients "
                      "per example (a packed sequence, a projection); call "
                      "at::globalContext().setUserEnabledMkldnn(false) and "
                      "setUserEnabledCuDNN(false) before the forward pass, use cells, or allow the "
                      "fallback that runs example by example.");
}

}  // namespace sordino
