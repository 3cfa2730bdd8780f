#include "sordino/gradients/internal/isolation/isolated_recurrence.h"

#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#include <ATen/TensorOperators.h>

#include <cstdint>
#include <initializer_list>
#include <tuple>
#include <vector>

#include "sordino/gradients/internal/isolation/isolated_units.h"

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

std::tuple<Tensor, Tensor, Tensor> Lstm(const Tensor& input, at::TensorList states,
                                        at::TensorList params, bool biases, std::int64_t layers,
                                        double dropout, bool train, bool bidirectional,
                                        bool batch_first) {
  const Layer layer = CurrentLayer();
  if (!Joins(layer, input, states, params)) {
    return at::native::lstm(input, states, params, biases, layers, dropout, train, bidirectional,
                            batch_first);
  }
  const PlainTensors plain;
  const std::int64_t batch = batch_first ? 0 : 1;
  std::vector<Tensor> merged;
  for (const Tensor& state : states) merged.push_back(Merge(layer, state, 1).contiguous());
  const auto [output, hidden, cell] = at::lstm(Merge(layer, input, batch), merged, params, biases,
                                               layers, dropout, train, bidirectional, batch_first);
  return {Split(layer, output, batch), Split(layer, hidden, 1), Split(layer, cell, 1)};
}

using Recurrence = std::tuple<Tensor, Tensor> (*)(const Tensor&, const Tensor&, at::TensorList,
                                                  bool, std::int64_t, double, bool, bool, bool);

template <Recurrence kMerged, Recurrence kOtherwise>
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
  const std::int64_t batch = batch_first ? 0 : 1;
  const auto [output, hidden] = kMerged(Merge(layer, input, batch), Merge(layer, state, 1), params,
                                        biases, layers, dropout, train, bidirectional, batch_first);
  return {Split(layer, output, batch), Split(layer, hidden, 1)};
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
  rules.impl("gru.input", Recurrent<at::gru, at::native::gru>);
  rules.impl("rnn_tanh.input", Recurrent<at::rnn_tanh, at::native::rnn_tanh>);
  rules.impl("rnn_relu.input", Recurrent<at::rnn_relu, at::native::rnn_relu>);
  rules.impl("lstm_cell", LstmCell);
  rules.impl("gru_cell", RecurrentCell<at::gru_cell, at::native::gru_cell>);
  rules.impl("rnn_tanh_cell", RecurrentCell<at::rnn_tanh_cell, at::native::rnn_tanh_cell>);
  rules.impl("rnn_relu_cell", RecurrentCell<at::rnn_relu_cell, at::native::rnn_relu_cell>);
}

}  // namespace sordino
