#include "sordino/gradients/recurrent_layer.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros_like.h>

#include <cstdint>

#include "sordino/base/check.h"
#include "sordino/gradients/parallel_shares.h"

namespace sordino {
namespace {

// Time steps in the order in which the layer ran.
struct Steps {
  std::int64_t time;
  bool reverse;

  std::int64_t At(std::int64_t step) const { return reverse ? time - 1 - step : step; }
};

struct Extent {
  std::int64_t batch;
  std::int64_t hidden;

  std::int64_t states() const { return batch * hidden; }
};

// The gates of all steps, [time * batch, 4 hidden], after their non-linearities.
at::Tensor Gates(const LstmLayer& layer, const at::Tensor& previous_hidden) {
  const std::int64_t hidden = layer.hidden_weight.size(1);
  const at::Tensor input = layer.input.flatten(0, 1);
  at::Tensor gates = layer.bias.defined()
                         ? at::addmm(layer.bias, input, layer.input_weight.t())
                         : at::mm(input, layer.input_weight.t());
  gates.addmm_(previous_hidden, layer.hidden_weight.t());
  gates.narrow(1, 0, 2 * hidden).sigmoid_();
  gates.narrow(1, 2 * hidden, hidden).tanh_();
  gates.narrow(1, 3 * hidden, hidden).sigmoid_();
  return gates;
}

// The cells [time + 1, batch, hidden] in the order of the steps, c_0 first.
template <typename Real>
at::Tensor Cells(const LstmLayer& layer, const at::Tensor& gates, Steps steps, Extent extent) {
  at::Tensor cells =
      at::empty({steps.time + 1, extent.batch, extent.hidden}, layer.first_cell.options());
  cells.select(0, 0).copy_(layer.first_cell);
  const Real* all_gates = gates.const_data_ptr<Real>();
  Real* all_cells = cells.mutable_data_ptr<Real>();
  const std::int64_t hidden = extent.hidden;
  ParallelShares(extent.batch, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t step = 0; step < steps.time; ++step) {
      const Real* gates_now = all_gates + steps.At(step) * 4 * extent.states();
      for (std::int64_t row = begin; row < end; ++row) {
        const Real* __restrict gate = gates_now + row * 4 * hidden;
        const Real* __restrict before = all_cells + step * extent.states() + row * hidden;
        Real* __restrict after = all_cells + (step + 1) * extent.states() + row * hidden;
        for (std::int64_t k = 0; k < hidden; ++k) {
          after[k] = gate[hidden + k] * before[k] + gate[k] * gate[2 * hidden + k];
        }
      }
    }
  });
  return cells;
}

// The gradient of the output as rows that may repeat in memory: the mean over time hands on one
// row for all of its steps.
template <typename Real>
struct OutputRows {
  at::Tensor owner;
  const Real* data = nullptr;
  std::int64_t time_stride = 0;
  std::int64_t batch_stride = 0;

  OutputRows(const at::Tensor& gradient, const LstmLayer& layer) {
    if (gradient.defined()) {
      owner = gradient.stride(2) == 1 ? gradient : gradient.contiguous();
      time_stride = owner.stride(0);
      batch_stride = owner.stride(1);
    } else {
      owner = at::zeros_like(layer.first_hidden);
      batch_stride = owner.stride(0);
    }
    data = owner.const_data_ptr<Real>();
  }

  const Real* Row(std::int64_t time, std::int64_t row) const {
    return data + time * time_stride + row * batch_stride;
  }
};

// One step of one sequence. `gate` holds i, f, g, o and is left holding their gradients; d_cell
// holds dL/dc_s and is left holding dL/dc_{s-1}.
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
LstmGradients Backward(const LstmLayer& layer, const at::Tensor& previous_hidden,
                       const LstmOutputGradients& arriving) {
  const Steps steps{layer.input.size(0), layer.reverse};
  const Extent extent{layer.input.size(1), layer.hidden_weight.size(1)};
  const std::int64_t hidden = extent.hidden;
  const auto state = [&](const at::Tensor& gradient) {
    return gradient.defined() ? gradient.clone(at::MemoryFormat::Contiguous)
                              : at::zeros_like(layer.first_hidden);
  };
  LstmGradients result;
  result.gates = Gates(layer, previous_hidden);
  result.first_hidden = state(arriving.last_hidden);
  result.first_cell = state(arriving.last_cell);
  const at::Tensor cells = Cells<Real>(layer, result.gates, steps, extent);
  const at::Tensor tanh_cells = at::tanh(cells.narrow(0, 1, steps.time));
  const OutputRows<Real> d_output(arriving.output, layer);

  const Real* all_cells = cells.const_data_ptr<Real>();
  const Real* all_tanh = tanh_cells.const_data_ptr<Real>();
  Real* all_gates = result.gates.mutable_data_ptr<Real>();
  Real* d_hidden = result.first_hidden.mutable_data_ptr<Real>();
  Real* d_cell = result.first_cell.mutable_data_ptr<Real>();
  // Sequences do not meet, so a thread takes its own through all steps and waits for nobody.
  ParallelShares(extent.batch, [&](std::int64_t begin, std::int64_t end) {
    at::Tensor own_d_hidden = result.first_hidden.narrow(0, begin, end - begin);
    for (std::int64_t step = steps.time - 1; step >= 0; --step) {
      const std::int64_t time = steps.At(step);
      const std::int64_t first_row = time * extent.batch;
      const std::int64_t first_state = step * extent.states();
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t at = row * hidden;
        StepBack<Real>(hidden, d_output.Row(time, row), d_hidden + at,
                       all_cells + first_state + at, all_tanh + first_state + at,
                       all_gates + (first_row + row) * 4 * hidden, d_cell + at);
      }
      at::mm_out(own_d_hidden, result.gates.narrow(0, first_row + begin, end - begin),
                 layer.hidden_weight);
    }
  });
  return result;
}

}  // namespace

at::Tensor PreviousHidden(const LstmLayer& layer) {
  const std::int64_t time = layer.output.size(0);
  const at::Tensor first = layer.first_hidden.unsqueeze(0);
  const at::Tensor shifted =
      layer.reverse ? at::cat({layer.output.narrow(0, 1, time - 1), first})
                    : at::cat({first, layer.output.narrow(0, 0, time - 1)});
  return shifted.flatten(0, 1);
}

LstmGradients LstmBackward(const LstmLayer& layer, const at::Tensor& previous_hidden,
                           const LstmOutputGradients& arriving) {
  SORDINO_CHECK(layer.input.is_cpu(), "the kernel is for the CPU");
  if (layer.input.scalar_type() == at::kDouble) {
    return Backward<double>(layer, previous_hidden, arriving);
  }
  return Backward<float>(layer, previous_hidden, arriving);
}

at::Tensor LstmInputGradient(const LstmLayer& layer, const LstmGradients& gradients) {
  return at::mm(gradients.gates, layer.input_weight).view(layer.input.sizes());
}

}  // namespace sordino
