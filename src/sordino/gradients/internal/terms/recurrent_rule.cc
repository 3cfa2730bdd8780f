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

#include "sordino/gradients/internal/terms/recurrent_layer.h"

namespace sordino {
namespace {

namespace ag = torch::autograd;
namespace generated = torch::autograd::generated;
using LayerNode = generated::MkldnnRnnLayerBackward0;

// Inputs of the layer's operation.
enum LayerSlot : std::size_t {
  kInput = 0,
  kInputWeight = 1,
  kHiddenWeight = 2,
  kInputBias = 3,
  kHiddenBias = 4,
  kFirstHidden = 5,
  kFirstCell = 6,
  kLayerSlots = 7,
};

// Reduced types are computed with in float32, as oneDNN does.
at::Tensor Plain(const at::Tensor& tensor) {
  const at::Tensor detached = tensor.detach();
  return detached.scalar_type() == at::kDouble ? detached : detached.to(at::kFloat);
}

LstmLayer LayerOf(const TapeNode& node) {
  auto& saved = static_cast<LayerNode&>(*node);
  LstmLayer layer;
  layer.input = Plain(saved.input_.unpack()).transpose(0, 1);
  layer.input_weight = Plain(saved.weight0_.unpack());
  layer.hidden_weight = Plain(saved.weight1_.unpack());
  if (saved.has_biases) {
    layer.bias = Plain(saved.weight2_.unpack()) + Plain(saved.weight3_.unpack());
  }
  layer.first_hidden = Plain(saved.hx__.unpack());
  layer.first_cell = Plain(saved.cx__.unpack());
  layer.output = Plain(saved.result0_.unpack(node)).transpose(0, 1);
  layer.reverse = saved.reverse;
  return layer;
}

}  // namespace

class LstmLayerPass {
 public:
  explicit LstmLayerPass(const TapeNode& node) : layer_(LayerOf(node)), rows_(RowsOf(layer_)) {
    layer_.input.reset();
    layer_.output.reset();
  }

  const LstmRows& rows() const { return rows_; }

  // For what arrives at the outputs of the operation; all undefined when nothing does. The last
  // answer is kept: the uses of the node and its stand-in ask for the same one after another.
  const LstmGradients& Backward(const std::vector<at::Tensor>& gradients) {
    const auto same = [](const at::Tensor& x, const at::Tensor& y) { return x.is_same(y); };
    if (std::equal(gradients.begin(), gradients.end(), asked_.begin(), asked_.end(), same)) {
      return answer_;
    }
    asked_ = gradients;
    answer_ = {};
    LstmOutputGradients arriving;
    if (gradients[0].defined()) arriving.output = Plain(gradients[0]).transpose(0, 1);
    if (gradients[1].defined()) arriving.last_hidden = Plain(gradients[1]);
    if (gradients[2].defined()) arriving.last_cell = Plain(gradients[2]);
    if (arriving.output.defined() || arriving.last_hidden.defined() ||
        arriving.last_cell.defined()) {
      answer_ = LstmBackward(layer_, rows_, arriving);
    }
    return answer_;
  }

  at::Tensor InputGradient() const { return LstmInputGradient(layer_, answer_).transpose(0, 1); }

 private:
  LstmLayer layer_;
  LstmRows rows_;
  std::vector<at::Tensor> asked_;
  LstmGradients answer_;
};

namespace {

// Hands on what the rules of the layer have computed already, so that oneDNN's backward pass does
// not run.
class LstmLayerStandIn : public ag::Node {
 public:
  LstmLayerStandIn(TapeNode node, std::shared_ptr<LstmLayerPass> pass)
      : ag::Node(node->sequence_nr(), DataEdges(*node)),
        node_(std::move(node)),
        pass_(std::move(pass)) {
    for (std::uint32_t k = 0; k < node_->num_inputs(); ++k) {
      const auto& metadata = node_->input_metadata(k);
      if (metadata.was_default_constructed()) {
        add_input_metadata(undefined_input());
      } else {
        add_input_metadata(at::empty({}, metadata.options()).expand(OutputSizes(*node_, k)));
      }
    }
  }

