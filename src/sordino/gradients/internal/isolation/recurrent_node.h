// Recurrent layers as nodes of our own: one for each layer and direction.
//
// cuDNN runs all layers as one node that keeps what it saved to itself, oneDNN runs a layer as a
// node that hands out sums over the batch, and elsewhere libtorch records every step. Here the
// forward pass of a layer is theirs (cuDNN's on CUDA, oneDNN's for LSTM on the CPU), without a
// graph; what is kept are its input, its weights and its output, and the backward pass is ours
// (recurrent_layer.h).
#ifndef SORDINO_GRADIENTS_INTERNAL_ISOLATION_RECURRENT_NODE_H_
#define SORDINO_GRADIENTS_INTERNAL_ISOLATION_RECURRENT_NODE_H_

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "sordino/gradients/internal/terms/recurrent_layer.h"

namespace sordino {

// Outputs: [time, batch, hidden], the last hidden state [batch, hidden], and the last cell of an
// LSTM.
class RecurrentLayerBackward : public torch::autograd::Node {
 public:
  // Inputs, in the order of the edges.
  enum Slot : std::size_t {
    kInput = 0,  // [time, batch, features]
    kInputWeight = 1,
    kHiddenWeight = 2,
    kInputBias = 3,
    kHiddenBias = 4,
    kFirstHidden = 5,
    kFirstCell = 6,
    kSlots = 7,
  };
  static bool IsWeight(std::size_t slot) { return slot >= kInputWeight && slot <= kHiddenBias; }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
  void release_variables() override;
  std::string name() const override;

  // What was saved, as recurrent_layer.h takes it.
  RecurrentLayer Layer();

  RecurrentKind kind_ = RecurrentKind::kLstm;
  bool reverse_ = false;
  std::array<torch::autograd::SavedVariable, kSlots> inputs_;
  torch::autograd::SavedVariable output_;
};

// What arrives at the outputs of a node, as recurrent_layer.h takes it. False when nothing does.
bool ArrivingAt(const torch::autograd::variable_list& gradients, RecurrentOutputGradients& result);

// The arguments of at::lstm, at::gru and at::rnn_* that say what the layers are.
struct RecurrentArguments {
  at::TensorList weights;
  bool has_biases = true;
  std::int64_t layers = 1;
  double dropout = 0;
  bool train = false;
  bool bidirectional = false;
};

struct RecurrentCall {
  RecurrentKind kind = RecurrentKind::kLstm;
  at::Tensor input;   // [time, batch, features]
  at::Tensor hidden;  // [layers * directions, batch, hidden]
  at::Tensor cell;    // the same, of an LSTM
  RecurrentArguments arguments;
};

struct RecurrentOutputs {
  at::Tensor output;
  at::Tensor hidden;
  at::Tensor cell;
};

// Whether RecurrentLayers does for these tensors what libtorch would: real numbers of one type, no
// projections, and no derivatives in forward mode.
bool HasRecurrentLayers(const RecurrentCall& call);

// Plain tensors; recorded like any operation.
RecurrentOutputs RecurrentLayers(const RecurrentCall& call);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ISOLATION_RECURRENT_NODE_H_
