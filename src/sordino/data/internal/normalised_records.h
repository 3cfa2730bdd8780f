// Gathers records and normalises them, in memory in one pass and on a device by libtorch's
// operations: what stands behind batch_loader.h.
#ifndef SORDINO_DATA_INTERNAL_NORMALISED_RECORDS_H_
#define SORDINO_DATA_INTERNAL_NORMALISED_RECORDS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/data/dataset.h"

namespace sordino::internal {

// The constants of normalisation as they are applied: for each channel (or column) one.
struct NormalisationConstants {
  std::vector<float> mean;
  std::vector<float> deviation;
  // What each of the 256 values of a pixel becomes, channel after channel: the definition computed
  // in float64 and rounded once, and faster than arithmetic on every pixel.
  std::vector<float> of_pixel;
};

// Throws Error when the constants do not fit the declared shape.
NormalisationConstants MakeConstants(const DatasetDeclaration& declaration);

// How inputs of this kind are stored.
at::ScalarType StoredType(InputKind kind);

// Which records to gather: those of a request, or all.
struct Rows {
  std::int64_t count;
  const std::uint64_t* indices = nullptr;  // null: 0, 1, 2, ...

  std::int64_t operator[](std::int64_t i) const {
    return indices == nullptr ? i : static_cast<std::int64_t>(indices[i]);
  }
};

// `stored` is contiguous and in memory. Gathers and normalises in one pass over the memory.
at::Tensor GatherNormalised(const NormalisationConstants& constants, const at::Tensor& stored,
                            const Rows& rows);

// Records as they are stored, side by side.
at::Tensor Gather(const at::Tensor& stored, const Rows& rows, bool pinned);

// All of `stored`, on the device where it is.
at::Tensor NormalisedOnDevice(const NormalisationConstants& constants, const at::Tensor& stored);

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_NORMALISED_RECORDS_H_
