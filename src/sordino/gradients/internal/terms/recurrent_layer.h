// The backward pass of one direction of one LSTM layer, with the gradients of the gates as outputs.
//
// With processing order s = 1..time (the reverse direction runs from the last time step to the
// first; * is the entry-wise product and sigma the logistic function), Hochreiter and Schmidhuber
// (1997) with the forget gate of Gers, Schmidhuber and Cummins (2000), in the order of libtorch's
// weights i, f, g, o:
//
//   [a_i, a_f, a_g, a_o] = W_ih x_s + b_ih + W_hh h_{s-1} + b_hh
//   i = sigma(a_i)   f = sigma(a_f)   g = tanh(a_g)   o = sigma(a_o)
//   c_s = f * c_{s-1} + i * g         h_s = o * tanh(c_s)
//
// and with delta_s = dL/d[a_i, a_f, a_g, a_o] the gradients of the weights are sums of outer
// products over time and batch: dW_ih = sum delta_s x_s^T, dW_hh = sum delta_s h_{s-1}^T and
// db_ih = db_hh = sum delta_s. libtorch's fused layer gives these sums only; per example they need
// the rows of delta. Since all h_s are known (they are the output of the layer), all gates come
// back from two large products, and only the entry-wise recurrence of the cells runs over time
// again; backward, each step takes one product with W_hh.
//
// Rows lie sequence by sequence, batch * time of them. float32 and float64 on the CPU. An example's
// rows never meet another's: a sequence with infinities in it leaves the rest of the batch alone.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_LAYER_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_LAYER_H_

#include <ATen/core/Tensor.h>

namespace sordino {

// A layer after its forward pass: tensors of one type, without autograd history.
struct LstmLayer {
  at::Tensor input;          // [batch, time, features]
  at::Tensor input_weight;   // W_ih [4 hidden, features]
  at::Tensor hidden_weight;  // W_hh [4 hidden, hidden]
  at::Tensor bias;           // b_ih + b_hh [4 hidden]; undefined for none
  at::Tensor first_hidden;   // h_0 [batch, hidden]
  at::Tensor first_cell;     // c_0 [batch, hidden]
  at::Tensor output;         // [batch, time, hidden], in the order of the input
  bool reverse = false;
};

// What the rows of delta are multiplied with.
struct LstmRows {
  at::Tensor input;            // x_s [batch * time, features]
  at::Tensor previous_hidden;  // h_{s-1} [batch * time, hidden]
};
LstmRows RowsOf(const LstmLayer& layer);

// What arrives at the outputs of a layer; any of them may be undefined, which means zero.
struct LstmOutputGradients {
  at::Tensor output;       // [batch, time, hidden]
  at::Tensor last_hidden;  // [batch, hidden]
  at::Tensor last_cell;    // [batch, hidden]
};

struct LstmGradients {
  at::Tensor gates;         // delta [batch * time, 4 hidden], in the order of the input
  at::Tensor first_hidden;  // dL/dh_0 [batch, hidden]
  at::Tensor first_cell;    // dL/dc_0 [batch, hidden]
};

// Takes of the layer the weights, the bias and the first states.
LstmGradients LstmBackward(const LstmLayer& layer, const LstmRows& rows,
                           const LstmOutputGradients& arriving);

// dL/dinput [batch, time, features]; takes of the layer what LstmBackward takes.
at::Tensor LstmInputGradient(const LstmLayer& layer, const LstmGradients& gradients);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_RECURRENT_LAYER_H_
