// What a pass over many small matrices does on a GPU in one launch instead of one for each.
//
// Norms and sums over rows are float64 in a fixed order, and results are rounded once: what one
// example adds depends on nothing but that example, and the same batch gives the same bits. Sums
// over the rows of one example add up to eight of them in float32 first.
#ifndef SORDINO_KERNELS_ROW_OPERATIONS_H_
#define SORDINO_KERNELS_ROW_OPERATIONS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/kernels/example_layout.h"
#include "sordino/kernels/row_launch.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {

// Whether they are built, for float32 values on a CUDA device.
bool HasRowOperations(const at::Tensor& values);

// Squared norms of matrices [rows, width], float64 [matrices, rows].
at::Tensor DeviceSquaredNorms(const std::vector<at::Tensor>& matrices);

// Adds what matrices contribute to the squared norms `total` [groups, rows]; `squared` is that of
// DeviceSquaredNorms. Infinite where the squared norm of a row of a pair is above `limit`.
void DeviceAddPieces(const std::vector<kernels::NormPiece>& pieces, const at::Tensor& squared,
                     double limit, const at::Tensor& total);

// Both at once: the squared norms of the rows of matrices, added to `total` as pieces say.
void DeviceAddRowNorms(const std::vector<at::Tensor>& matrices,
                       const std::vector<kernels::NormPiece>& pieces, double limit,
                       const at::Tensor& total);

struct DeviceFactors {
  at::Tensor float64;  // [groups, rows]
  at::Tensor float32;
  at::Tensor above;  // [groups], int64
};
// The factors of a policy, 0 for rows that do not count (`mask`, where it is defined) and for those
// with a norm above `largest`, or none that is a number, in any group.
DeviceFactors DeviceClip(const at::Tensor& norms, const at::Tensor& factors,
                         const at::Tensor& bounds, const at::Tensor& mask, double largest);

// The same from squared norms, by a policy whose factors are min(1, below / norm); norms are their
// roots, [groups, rows].
struct DeviceClipped {
  at::Tensor norms;
  DeviceFactors factors;
};
DeviceClipped DeviceClipToBound(const at::Tensor& squared, const at::Tensor& below,
                                const at::Tensor& bounds, const at::Tensor& mask, double largest);

struct FactoredRows {
  at::Tensor rows;  // [rows, width]
  std::int64_t group = 0;
  bool scales = true;  // otherwise rows of factor 0 become 0, and the others stay
};
// factors [groups, rows], float32.
std::vector<at::Tensor> DeviceScaledRows(const std::vector<FactoredRows>& all,
                                         const at::Tensor& factors);
// The sums [width] over rows times factors, float32 or, where they are to be `wide`, float64;
// factors [groups, rows], float64.
std::vector<at::Tensor> DeviceRowSums(const std::vector<FactoredRows>& all,
                                      const at::Tensor& factors, bool wide = false);

// The sums [examples, width] over the rows of each example; rows [rows, width].
at::Tensor DeviceExampleSums(const at::Tensor& rows, const ExampleLayout& layout);
// The same of rows * (input - mean) * deviation: the gradients of the scale of a layer norm.
// `input` is [rows, width], `mean` and `deviation` have an entry for each row.
struct NormalisedRows {
  at::Tensor input;
  at::Tensor mean;
  at::Tensor deviation;
};
at::Tensor DeviceNormalisedSums(const at::Tensor& rows, const NormalisedRows& normalised,
                                const ExampleLayout& layout);

// A sum over rows of factor * left^T right [p, q], or of the rows of `right` [q] without `left`.
struct FactoredProduct {
  at::Tensor left;   // [rows, p], or undefined
  at::Tensor right;  // [rows, q]
  std::int64_t group = 0;
};
// Whether products are so small that one launch for all of them is faster than a product each.
bool AreSmallProducts(const std::vector<FactoredProduct>& all, std::int64_t rows);
// In float64, rounded once; factors [groups, rows], float64.
std::vector<at::Tensor> DeviceRowProducts(const std::vector<FactoredProduct>& all,
                                          const at::Tensor& factors);

// Whether the two below can take it.
bool HasLookupOperations(const LookupRows& lookup);
void DeviceAddLookupNorms(const LookupRows& lookup, const at::Tensor& squared);
// LookupWeightedSum. Examples are added in no fixed order, in float64: the last bit of a result may
// differ between runs.
at::Tensor DeviceLookupSum(const LookupRows& lookup, const at::Tensor& factors, bool wide = false);

}  // namespace sordino

#endif  // SORDINO_KERNELS_ROW_OPERATIONS_H_
