#include "sordino/gradients/internal/isolation/recurrent_node.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_cudnn_rnn.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cudnn_is_acceptable.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gru.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rnn_relu.h>
#include <ATen/ops/rnn_tanh.h>
#include <ATen/ops/stack.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "sordino/gradients/internal/isolation/isolated_units.h"
#include "sordino/gradients/internal/isolation/isolation.h"

namespace sordino {
namespace {

namespace ag = torch::autograd;
using Slot = RecurrentLayerBackward::Slot;

// One direction of one layer; undefined where there is none.
using LayerInputs = std::array<at::Tensor, Slot::kSlots>;

// Reduced types are computed with in float32.
at::Tensor WideValue(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const at::Tensor value = tensor.detach();
  return value.scalar_type() == at::kDouble ? value : value.to(at::kFloat);
}

struct QuietWarnings : c10::WarningHandler {
  void process(const c10::Warning& /*warning*/) override {}
};

at::Tensor BatchFirst(const at::Tensor& time_first) {
  return time_first.defined() ? time_first.transpose(0, 1) : time_first;
}

std::int64_t WeightsOfLayer(const RecurrentArguments& arguments) {
  return arguments.has_biases ? 4 : 2;
}

// The layer by libtorch's fastest forward pass: output [time, batch, hidden], states [1, batch,
// hidden].
RecurrentOutputs Forward(RecurrentKind kind, const LayerInputs& inputs, const at::Tensor& input) {
  std::vector<at::Tensor> weights = {inputs[Slot::kInputWeight], inputs[Slot::kHiddenWeight]};
  const bool has_biases = inputs[Slot::kInputBias].defined();
  if (has_biases) {
    weights.insert(weights.end(), {inputs[Slot::kInputBias], inputs[Slot::kHiddenBias]});
  }
  const bool is_lstm = kind == RecurrentKind::kLstm;
  const at::Tensor hidden = inputs[Slot::kFirstHidden].unsqueeze(0).contiguous();
  const at::Tensor cell =
      is_lstm ? inputs[Slot::kFirstCell].unsqueeze(0).contiguous() : at::Tensor();
  if (at::cudnn_is_acceptable(input)) {
    // It warns that weights of several layers are copied into one piece of memory, which is wanted
    // here: a layer is run by itself.
    QuietWarnings quiet;
    const c10::WarningUtils::WarningHandlerGuard guard(&quiet);
    auto [output, last_hidden, last_cell, reserve, buffer] = at::_cudnn_rnn(
        input, weights, static_cast<std::int64_t>(weights.size()), /*weight_buf=*/{}, hidden, cell,
        static_cast<std::int64_t>(kind), hidden.size(2), /*proj_size=*/0, /*num_layers=*/1,
        /*batch_first=*/false, /*dropout=*/0, /*train=*/false, /*bidirectional=*/false,
        /*batch_sizes=*/at::IntArrayRef{}, /*dropout_state=*/{});
    return {output, last_hidden, is_lstm ? last_cell : at::Tensor()};
  }
  if (is_lstm) {
    auto [output, last_hidden, last_cell] =
        at::lstm(input, {hidden, cell}, weights, has_biases, 1, 0, false, false, false);
    return {output, last_hidden, last_cell};
  }
  const auto run = kind == RecurrentKind::kGru       ? at::_ops::gru_input::call
                   : kind == RecurrentKind::kTanhRnn ? at::_ops::rnn_tanh_input::call
                                                     : at::_ops::rnn_relu_input::call;
  auto [output, last_hidden] = run(input, hidden, weights, has_biases, 1, 0, false, false, false);
  return {output, last_hidden, {}};
}

// output [time, batch, hidden], states [batch, hidden]
RecurrentOutputs Record(RecurrentKind kind, bool reverse, const LayerInputs& inputs) {
  RecurrentOutputs result;
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const at::NoGradGuard no_grad;
    const at::Tensor& input = inputs[Slot::kInput];
    result = Forward(kind, inputs, reverse ? input.flip(0) : input);
    if (reverse) result.output = result.output.flip(0);
    result.hidden = result.hidden.squeeze(0);
    if (result.cell.defined()) result.cell = result.cell.squeeze(0);
  }
  bool records = false;
  for (const at::Tensor& tensor : inputs) {
    records = records || (tensor.defined() && tensor.requires_grad());
  }
  if (!records || !at::GradMode::is_enabled()) return result;
  const std::shared_ptr<RecurrentLayerBackward> node(new RecurrentLayerBackward, ag::deleteNode);
  node->kind_ = kind;
  node->reverse_ = reverse;
  ag::edge_list edges;
  edges.reserve(inputs.size());
  for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
    if (inputs[slot].defined()) {
      node->inputs_[slot] = ag::SavedVariable(inputs[slot], /*is_output=*/false);
    }
    edges.push_back(inputs[slot].defined() && inputs[slot].requires_grad()
                        ? ag::impl::gradient_edge(inputs[slot])
                        : ag::Edge());
  }
  node->set_next_edges(std::move(edges));
  ag::set_history(result.output, node);
  ag::set_history(result.hidden, node);
  if (result.cell.defined()) ag::set_history(result.cell, node);
  node->output_ = ag::SavedVariable(result.output, /*is_output=*/true);
  return result;
}

}  // namespace

bool ArrivingAt(const ag::variable_list& gradients, RecurrentOutputGradients& result) {
  result.output = BatchFirst(WideValue(gradients[0]));
  result.last_hidden = WideValue(gradients[1]);
  if (gradients.size() > 2) result.last_cell = WideValue(gradients[2]);
  return result.output.defined() || result.last_hidden.defined() || result.last_cell.defined();
}

