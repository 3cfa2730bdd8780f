// Sums over examples of factor * left^T right, for many small pairs of rows in one launch: what is
// left of the weighted sums of layers with one row an example, biases included.
//
// By plain pointers, for the processor and for GPUs. The stream is a cudaStream_t. Products and
// sums are float64, rounded once at the end, in the order of the rows.
#ifndef SORDINO_KERNELS_INTERNAL_ROW_PRODUCTS_H_
#define SORDINO_KERNELS_INTERNAL_ROW_PRODUCTS_H_

#include <cstdint>

#include "sordino/base/device_function.h"

namespace sordino::kernels {

inline constexpr int kProductTile = 16;   // entries of the result in both directions
inline constexpr int kProductChunk = 64;  // rows in shared memory at once
// As many as fit into the arguments of a launch.
inline constexpr int kMaxProducts = 64;

// result [p, q]. Without `left` (null, p = 1) it is the sum of the rows of `right`.
struct RowProduct {
  const float* left = nullptr;   // [rows, p]
  const float* right = nullptr;  // [rows, q]
  float* result = nullptr;
  std::int32_t p = 1;
  std::int32_t q = 0;
  std::int32_t group = 0;       // the row of the factors
  std::int32_t first_tile = 0;  // of all tiles of a launch
};

struct RowProducts {
  RowProduct products[kMaxProducts];
  std::int32_t count = 0;
  std::int32_t tiles = 0;
  std::int64_t rows = 0;
  const double* factors = nullptr;  // [groups, rows]
};

SORDINO_DEVICE constexpr std::int32_t TilesOver(std::int32_t size) {
  return (size + kProductTile - 1) / kProductTile;
}

// The product that a tile belongs to.
SORDINO_DEVICE inline int ProductOf(const RowProducts& all, std::int32_t tile) {
  int k = 0;
  while (k + 1 < all.count && all.products[k + 1].first_tile <= tile) ++k;
  return k;
}

// What row r brings to entries (i, j), as a product; 0 where its factor is 0, whatever the values.
SORDINO_DEVICE inline double ScaledLeft(const RowProducts& all, const RowProduct& product,
                                        std::int64_t r, std::int32_t i) {
  if (r >= all.rows || i >= product.p) return 0;
  const double factor = all.factors[product.group * all.rows + r];
  if (factor == 0) return 0;
  return product.left == nullptr ? factor
                                 : factor * static_cast<double>(product.left[r * product.p + i]);
}
SORDINO_DEVICE inline double KeptRight(const RowProducts& all, const RowProduct& product,
                                       std::int64_t r, std::int32_t j) {
  if (r >= all.rows || j >= product.q) return 0;
  if (all.factors[product.group * all.rows + r] == 0) return 0;
  return static_cast<double>(product.right[r * product.q + j]);
}

void LaunchRowProducts(const RowProducts& all, void* stream);

}  // namespace sordino::kernels

#endif  // SORDINO_KERNELS_INTERNAL_ROW_PRODUCTS_H_