  ag::variable_list apply(ag::variable_list&& gradients) override {
    ag::variable_list inputs(kLayerSlots);
    const LstmGradients& found = pass_->Backward(gradients);
    if (!found.gates.defined()) return inputs;
    if (task_should_compute_output(kInput)) inputs[kInput] = pass_->InputGradient();
    if (task_should_compute_output(kFirstHidden)) inputs[kFirstHidden] = found.first_hidden;
    if (task_should_compute_output(kFirstCell)) inputs[kFirstCell] = found.first_cell;
    return inputs;
  }

  std::string name() const override { return node_->name(); }

  void release_variables() override { pass_.reset(); }

 private:
  static ag::edge_list DataEdges(const ag::Node& node) {
    ag::edge_list edges = node.next_edges();
    for (std::size_t slot = kInputWeight; slot <= kHiddenBias; ++slot) edges[slot] = {};
    return edges;
  }

  TapeNode node_;
  std::shared_ptr<LstmLayerPass> pass_;
};

class LstmLayerUse : public UseRule {
 public:
  LstmLayerUse(TapeNode node, std::size_t slot, std::vector<std::int64_t> sizes,
               std::shared_ptr<LstmLayerPass> pass)
      : node_(std::move(node)), slot_(slot), sizes_(std::move(sizes)), pass_(std::move(pass)) {}

  at::Tensor Arriving(const std::vector<at::Tensor>& gradients) override {
    return pass_->Backward(gradients).gates;
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
    term.b = slot_ == kInputWeight ? pass_->rows().input : pass_->rows().previous_hidden;
    return term;
  }

  // A hook on the graph's own node would not be heard on another.
  TapeNode Replacement(bool keep_graph) override {
    if (!node_->pre_hooks().empty() || !node_->tensor_pre_hooks().empty() ||
        !node_->post_hooks().empty() || !node_->retains_grad_hooks().empty()) {
      return nullptr;
    }
    // oneDNN's workspace is several times larger than all that is needed here.
    if (!keep_graph) node_->release_variables();
    return std::make_shared<LstmLayerStandIn>(node_, pass_);
  }

 private:
  bool is_bias() const { return slot_ == kInputBias || slot_ == kHiddenBias; }

  TapeNode node_;
  std::size_t slot_;
  std::vector<std::int64_t> sizes_;
  std::shared_ptr<LstmLayerPass> pass_;
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

std::unique_ptr<UseRule> MakeLstmLayerRule(const Tape& tape, const TapeNode& node, std::size_t slot,
                                           const std::string& what, LstmLayers& layers) {
  if (slot < kInputWeight || slot > kHiddenBias) return nullptr;
  constexpr std::int64_t kLstm = 2;
  const auto& saved = static_cast<const LayerNode&>(*node);
  if (saved.mode != kLstm || !saved.batch_sizes.empty()) {
    throw NotPerExample(what +
                        " is of a kind of fused layer that has no rule for gradients per "
                        "example; call at::globalContext().setUserEnabledMkldnn(false) before the "
                        "forward pass, or use LSTM cells.");
  }
  const std::size_t index = static_cast<std::size_t>(
      std::find(tape.graph.nodes.begin(), tape.graph.nodes.end(), node) - tape.graph.nodes.begin());
  for (const GraphEdge& edge : tape.graph.edges[index]) {
    const bool is_weight = edge.slot >= kInputWeight && edge.slot <= kHiddenBias;
    if (!is_weight || tape.shared[edge.child]) continue;
    throw NotPerExample(what +
                        " stands beside a weight that depends on the examples, which a fused layer "
                        "has no gradients per example for; use LSTM cells.");
  }
  std::shared_ptr<LstmLayerPass>& pass = layers[node.get()];
  if (pass == nullptr) pass = std::make_shared<LstmLayerPass>(node);
  const bool bias = slot == kInputBias || slot == kHiddenBias;
  const std::int64_t gates = 4 * saved.hidden_size;
  std::vector<std::int64_t> sizes = {gates};
  if (!bias) {
    sizes.push_back(slot == kInputWeight ? pass->rows().input.size(1) : saved.hidden_size);
  }
  return std::make_unique<LstmLayerUse>(node, slot, std::move(sizes), pass);
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

void RefuseCudnnLayers(const std::string& what) {
  throw NotPerExample(what +
                      " is run by cuDNN, which gives no gradients per example; call "
                      "at::globalContext().setUserEnabledCuDNN(false) before the forward pass, use "
                      "LSTM or GRU cells, or allow the fallback that runs example by example.");
}

}  // namespace sordino