RecurrentLayer RecurrentLayerBackward::Layer() {
  const auto unpacked = [&](Slot slot) { return WideValue(inputs_[slot].unpack()); };
  return {.kind = kind_,
          .input = BatchFirst(unpacked(kInput)),
          .input_weight = unpacked(kInputWeight),
          .hidden_weight = unpacked(kHiddenWeight),
          .input_bias = unpacked(kInputBias),
          .hidden_bias = unpacked(kHiddenBias),
          .first_hidden = unpacked(kFirstHidden),
          .first_cell = unpacked(kFirstCell),
          .output = BatchFirst(WideValue(output_.unpack(shared_from_this()))),
          .reverse = reverse_};
}

ag::variable_list RecurrentLayerBackward::apply(ag::variable_list&& gradients) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (at::GradMode::is_enabled()) {
    throw NotPerExample(
        "a recurrent layer has no second derivatives here; use LSTM, GRU or RNN cells in a model "
        "whose loss contains a gradient.");
  }
  ag::variable_list result(kSlots);
  RecurrentOutputGradients arriving;
  if (!ArrivingAt(gradients, arriving)) return result;
  const RecurrentLayer layer = Layer();
  const RecurrentRows rows = RowsOf(layer);
  const RecurrentGradients found = RecurrentBackward(layer, rows, arriving);
  const auto wanted = [&](Slot slot) { return task_should_compute_output(slot); };
  if (wanted(kInput)) result[kInput] = RecurrentInputGradient(layer, found).transpose(0, 1);
  if (wanted(kInputWeight)) result[kInputWeight] = found.input_gates.t().mm(rows.input);
  if (wanted(kHiddenWeight)) {
    result[kHiddenWeight] = found.hidden_gates.t().mm(rows.previous_hidden);
  }
  if (wanted(kInputBias)) result[kInputBias] = found.input_gates.sum(0);
  if (wanted(kHiddenBias)) result[kHiddenBias] = found.hidden_gates.sum(0);
  if (wanted(kFirstHidden)) result[kFirstHidden] = found.first_hidden;
  if (wanted(kFirstCell)) result[kFirstCell] = found.first_cell;
  return result;
}

void RecurrentLayerBackward::release_variables() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (ag::SavedVariable& input : inputs_) input.reset_data();
  output_.reset_data();
}

std::string RecurrentLayerBackward::name() const {
  switch (kind_) {
    case RecurrentKind::kLstm:
      return "LstmLayerBackward";
    case RecurrentKind::kGru:
      return "GruLayerBackward";
    case RecurrentKind::kReluRnn:
    case RecurrentKind::kTanhRnn:
      break;
  }
  return "RnnLayerBackward";
}

bool HasRecurrentLayers(const RecurrentCall& call) {
  const RecurrentArguments& arguments = call.arguments;
  const std::int64_t stacked = arguments.layers * (arguments.bidirectional ? 2 : 1);
  const at::Tensor& input = call.input;
  const auto fits = [&](const at::Tensor& tensor) {
    return tensor.scalar_type() == input.scalar_type() && tensor.layout() == at::kStrided &&
           !isolated::HasForwardDerivative(tensor);
  };
  const auto is_state = [&](const at::Tensor& state) {
    return fits(state) && state.dim() == 3 && state.size(0) == stacked &&
           state.size(1) == input.size(1);
  };
  if (!input.is_floating_point() || input.dim() != 3 || input.numel() == 0 || !fits(input)) {
    return false;
  }
  if (!is_state(call.hidden) || (call.cell.defined() && !is_state(call.cell))) return false;
  // A projection is one weight more.
  if (static_cast<std::int64_t>(arguments.weights.size()) != stacked * WeightsOfLayer(arguments)) {
    return false;
  }
  for (const at::Tensor& weight : arguments.weights) {
    if (!weight.defined() || !fits(weight)) return false;
  }
  return true;
}

RecurrentOutputs RecurrentLayers(const RecurrentCall& call) {
  const RecurrentArguments& arguments = call.arguments;
  const std::int64_t directions = arguments.bidirectional ? 2 : 1;
  RecurrentOutputs result;
  std::vector<at::Tensor> hidden;
  std::vector<at::Tensor> cells;
  hidden.reserve(static_cast<std::size_t>(arguments.layers * directions));
  cells.reserve(static_cast<std::size_t>(arguments.layers * directions));
  result.output = call.input;
  for (std::int64_t layer = 0; layer < arguments.layers; ++layer) {
    std::vector<at::Tensor> outputs;
    outputs.reserve(static_cast<std::size_t>(directions));
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      const std::int64_t index = layer * directions + direction;
      LayerInputs inputs;
      inputs[Slot::kInput] = result.output;
      const auto first = static_cast<std::size_t>(index * WeightsOfLayer(arguments));
      for (std::size_t k = 0; k < static_cast<std::size_t>(WeightsOfLayer(arguments)); ++k) {
        inputs[Slot::kInputWeight + k] = arguments.weights[first + k];
      }
      inputs[Slot::kFirstHidden] = call.hidden.select(0, index);
      if (call.cell.defined()) inputs[Slot::kFirstCell] = call.cell.select(0, index);
      RecurrentOutputs one = Record(call.kind, direction == 1, inputs);
      outputs.push_back(std::move(one.output));
      hidden.push_back(std::move(one.hidden));
      cells.push_back(std::move(one.cell));
    }
    result.output = directions == 1 ? outputs.front() : at::cat(outputs, 2);
    if (arguments.dropout > 0 && layer + 1 < arguments.layers) {
      result.output = at::dropout(result.output, arguments.dropout, arguments.train);
    }
  }
  result.hidden = at::stack(hidden);
  if (call.cell.defined()) result.cell = at::stack(cells);
  return result;
}

}  // namespace sordino
