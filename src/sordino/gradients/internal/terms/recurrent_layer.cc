#include "sordino/gradients/internal/terms/recurrent_layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <cstdint>

#include "sordino/device/parallel_shares.h"
#include "sordino/kernels/lstm_entries.h"
#include "sordino/kernels/lstm_kernels.h"

namespace sordino {
namespace {

struct Extent {
  std::int64_t batch;
  std::int64_t time;
  std::int64_t hidden;
  bool reverse;

  // The place in the sequence that a step of the layer works on.
  std::int64_t At(std::int64_t step) const { return reverse ? time - 1 - step : step; }
};

// The gates of all steps, [batch * time, 4 hidden], after their non-linearities.
at::Tensor Gates(const RecurrentLayer& layer, const RecurrentRows& rows) {
  const std::int64_t hidden = layer.hidden_weight.size(1);
  at::Tensor gates = RecurrentPreactivations(layer, rows);
  gates.narrow(1, 0, 2 * hidden).sigmoid_();
  gates.narrow(1, 2 * hidden, hidden).tanh_();
  gates.narrow(1, 3 * hidden, hidden).sigmoid_();
  return gates;
}

// The cells [batch, time + 1, hidden] in the order of the steps, c_0 first.
template <typename Real>
at::Tensor Cells(const RecurrentLayer& layer, const at::Tensor& gates, Extent extent) {
  const std::int64_t hidden = extent.hidden;
  at::Tensor cells = at::empty({extent.batch, extent.time + 1, hidden}, gates.options());
  cells.select(1, 0).copy_(layer.first_cell);
  const Real* all_gates = gates.const_data_ptr<Real>();
  Real* all_cells = cells.mutable_data_ptr<Real>();
  ParallelShares(extent.batch, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t step = 0; step < extent.time; ++step) {
        const Real* __restrict gate =
            all_gates + (row * extent.time + extent.At(step)) * 4 * hidden;
        const Real* __restrict before = all_cells + (row * (extent.time + 1) + step) * hidden;
        Real* __restrict after = all_cells + (row * (extent.time + 1) + step + 1) * hidden;
        for (std::int64_t k = 0; k < hidden; ++k) {
          after[k] = gate[hidden + k] * before[k] + gate[k] * gate[2 * hidden + k];
        }
      }
    }
  });
  return cells;
}

// The gradient of the output as rows that may repeat in memory: the mean over time hands on one
// row for all steps.
template <typename Real>
struct OutputRows {
  at::Tensor owner;
  const Real* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t time_stride = 0;

  OutputRows(const at::Tensor& gradient, Extent extent, const at::TensorOptions& options) {
    if (gradient.defined()) {
      owner = gradient.stride(2) == 1 ? gradient : gradient.contiguous();
      batch_stride = owner.stride(0);
      time_stride = owner.stride(1);
    } else {
      owner = at::zeros({extent.hidden}, options);
    }
    data = owner.const_data_ptr<Real>();
  }

  const Real* Row(std::int64_t row, std::int64_t time) const {
    return data + row * batch_stride + time * time_stride;
  }
};

// One step of one sequence. `gate` holds i, f, g, o and is left holding their gradients; d_cell
// holds dL/dc_s without what comes through h_s and is left holding the same of the step before.
template <typename Real>
void StepBack(std::int64_t hidden, const Real* __restrict d_output, const Real* __restrict d_hidden,
              const Real* __restrict cell_before, const Real* __restrict tanh_cell,
              Real* __restrict gate, Real* __restrict d_cell) {
  for (std::int64_t k = 0; k < hidden; ++k) {
    LstmEntryBack(d_output[k] + d_hidden[k], cell_before[k], tanh_cell[k], gate[k],
                  gate[hidden + k], gate[2 * hidden + k], gate[3 * hidden + k], d_cell[k]);
  }
}

