// The backward pass of one direction of one recurrent layer, with the gradients of the gates as
// outputs.
//
// With processing order s = 1..time (the reverse direction runs from the last time step to the
// first; * is the entry-wise product and sigma the logistic function), in the order of libtorch's
// weights:
//
//   LSTM (Hochreiter and Schmidhuber 1997; forget gate: Gers, Schmidhuber and Cummins 2000)
//     [a_i, a_f, a_g, a_o] = W_ih x_s + b_ih + W_hh h_{s-1} + b_hh
//     i = sigma(a_i)   f = sigma(a_f)   g = tanh(a_g)   o = sigma(a_o)
//     c_s = f * c_{s-1} + i * g         h_s = o * tanh(c_s)
//   GRU (Cho et al. 2014, with the reset gate after the product)
//     [p_r, p_z, p_n] = W_ih x_s + b_ih     [q_r, q_z, q_n] = W_hh h_{s-1} + b_hh
//     r = sigma(p_r + q_r)   z = sigma(p_z + q_z)   n = tanh(p_n + r * q_n)
//     h_s = (1 - z) * n + z * h_{s-1}
//   RNN (Elman 1990)
//     h_s = tanh or relu of W_ih x_s + b_ih + W_hh h_{s-1} + b_hh
//
// The gradients of the weights are sums of outer products over time and batch: with delta_s the
// gradient of what W_ih x_s is added to and epsilon_s that of what W_hh h_{s-1} is added to,
// dW_ih = sum delta_s x_s^T, db_ih = sum delta_s, dW_hh = sum epsilon_s h_{s-1}^T and
// db_hh = sum epsilon_s; delta = epsilon but for n of a GRU. Fused layers give these sums only; per
// example they need the rows of delta and epsilon. Since all h_s are known (they are the output of
// the layer), all gates come back from two large products, and only the entry-wise recurrence of
// the cells runs over time again; backward, each step takes one product with W_hh.
//
// Rows lie sequence by sequence, batch * time of them. float32 and float64. An example's rows never
// meet another's: a sequence with infinities in it leaves the rest of the batch alone.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_LAYER_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_LAYER_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sordino {

// The numbers are those of libtorch's operation for cuDNN.
enum class RecurrentKind : std::int64_t { kReluRnn = 0, kTanhRnn = 1, kLstm = 2, kGru = 3 };

// A layer after its forward pass: tensors of one type, without autograd history.
struct RecurrentLayer {
  RecurrentKind kind = RecurrentKind::kLstm;
  at::Tensor input;          // [batch, time, features]
  at::Tensor input_weight;   // W_ih [gates * hidden, features]
  at::Tensor hidden_weight;  // W_hh [gates * hidden, hidden]
  at::Tensor input_bias;     // b_ih [gates * hidden]; undefined for none
  at::Tensor hidden_bias;    // b_hh, there where b_ih is
  at::Tensor first_hidden;   // h_0 [batch, hidden]
  at::Tensor first_cell;     // c_0 [batch, hidden] of an LSTM
  at::Tensor output;         // [batch, time, hidden], in the order of the input
  bool reverse = false;
};

// What the rows of delta and epsilon are multiplied with.
struct RecurrentRows {
  at::Tensor input;            // x_s [batch * time, features]
  at::Tensor previous_hidden;  // h_{s-1} [batch * time, hidden]
};
RecurrentRows RowsOf(const RecurrentLayer& layer);

// What arrives at the outputs of a layer; any of them may be undefined, which means zero.
struct RecurrentOutputGradients {
  at::Tensor output;       // [batch, time, hidden]
  at::Tensor last_hidden;  // [batch, hidden]
  at::Tensor last_cell;    // [batch, hidden]
};

struct RecurrentGradients {
  at::Tensor input_gates;   // delta [batch * time, gates * hidden], in the order of the input
  at::Tensor hidden_gates;  // epsilon; the same tensor where they are equal
  at::Tensor first_hidden;  // dL/dh_0 [batch, hidden]
  at::Tensor first_cell;    // dL/dc_0 [batch, hidden] of an LSTM
};

// Takes of the layer the weights, the biases and the first states.
RecurrentGradients RecurrentBackward(const RecurrentLayer& layer, const RecurrentRows& rows,
                                     const RecurrentOutputGradients& arriving);

// The same with nothing but operations of libtorch, on any device: few launches a step, nothing
// that waits for the device, and shapes that depend on shapes alone.
RecurrentGradients RecurrentBackwardByOperations(const RecurrentLayer& layer,
                                                 const RecurrentRows& rows,
                                                 const RecurrentOutputGradients& arriving);

// The same of an LSTM, with kernels for the device of the tensors.
class LstmKernels;
RecurrentGradients LstmBackwardByKernels(const RecurrentLayer& layer, const RecurrentRows& rows,
                                         const RecurrentOutputGradients& arriving,
                                         const LstmKernels& kernels);

// W_ih x + b_ih + W_hh h + b_hh for all rows; not of a GRU.
at::Tensor RecurrentPreactivations(const RecurrentLayer& layer, const RecurrentRows& rows);

// dL/dinput [batch, time, features]; takes of the layer what RecurrentBackward takes.
at::Tensor RecurrentInputGradient(const RecurrentLayer& layer, const RecurrentGradients& gradients);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_LAYER_H_
