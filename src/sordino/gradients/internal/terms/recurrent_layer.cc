#include "sordino/gradients/internal/terms/recurrent_layer.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>

#include <cstdint>

#include "sordino/base/check.h"
#include "sordino/gradients/parallel_shares.h"

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
at::Tensor Gates(const LstmLayer& layer, const LstmRows& rows) {
  const std::int64_t hidden = layer.hidden_weight.size(1);
  at::Tensor gates = layer.bias.defined()
                         ? at::addmm(layer.bias, rows.input, layer.input_weight.t())
                         : at::mm(rows.input, layer.input_weight.t());
  gates.addmm_(rows.previous_hidden, layer.hidden_weight.t());
  gates.narrow(1, 0, 2 * hidden).sigmoid_();
  gates.narrow(1, 2 * hidden, hidden).tanh_();
  gates.narrow(1, 3 * hidden, hidden).sigmoid_();
  return gates;
}

// The cells [batch, time + 1, hidden] in the order of the steps, c_0 first.
template <typename Real>
at::Tensor Cells(const LstmLayer& layer, const at::Tensor& gates, Extent extent) {
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
    const Real i = gate[k];
    const Real f = gate[hidden + k];
    const Real g = gate[2 * hidden + k];
    const Real o = gate[3 * hidden + k];
    const Real d_h = d_output[k] + d_hidden[k];
    const Real d_c = d_cell[k] + d_h * o * (1 - tanh_cell[k] * tanh_cell[k]);
    gate[k] = d_c * g * (i * (1 - i));
    gate[hidden + k] = d_c * cell_before[k] * (f * (1 - f));
    gate[2 * hidden + k] = d_c * i * (1 - g * g);
    gate[3 * hidden + k] = d_h * tanh_cell[k] * (o * (1 - o));
    d_cell[k] = d_c * f;
  }
}

template <typename Real>
LstmGradients Backward(const LstmLayer& layer, const LstmRows& rows,
                       const LstmOutputGradients& arriving) {
  const std::int64_t batch = layer.first_hidden.size(0);
  const Extent extent{batch, rows.input.size(0) / batch, layer.hidden_weight.size(1),
                      layer.reverse};
  LstmGradients result;
  result.gates = Gates(layer, rows);
  const auto state = [&](const at::Tensor& gradient) {
    return gradient.defined() ? gradient.clone(at::MemoryFormat::Contiguous)
                              : at::zeros({extent.batch, extent.hidden}, result.gates.options());
  };
  result.first_hidden = state(arriving.last_hidden);
  result.first_cell = state(arriving.last_cell);
  const at::Tensor cells = Cells<Real>(layer, result.gates, extent);
  const at::Tensor tanh_cells = at::tanh(cells);
  const OutputRows<Real> d_output(arriving.output, extent, result.gates.options());

  const at::Tensor by_time = result.gates.view({extent.batch, extent.time, -1});
  const Real* all_cells = cells.const_data_ptr<Real>();
  const Real* all_tanh = tanh_cells.const_data_ptr<Real>();
  Real* all_gates = result.gates.mutable_data_ptr<Real>();
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
  return result;
}

}  // namespace

LstmRows RowsOf(const LstmLayer& layer) {
  const std::int64_t time = layer.output.size(1);
  at::Tensor previous = at::empty(layer.output.sizes(), layer.output.options());
  previous.select(1, layer.reverse ? time - 1 : 0).copy_(layer.first_hidden);
  previous.narrow(1, layer.reverse ? 0 : 1, time - 1)
      .copy_(layer.output.narrow(1, layer.reverse ? 1 : 0, time - 1));
  return {layer.input.contiguous().flatten(0, 1), previous.flatten(0, 1)};
}

LstmGradients LstmBackward(const LstmLayer& layer, const LstmRows& rows,
                           const LstmOutputGradients& arriving) {
  SORDINO_CHECK(rows.input.is_cpu(), "the kernel is for the CPU");
  if (rows.input.scalar_type() == at::kDouble) return Backward<double>(layer, rows, arriving);
  return Backward<float>(layer, rows, arriving);
}

at::Tensor LstmInputGradient(const LstmLayer& layer, const LstmGradients& gradients) {
  return at::mm(gradients.gates, layer.input_weight)
      .view({layer.first_hidden.size(0), -1, layer.input_weight.size(1)});
}

}  // namespace sordino
