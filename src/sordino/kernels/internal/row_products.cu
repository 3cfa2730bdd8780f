#include "sordino/kernels/internal/row_products.h"

#include <cuda_runtime.h>

namespace sordino::kernels {
namespace {

constexpr int kTileThreads = kProductTile * kProductTile;

// A block a tile, a thread an entry. The rows pass through shared memory in chunks, so that a chunk
// costs one wait for memory.
__global__ void __launch_bounds__(kTileThreads)
    RowProductsKernel(const __grid_constant__ RowProducts all) {
  __shared__ double left[kProductChunk][kProductTile];
  __shared__ double right[kProductChunk][kProductTile];
  const auto tile = static_cast<std::int32_t>(blockIdx.x);
  const RowProduct& product = all.products[ProductOf(all, tile)];
  const std::int32_t across = TilesOver(product.q);
  const std::int32_t own = tile - product.first_tile;
  const std::int32_t i0 = own / across * kProductTile;
  const std::int32_t j0 = own % across * kProductTile;
  const int column = static_cast<int>(threadIdx.x) % kProductTile;
  const int row = static_cast<int>(threadIdx.x) / kProductTile;
  double sum = 0;
  for (std::int64_t base = 0; base < all.rows; base += kProductChunk) {
#pragma unroll
    for (int r = 0; r < kProductChunk; r += kProductTile) {
      left[r + row][column] = ScaledLeft(all, product, base + r + row, i0 + column);
      right[r + row][column] = KeptRight(all, product, base + r + row, j0 + column);
    }
    __syncthreads();
#pragma unroll 16
    for (int r = 0; r < kProductChunk; ++r) sum += left[r][row] * right[r][column];
    __syncthreads();
  }
  const std::int32_t i = i0 + row;
  const std::int32_t j = j0 + column;
  if (i < product.p && j < product.q) {
    product.result[static_cast<std::int64_t>(i) * product.q + j] = static_cast<float>(sum);
  }
}

}  // namespace

void LaunchRowProducts(const RowProducts& all, void* stream) {
  RowProductsKernel<<<static_cast<unsigned>(all.tiles), kTileThreads, 0,
                      static_cast<cudaStream_t>(stream)>>>(all);
}

}  // namespace sordino::kernels
