// The entry-wise parts of an LSTM layer (recurrent_layer.h), for one entry of the hidden state of
// one sequence: what a thread of a GPU does. Compiled for the CPU as well, where tests run it.
#ifndef SORDINO_KERNELS_LSTM_ENTRIES_H_
#define SORDINO_KERNELS_LSTM_ENTRIES_H_

#include <cmath>
#include <cstdint>

#include "sordino/base/device_function.h"

namespace sordino {

// Gates and their gradients of one entry in one step: from i, f, g, o to those of a_i, a_f, a_g,
// a_o. d_cell is dL/dc_s without what comes through h_s, and becomes the same of the step before.
template <typename Real>
SORDINO_DEVICE inline void LstmEntryBack(Real d_hidden, Real cell_before, Real tanh_cell, Real& i,
                                         Real& f, Real& g, Real& o, Real& d_cell) {
  const Real in = i;
  const Real forget = f;
  const Real candidate = g;
  const Real out = o;
  const Real d_whole = d_cell + d_hidden * out * (1 - tanh_cell * tanh_cell);
  i = d_whole * candidate * (in * (1 - in));
  f = d_whole * cell_before * (forget * (1 - forget));
  g = d_whole * in * (1 - candidate * candidate);
  o = d_hidden * tanh_cell * (out * (1 - out));
  d_cell = d_whole * forget;
}

// The memory of a backward pass. A state before and after the step at a place of the input
// lies in slots place and place + 1; of a reversed layer, the other way around.
template <typename Real>
struct LstmEntries {
  Real* gates;           // [batch, time, 4, hidden]
  Real* cells;           // [batch, time + 1, hidden]; the first cell is there
  const Real* d_hidden;  // [batch, time + 1, hidden]
  Real* d_cell;          // [batch, hidden]
  std::int64_t batch;
  std::int64_t time;
  std::int64_t hidden;
  bool reverse;

  SORDINO_DEVICE std::int64_t State(std::int64_t sequence, std::int64_t slot,
                                    std::int64_t k) const {
    return (sequence * (time + 1) + slot) * hidden + k;
  }
  SORDINO_DEVICE Real* Gate(std::int64_t sequence, std::int64_t place, std::int64_t k) const {
    return gates + (sequence * time + place) * 4 * hidden + k;
  }
  SORDINO_DEVICE static Real Sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }

  // The gates from what enters them, and the cells, of all steps.
  SORDINO_DEVICE void Open(std::int64_t sequence, std::int64_t k) const {
    Real cell = cells[State(sequence, reverse ? time : 0, k)];
    for (std::int64_t step = 0; step < time; ++step) {
      const std::int64_t place = reverse ? time - 1 - step : step;
      Real* gate = Gate(sequence, place, k);
      const Real i = Sigmoid(gate[0]);
      const Real f = Sigmoid(gate[hidden]);
      const Real g = std::tanh(gate[2 * hidden]);
      gate[0] = i;
      gate[hidden] = f;
      gate[2 * hidden] = g;
      gate[3 * hidden] = Sigmoid(gate[3 * hidden]);
      cell = f * cell + i * g;
      cells[State(sequence, reverse ? place : place + 1, k)] = cell;
    }
  }

  // The gradients of the gates of one step in their place.
  SORDINO_DEVICE void StepBack(std::int64_t sequence, std::int64_t k, std::int64_t place) const {
    Real* gate = Gate(sequence, place, k);
    const std::int64_t after = State(sequence, reverse ? place : place + 1, k);
    LstmEntryBack(d_hidden[after], cells[State(sequence, reverse ? place + 1 : place, k)],
                  std::tanh(cells[after]), gate[0], gate[hidden], gate[2 * hidden],
                  gate[3 * hidden], d_cell[sequence * hidden + k]);
  }
};

// A stream is a cudaStream_t.
void LaunchLstmOpen(const LstmEntries<float>& entries, void* stream);
void LaunchLstmOpen(const LstmEntries<double>& entries, void* stream);
void LaunchLstmStepBack(const LstmEntries<float>& entries, std::int64_t place, void* stream);
void LaunchLstmStepBack(const LstmEntries<double>& entries, std::int64_t place, void* stream);

}  // namespace sordino

#endif  // SORDINO_KERNELS_LSTM_ENTRIES_H_
