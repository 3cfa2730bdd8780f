#include "sordino/gradients/internal/isolation/isolated_recurrence.h"

#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#include <ATen/TensorOperators.h>

#include <cstdint>
#include <initializer_list>
#include <tuple>
#include <vector>

#include "sordino/gradients/internal/isolation/isolated_units.h"
#include "sordino/gradients/internal/isolation/recurrent_node.h"

namespace sordino {
namespace {

using at::Tensor;
using isolated::CurrentLayer;
using isolated::IsOf;
using isolated::IsPlain;
using isolated::Layer;
using isolated::Merge;
using isolated::OptionalTensor;
using isolated::PlainTensors;
using isolated::Split;

bool Joins(const Layer& layer, const Tensor& input, at::TensorList states, at::TensorList params) {
  constexpr std::int64_t kDims = 3;
  if (!IsOf(layer, input) || input.dim() != kDims || !IsPlain(params)) return false;
  for (const Tensor& state : states) {
    if (state.dim() != kDims) return false;
  }
  return true;
}

// Plain tensors, whose batch dimension holds the units.
RecurrentCall MergedCall(const Layer& layer, RecurrentKind kind, const Tensor& input,
                         at::TensorList states, bool batch_first) {
  RecurrentCall call;
  call.kind = kind;
  call.input = Merge(layer, input, batch_first ? 0 : 1);
  if (batch_first) call.input = call.input.transpose(0, 1);
  call.hidden = Merge(layer, states[0], 1).contiguous();
  if (states.size() > 1) call.cell = Merge(layer, states[1], 1).contiguous();
  return call;
}

Tensor SplitOutput(const Layer& layer, const Tensor& output, bool batch_first) {
  return batch_first ? Split(layer, output.transpose(0, 1), 0) : Split(layer, output, 1);
}

std::tuple<Tensor, Tensor, Tensor> Lstm(const Tensor& input, at::TensorList states,
                                        at::TensorList params, bool biases, std::int64_t layers,
                                        double dropout, bool train, bool bidirectional,
                                        bool batch_first) {
  const Layer layer = CurrentLayer();
  if (states.size() != 2 || !Joins(layer, input, states, params)) {
    return at::native::lstm(input, states, params, biases, layers, dropout, train, bidirectional,
                            batch_first);
  }
  const PlainTensors plain;
  RecurrentCall call = MergedCall(layer, RecurrentKind::kLstm, input, states, batch_first);
  call.arguments = {params, biases, layers, dropout, train, bidirectional};
  RecurrentOutputs outputs;
  if (HasRecurrentLayers(call)) {
    outputs = RecurrentLayers(call);
  } else {
    std::tie(outputs.output, outputs.hidden, outputs.cell) =
        at::lstm(call.input, {call.hidden, call.cell}, params, biases, layers, dropout, train,
                 bidirectional, /*batch_first=*/false);
  }
  return {SplitOutput(layer, outputs.output, batch_first), Split(layer, outputs.hidden, 1),
          Split(layer, outputs.cell, 1)};
}

using Recurrence = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, at::TensorList,
                                                  bool, std::int64_t, double, bool, bool, bool);

template <RecurrentKind kKind, Recurrence kMerged, Recurrence kOtherwise>
std::tuple<Tensor, Tensor> Recurrent(const Tensor& input, const Tensor& state,
                                     at::TensorList params, bool biases, std::int64_t layers,
                                     double dropout, bool train, bool bidirectional,
                                     bool batch_first) {
  const Layer layer = CurrentLayer();
  if (!Joins(layer, input, state, params)) {
    return kOtherwise(input, state, params, biases, layers, dropout, train, bidirectional,
                      batch_first);
  }
  const PlainTensors plain;
  RecurrentCall call = MergedCall(layer, kKind, input, state, batch_first);
  call.arguments = {params, biases, layers, dropout, train, bidirectional};
  RecurrentOutputs outputs;
  if (HasRecurrentLayers(call)) {
    outputs = RecurrentLayers(call);
  } else {
    std::tie(outputs.output, outputs.hidden) =
        kMerged(call.input, call.hidden, params, biases, layers, dropout, train, bidirectional,
                /*batch_first=*/false);
  }
  return {SplitOutput(layer, outputs.output, batch_first), Split(layer, outputs.hidden, 1)};
}

bool CellJoins(const Layer& layer, const Tensor& input, at::TensorList states,
               std::initializer_list<const Tensor*> weights,
               std::initializer_list<const OptionalTensor*> biases) {
  if (!IsOf(layer, input) || input.dim() != 2) return false;
  for (const Tensor& state : states) {
    if (state.dim() != 2) return false;
  }
  for (const Tensor* weight : weights) {
    if (!IsPlain(*weight)) return false;
  }
  for (const OptionalTensor* bias : biases) {
    if (!IsPlain(*bias)) return false;
  }
  return true;
}

std::tuple<Tensor, Tensor> LstmCell(const Tensor& input, at::TensorList states, const Tensor& w_ih,
                                    const Tensor& w_hh, const OptionalTensor& b_ih,
                                    const OptionalTensor& b_hh) {
  const Layer layer = CurrentLayer();
  if (!CellJoins(layer, input, states, {&w_ih, &w_hh}, {&b_ih, &b_hh})) {
    return at::native::lstm_cell(input, states, w_ih, w_hh, b_ih, b_hh);
  }
  const PlainTensors plain;
  std::vector<Tensor> merged;
  for (const Tensor& state : states) merged.push_back(Merge(layer, state, 0));
  const auto [hidden, cell] = at::lstm_cell(Merge(layer, input, 0), merged, w_ih, w_hh, b_ih, b_hh);
  return {Split(layer, hidden, 0), Split(layer, cell, 0)};
}

using Cell = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                        const OptionalTensor&, const OptionalTensor&);

template <Cell kMerged, Cell kOtherwise>
Tensor RecurrentCell(const Tensor& input, const Tensor& state, const Tensor& w_ih,
                     const Tensor& w_hh, const OptionalTensor& b_ih, const OptionalTensor& b_hh) {
  const Layer layer = CurrentLayer();
  if (!CellJoins(layer, input, state, {&w_ih, &w_hh}, {&b_ih, &b_hh})) {
    return kOtherwise(input, state, w_ih, w_hh, b_ih, b_hh);
  }
  const PlainTensors plain;
  return Split(layer,
               kMerged(Merge(layer, input, 0), Merge(layer, state, 0), w_ih, w_hh, b_ih, b_hh), 0);
}

}  // namespace

void RegisterRecurrentOperations(torch::Library& rules) {
  rules.impl("lstm.input", Lstm);
  rules.impl("gru.input", Recurrent<RecurrentKind::kGru, at::gru, at::native::gru>);
  rules.impl("rnn_tanh.input",
             Recurrent<RecurrentKind::kTanhRnn, at::rnn_tanh, at::native::rnn_tanh>);
  rules.impl("rnn_relu.input",
             Recurrent<RecurrentKind::kReluRnn, at::rnn_relu, at::native::rnn_relu>);
  rules.impl("lstm_cell", LstmCell);
  rules.impl("gru_cell", RecurrentCell<at::gru_cell, at::native::gru_cell>);
  rules.impl("rnn_tanh_cell", RecurrentCell<at::rnn_tanh_cell, at::native::rnn_tanh_cell>);
  rules.impl("rnn_relu_cell", RecurrentCell<at::rnn_relu_cell, at::native::rnn_relu_cell>);
}

}  // namespace sordino
