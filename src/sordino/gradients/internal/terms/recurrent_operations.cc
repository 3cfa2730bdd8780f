// The backward passes of recurrent layers on any device: with operations of libtorch, and of LSTM
// with kernels that are given.
//
// A step is linear in the gradients that arrive at it: entry by entry, the gradients of its gates
// are factors times dL/dh_s and, in an LSTM, dL/dc_s. All factors of all steps are computed at once
// in front of the loop; the loop multiplies them in place and takes one product with W_hh a step.
#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/zeros.h>

#include <cstdint>

#include "sordino/gradients/internal/terms/recurrent_layer.h"
#include "sordino/kernels/lstm_kernels.h"

namespace sordino {
namespace {

// A state, or its gradient, before and after every step, in the order of the input.
class States {
 public:
  States(std::int64_t batch, std::int64_t time, std::int64_t hidden, bool reverse,
         const at::TensorOptions& options)
      : all_(at::empty({batch, time + 1, hidden}, options)), time_(time), reverse_(reverse) {}

  // [batch, time, hidden]
  at::Tensor Before() const { return all_.narrow(1, reverse_ ? 1 : 0, time_); }
  at::Tensor After() const { return all_.narrow(1, reverse_ ? 0 : 1, time_); }
  // [batch, time + 1, hidden]
  const at::Tensor& All() const { return all_; }
  // [batch, hidden]
  at::Tensor First() const { return all_.select(1, reverse_ ? time_ : 0); }
  at::Tensor Last() const { return all_.select(1, reverse_ ? 0 : time_); }

 private:
  at::Tensor all_;
  std::int64_t time_;
  bool reverse_;
};

struct Sequences {
  std::int64_t batch;
  std::int64_t time;
  std::int64_t hidden;
  bool reverse;
  at::TensorOptions options;

  Sequences(const RecurrentLayer& layer, const RecurrentRows& rows)
      : batch(layer.first_hidden.size(0)),
        time(rows.input.size(0) / batch),
        hidden(layer.hidden_weight.size(1)),
        reverse(layer.reverse),
        options(rows.input.options()) {}

