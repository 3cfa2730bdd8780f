// The entry-wise parts of an LSTM layer as one launch each: a kernel for all steps of the forward
// recurrence, and one for a step backward, which a product with W_hh follows.
#ifndef SORDINO_KERNELS_LSTM_KERNELS_H_
#define SORDINO_KERNELS_LSTM_KERNELS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sordino/kernels/lstm_entries.h"

namespace sordino {

// The tensors of LstmEntries, all contiguous.
struct LstmBuffers {
  at::Tensor gates;
  at::Tensor cells;
  at::Tensor d_hidden;
  at::Tensor d_cell;
  bool reverse = false;

  template <typename Real>
  LstmEntries<Real> Entries() const {
    return {gates.mutable_data_ptr<Real>(),
            cells.mutable_data_ptr<Real>(),
            d_hidden.const_data_ptr<Real>(),
            d_cell.mutable_data_ptr<Real>(),
            d_cell.size(0),
            gates.size(1),
            d_cell.size(1),
            reverse};
  }
};

class LstmKernels {
 public:
  virtual ~LstmKernels() = default;
  virtual void Open(const LstmBuffers& buffers) const = 0;
  virtual void StepBack(const LstmBuffers& buffers, std::int64_t place) const = 0;
};

// Null where none were built for the device.
const LstmKernels* LstmKernelsFor(const c10::Device& device);

}  // namespace sordino

#endif  // SORDINO_KERNELS_LSTM_KERNELS_H_