template <typename Real>
RecurrentGradients LstmBackward(const RecurrentLayer& layer, const RecurrentRows& rows,
                                const RecurrentOutputGradients& arriving) {
  const std::int64_t batch = layer.first_hidden.size(0);
  const Extent extent{batch, rows.input.size(0) / batch, layer.hidden_weight.size(1),
                      layer.reverse};
  RecurrentGradients result;
  const at::Tensor gates = Gates(layer, rows);
  const auto state = [&](const at::Tensor& gradient) {
    return gradient.defined() ? gradient.clone(at::MemoryFormat::Contiguous)
                              : at::zeros({extent.batch, extent.hidden}, gates.options());
  };
  result.first_hidden = state(arriving.last_hidden);
  result.first_cell = state(arriving.last_cell);
  const at::Tensor cells = Cells<Real>(layer, gates, extent);
  const at::Tensor tanh_cells = at::tanh(cells);
  const OutputRows<Real> d_output(arriving.output, extent, gates.options());

  const at::Tensor by_time = gates.view({extent.batch, extent.time, -1});
  const Real* all_cells = cells.const_data_ptr<Real>();
  const Real* all_tanh = tanh_cells.const_data_ptr<Real>();
  Real* all_gates = gates.mutable_data_ptr<Real>();
  Real* d_hidden = result.first_hidden.mutable_data_ptr<Real>();
  Real* d_cell = result.first_cell.mutable_data_ptr<Real>();
  // Sequences do not meet, so a thread computes all steps of its own without waiting.
  ParallelShares(extent.batch, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t hidden = extent.hidden;
    const at::Tensor own_gates = by_time.narrow(0, begin, end - begin);
    at::Tensor own_d_hidden = result.first_hidden.narrow(0, begin, end - begin);
    for (std::int64_t step = extent.time - 1; step >= 0; --step) {
      const std::int64_t time = extent.At(step);
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t before = (row * (extent.time + 1) + step) * hidden;
        StepBack<Real>(hidden, d_output.Row(row, time), d_hidden + row * hidden, all_cells + before,
                       all_tanh + before + hidden,
                       all_gates + (row * extent.time + time) * 4 * hidden, d_cell + row * hidden);
      }
      at::mm_out(own_d_hidden, own_gates.select(1, time), layer.hidden_weight);
    }
  });
  result.input_gates = gates;
  result.hidden_gates = gates;
  return result;
}

}  // namespace

RecurrentRows RowsOf(const RecurrentLayer& layer) {
  const std::int64_t time = layer.output.size(1);
  at::Tensor previous = at::empty(layer.output.sizes(), layer.output.options());
  previous.select(1, layer.reverse ? time - 1 : 0).copy_(layer.first_hidden);
  previous.narrow(1, layer.reverse ? 0 : 1, time - 1)
      .copy_(layer.output.narrow(1, layer.reverse ? 1 : 0, time - 1));
  return {layer.input.contiguous().flatten(0, 1), previous.flatten(0, 1)};
}

at::Tensor RecurrentPreactivations(const RecurrentLayer& layer, const RecurrentRows& rows) {
  const at::Tensor weight = layer.input_weight.t();
  at::Tensor result = layer.input_bias.defined()
                          ? at::addmm(layer.input_bias + layer.hidden_bias, rows.input, weight)
                          : at::mm(rows.input, weight);
  return result.addmm_(rows.previous_hidden, layer.hidden_weight.t());
}

RecurrentGradients RecurrentBackward(const RecurrentLayer& layer, const RecurrentRows& rows,
                                     const RecurrentOutputGradients& arriving) {
  const bool is_lstm = layer.kind == RecurrentKind::kLstm;
  const LstmKernels* kernels = is_lstm ? LstmKernelsFor(rows.input.device()) : nullptr;
  if (kernels != nullptr) return LstmBackwardByKernels(layer, rows, arriving, *kernels);
  if (!is_lstm || !rows.input.is_cpu()) return RecurrentBackwardByOperations(layer, rows, arriving);
  if (rows.input.scalar_type() == at::kDouble) return LstmBackward<double>(layer, rows, arriving);
  return LstmBackward<float>(layer, rows, arriving);
}

at::Tensor RecurrentInputGradient(const RecurrentLayer& layer,
                                  const RecurrentGradients& gradients) {
  return at::mm(gradients.input_gates, layer.input_weight)
      .view({layer.first_hidden.size(0), -1, layer.input_weight.size(1)});
}

}  // namespace sordino