  std::int64_t Place(std::int64_t step) const { return reverse ? time - 1 - step : step; }
  States MakeStates() const { return {batch, time, hidden, reverse, options}; }
  // [batch * time, blocks * hidden] as [batch, time, blocks, hidden]
  at::Tensor Blocks(const at::Tensor& rows) const { return rows.view({batch, time, -1, hidden}); }
  // Blocks [begin, begin + count) of all steps as rows.
  at::Tensor RowsOfBlocks(const at::Tensor& blocks, std::int64_t begin, std::int64_t count) const {
    return blocks.narrow(2, begin, count).reshape({batch * time, count * hidden});
  }
};

// dL/dh of all steps without what comes back from later ones.
States HiddenGradients(const Sequences& sequences, const RecurrentOutputGradients& arriving) {
  States hidden = sequences.MakeStates();
  hidden.First().zero_();
  if (arriving.output.defined()) {
    hidden.After().copy_(arriving.output);
  } else {
    hidden.After().zero_();
  }
  if (arriving.last_hidden.defined()) hidden.Last().add_(arriving.last_hidden);
  return hidden;
}

// The cells before and after all steps.
States RecomputedCells(const Sequences& sequences, const at::Tensor& first_cell,
                       const at::Tensor& gates) {
  States cells = sequences.MakeStates();
  cells.First().copy_(first_cell);
  const at::Tensor forget = gates.select(2, 1);
  const at::Tensor entering = gates.select(2, 0) * gates.select(2, 2);
  const at::Tensor before = cells.Before();
  const at::Tensor after = cells.After();
  for (std::int64_t step = 0; step < sequences.time; ++step) {
    const std::int64_t place = sequences.Place(step);
    at::Tensor cell = after.select(1, place);
    at::addcmul_out(cell, entering.select(1, place), forget.select(1, place),
                    before.select(1, place));
  }
  return cells;
}

struct LstmFactors {
  at::Tensor gates;    // [batch, time, 5, hidden]: of dL/dc: c_{s-1}, i, f, g; of dL/dh: o
  at::Tensor through;  // [batch, time, hidden]: dc_s/dh_s, what dL/dh adds to dL/dc
};

LstmFactors FactorsOfLstm(const Sequences& sequences, const RecurrentLayer& layer,
                          const RecurrentRows& rows) {
  const at::Tensor gates = sequences.Blocks(RecurrentPreactivations(layer, rows));
  gates.narrow(2, 0, 2).sigmoid_();
  gates.select(2, 2).tanh_();
  gates.select(2, 3).sigmoid_();
  const at::Tensor i = gates.select(2, 0);
  const at::Tensor f = gates.select(2, 1);
  const at::Tensor g = gates.select(2, 2);
  const at::Tensor o = gates.select(2, 3);
  const States cells = RecomputedCells(sequences, layer.first_cell, gates);
  const at::Tensor tanh_cells = at::tanh(cells.After());

  LstmFactors factors;
  factors.gates =
      at::empty({sequences.batch, sequences.time, 5, sequences.hidden}, sequences.options);
  const auto block = [&](std::int64_t k) { return factors.gates.select(2, k); };
  block(0).copy_(f);
  block(1).copy_(at::sigmoid_backward(g, i));
  block(2).copy_(at::sigmoid_backward(cells.Before(), f));
  block(3).copy_(at::tanh_backward(i, g));
  block(4).copy_(at::sigmoid_backward(tanh_cells, o));
  factors.through = at::tanh_backward(o, tanh_cells);
  return factors;
}

RecurrentGradients LstmByOperations(const RecurrentLayer& layer, const RecurrentRows& rows,
                                    const RecurrentOutputGradients& arriving) {
  const Sequences sequences(layer, rows);
  const LstmFactors factors = FactorsOfLstm(sequences, layer, rows);
  const States hidden = HiddenGradients(sequences, arriving);
  const at::Tensor before = hidden.Before();
  const at::Tensor after = hidden.After();
  at::Tensor d_cell = arriving.last_cell.defined()
                          ? arriving.last_cell
                          : at::zeros({sequences.batch, sequences.hidden}, sequences.options);
  for (std::int64_t step = sequences.time - 1; step >= 0; --step) {
    const std::int64_t place = sequences.Place(step);
    const at::Tensor d_hidden = after.select(1, place);
    const at::Tensor blocks = factors.gates.select(1, place);  // [batch, 5, hidden]
    const at::Tensor whole = at::addcmul(d_cell, d_hidden, factors.through.select(1, place));
    blocks.narrow(1, 0, 4).mul_(whole.unsqueeze(1));
    blocks.select(1, 4).mul_(d_hidden);
    d_cell = blocks.select(1, 0);
    before.select(1, place).addmm_(
        blocks.flatten(1).narrow(1, sequences.hidden, 4 * sequences.hidden), layer.hidden_weight);
  }
  const at::Tensor gates = sequences.RowsOfBlocks(factors.gates, 1, 4);
  return {gates, gates, hidden.First().clone(), d_cell.clone()};
}

// [batch, time, 5, hidden], all of dL/dh: h_{s-1} (past the gates), r, z, n behind W_hh, n.
at::Tensor FactorsOfGru(const Sequences& sequences, const RecurrentLayer& layer,
                        const RecurrentRows& rows) {
  const auto product = [&](const at::Tensor& bias, const at::Tensor& x, const at::Tensor& weight) {
    return sequences.Blocks(bias.defined() ? at::addmm(bias, x, weight.t())
                                           : at::mm(x, weight.t()));
  };
  const at::Tensor of_input = product(layer.input_bias, rows.input, layer.input_weight);
  const at::Tensor of_hidden =
      product(layer.hidden_bias, rows.previous_hidden, layer.hidden_weight);
  const at::Tensor gates = (of_input.narrow(2, 0, 2) + of_hidden.narrow(2, 0, 2)).sigmoid_();
  const at::Tensor r = gates.select(2, 0);
  const at::Tensor z = gates.select(2, 1);
  const at::Tensor hidden_n = of_hidden.select(2, 2);
  const at::Tensor n = at::addcmul(of_input.select(2, 2), r, hidden_n).tanh_();
  const at::Tensor previous =
      rows.previous_hidden.view({sequences.batch, sequences.time, sequences.hidden});
  const at::Tensor of_n = at::tanh_backward(1 - z, n);

  at::Tensor factors =
      at::empty({sequences.batch, sequences.time, 5, sequences.hidden}, sequences.options);
  const auto block = [&](std::int64_t k) { return factors.select(2, k); };
  block(0).copy_(z);
  block(1).copy_(at::sigmoid_backward(of_n * hidden_n, r));
  block(2).copy_(at::sigmoid_backward(previous - n, z));
  block(3).copy_(of_n * r);
  block(4).copy_(of_n);
  return factors;
}

RecurrentGradients GruByOperations(const RecurrentLayer& layer, const RecurrentRows& rows,
                                   const RecurrentOutputGradients& arriving) {
  const Sequences sequences(layer, rows);
  const at::Tensor factors = FactorsOfGru(sequences, layer, rows);
  const States hidden = HiddenGradients(sequences, arriving);
  const at::Tensor before = hidden.Before();
  const at::Tensor after = hidden.After();
  for (std::int64_t step = sequences.time - 1; step >= 0; --step) {
    const std::int64_t place = sequences.Place(step);
    const at::Tensor blocks = factors.select(1, place);  // [batch, 5, hidden]
    blocks.mul_(after.select(1, place).unsqueeze(1));
    const at::Tensor d_previous = before.select(1, place);
    d_previous.add_(blocks.select(1, 0));
    d_previous.addmm_(blocks.flatten(1).narrow(1, sequences.hidden, 3 * sequences.hidden),
                      layer.hidden_weight);
  }
  const at::Tensor of_input = at::cat({factors.narrow(2, 1, 2), factors.narrow(2, 4, 1)}, 2)
                                  .view({sequences.batch * sequences.time, 3 * sequences.hidden});
  return {of_input, sequences.RowsOfBlocks(factors, 1, 3), hidden.First().clone(), {}};
}

RecurrentGradients RnnByOperations(const RecurrentLayer& layer, const RecurrentRows& rows,
                                   const RecurrentOutputGradients& arriving) {
  const Sequences sequences(layer, rows);
  const at::Tensor entering = RecurrentPreactivations(layer, rows);
  const at::Tensor gates = layer.kind == RecurrentKind::kTanhRnn
                               ? 1 - entering.tanh_().square_()
                               : entering.gt(0).to(entering.scalar_type());
  const at::Tensor steps = gates.view({sequences.batch, sequences.time, sequences.hidden});
  const States hidden = HiddenGradients(sequences, arriving);
  const at::Tensor before = hidden.Before();
  const at::Tensor after = hidden.After();
  for (std::int64_t step = sequences.time - 1; step >= 0; --step) {
    const std::int64_t place = sequences.Place(step);
    const at::Tensor of_step = steps.select(1, place);
    of_step.mul_(after.select(1, place));
    before.select(1, place).addmm_(of_step, layer.hidden_weight);
  }
  return {gates, gates, hidden.First().clone(), {}};
}

}  // namespace

RecurrentGradients LstmBackwardByKernels(const RecurrentLayer& layer, const RecurrentRows& rows,
                                         const RecurrentOutputGradients& arriving,
                                         const LstmKernels& kernels) {
  const Sequences sequences(layer, rows);
  const at::Tensor gates = RecurrentPreactivations(layer, rows);
  const States cells = sequences.MakeStates();
  cells.First().copy_(layer.first_cell);
  const States hidden = HiddenGradients(sequences, arriving);
  const at::Tensor d_cell = arriving.last_cell.defined()
                                ? arriving.last_cell.clone(at::MemoryFormat::Contiguous)
                                : at::zeros({sequences.batch, sequences.hidden}, sequences.options);
  const LstmBuffers buffers{sequences.Blocks(gates), cells.All(), hidden.All(), d_cell,
                            sequences.reverse};
  kernels.Open(buffers);
  const at::Tensor steps = gates.view({sequences.batch, sequences.time, -1});
  const at::Tensor before = hidden.Before();
  for (std::int64_t step = sequences.time - 1; step >= 0; --step) {
    const std::int64_t place = sequences.Place(step);
    kernels.StepBack(buffers, place);
    before.select(1, place).addmm_(steps.select(1, place), layer.hidden_weight);
  }
  return {gates, gates, hidden.First().clone(), d_cell};
}

RecurrentGradients RecurrentBackwardByOperations(const RecurrentLayer& layer,
                                                 const RecurrentRows& rows,
                                                 const RecurrentOutputGradients& arriving) {
  switch (layer.kind) {
    case RecurrentKind::kLstm:
      return LstmByOperations(layer, rows, arriving);
    case RecurrentKind::kGru:
      return GruByOperations(layer, rows, arriving);
    case RecurrentKind::kReluRnn:
    case RecurrentKind::kTanhRnn:
      break;
  }
  return RnnByOperations(layer, rows, arriving);
}

}  // namespace sordino
