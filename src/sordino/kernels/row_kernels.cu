// Every sum has a fixed order: the same bits in every run, whatever the device does at the same
// time.
#include <cuda_runtime.h>

#include "sordino/kernels/row_launch.h"

namespace sordino::kernels {
namespace {

constexpr int kThreads = 128;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffU;

cudaStream_t Stream(void* stream) { return static_cast<cudaStream_t>(stream); }

unsigned Blocks(std::int64_t work, std::int64_t per_block) {
  return static_cast<unsigned>((work + per_block - 1) / per_block);
}

// The sum over the lanes of a warp, by a fixed tree, in all of them.
__device__ double WarpSum(double value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

// The sum over the threads of a block of kThreads, in the first thread.
__device__ double BlockSum(double value) {
  __shared__ double parts[kThreads / kWarp];
  value = WarpSum(value);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = value;
  __syncthreads();
  double sum = 0;
  if (threadIdx.x == 0) {
    for (int k = 0; k < kThreads / kWarp; ++k) sum += parts[k];
  }
  __syncthreads();
  return sum;
}

// A block a row and span.
__global__ void SpanNormsKernel(const __grid_constant__ RowMatrices all, double* spans) {
  const auto span = static_cast<int>(blockIdx.y);
  int m = all.count - 1;
  while (all.matrices[m].first_span > span) --m;
  const RowMatrix& matrix = all.matrices[m];
  const std::int64_t row = blockIdx.x;
  const float* values = matrix.values + row * matrix.width;
  const ColumnRange columns = ColumnsOfSpan(matrix.width, span - matrix.first_span);
  double sum = 0;
#pragma unroll 4
  for (std::int64_t k = columns.begin + threadIdx.x; k < columns.end; k += kThreads) {
    const double value = values[k];
    sum += value * value;
  }
  sum = BlockSum(sum);
  if (threadIdx.x == 0) spans[span * all.rows + row] = sum;
}

// A thread a row and matrix.
__global__ void AddSpansKernel(const __grid_constant__ RowMatrices all, int span_count,
                               const double* spans, double* squared) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= all.count * all.rows) return;
  const auto m = static_cast<int>(at / all.rows);
  const int end = m + 1 < all.count ? all.matrices[m + 1].first_span : span_count;
  double sum = 0;
#pragma unroll 4
  for (int span = all.matrices[m].first_span; span < end; ++span) {
    sum += spans[span * all.rows + at % all.rows];
  }
  squared[at] = sum;
}

// `sum` and the pieces of a group, in their order; `squared` gives the squared norm of a matrix.
template <typename Squared>
__device__ double WithPieces(const NormPieces& pieces, std::int64_t group, double sum, double limit,
                             const Squared& squared) {
  for (int k = 0; k < pieces.count; ++k) {
    const NormPiece& piece = pieces.pieces[k];
    if (piece.group != group) continue;
    double value = squared(piece.first);
    if (piece.second >= 0) {
      const double other = squared(piece.second);
      value = value > limit || other > limit ? __longlong_as_double(0x7ff0000000000000LL)
                                             : value * other;
    }
    sum += value;
  }
  return sum;
}

__global__ void AddPiecesKernel(NormPieces pieces, const double* squared, double limit,
                                std::int64_t groups, std::int64_t rows, double* total) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= groups * rows) return;
  const std::int64_t group = at / rows;
  const std::int64_t row = at % rows;
  total[at] =
      WithPieces(pieces, group, total[at], limit, [&](int m) { return squared[m * rows + row]; });
}

// A block a row, a warp a matrix.
constexpr int kSmallThreads = 256;
__global__ void SmallNormsKernel(const __grid_constant__ RowMatrices all,
                                 const __grid_constant__ NormPieces pieces, double limit,
                                 std::int64_t groups, double* total) {
  __shared__ double squared[kMaxMatrices];
  const std::int64_t row = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  for (int m = static_cast<int>(threadIdx.x / kWarp); m < all.count; m += kSmallThreads / kWarp) {
    const RowMatrix& matrix = all.matrices[m];
    const float* values = matrix.values + row * matrix.width;
    double sum = 0;
#pragma unroll 4
    for (std::int64_t k = lane; k < matrix.width; k += kWarp) {
      const double value = values[k];
      sum += value * value;
    }
    sum = WarpSum(sum);
    if (lane == 0) squared[m] = sum;
  }
  __syncthreads();
  for (std::int64_t group = threadIdx.x; group < groups; group += kSmallThreads) {
    double& own = total[group * all.rows + row];
    own = WithPieces(pieces, group, own, limit, [&](int m) { return squared[m]; });
  }
}

// The norm of a group, and its factor.
struct NormAndFactor {
  double norm;
  double factor;
};
__device__ NormAndFactor FactorAt(const FactorArrays& a, std::int64_t group, std::int64_t row) {
  const std::int64_t at = group * a.rows + row;
  if (a.squared == nullptr) return {a.norms[at], a.factors[at]};
  constexpr double kSmallestNormal = 0x1p-1022;
  const double norm = sqrt(a.squared[at]);
  double factor = a.below[group] / norm;
  factor = factor > 1 ? 1 : factor;
  return {norm, factor <= kSmallestNormal ? 0 : factor};
}

// One block for all rows, so that counting needs nothing but its own memory.
__global__ void FactorsKernel(FactorArrays a) {
  extern __shared__ unsigned long long above[];
  for (std::int64_t group = threadIdx.x; group < a.groups; group += blockDim.x) above[group] = 0;
  __syncthreads();
  for (std::int64_t row = threadIdx.x; row < a.rows; row += blockDim.x) {
    const bool counts = a.mask == nullptr || a.mask[row];
    bool usable = counts;
    for (std::int64_t group = 0; group < a.groups; ++group) {
      const double norm = FactorAt(a, group, row).norm;
      usable = usable && norm <= a.largest;
      // Whole numbers: the order of the additions does not matter.
      if (counts && !(norm <= a.bounds[group])) atomicAdd(&above[group], 1ULL);
    }
    for (std::int64_t group = 0; group < a.groups; ++group) {
      const std::int64_t at = group * a.rows + row;
      const NormAndFactor own = FactorAt(a, group, row);
      const double factor = usable ? own.factor : 0;
      if (a.roots != nullptr) a.roots[at] = own.norm;
      a.factors64[at] = factor;
      a.factors32[at] = static_cast<float>(factor);
    }
  }
  __syncthreads();
  for (std::int64_t group = threadIdx.x; group < a.groups; group += blockDim.x) {
    a.above[group] = static_cast<std::int64_t>(above[group]);
  }
}

__global__ void ScaleRowsKernel(RowMatrices all, const float* factors) {
  const RowMatrix& matrix = all.matrices[blockIdx.y];
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= all.rows * matrix.width) return;
  const float factor = factors[matrix.group * all.rows + at / matrix.width];
  const float value = matrix.values[at];
  matrix.result[at] = factor == 0 ? 0.0F : matrix.scales ? value * factor : value;
}

// 32 columns a block; warp w adds up rows w, w + 8, ...
constexpr int kSumWarps = 8;
__global__ void SumRowsKernel(RowMatrices all, const double* factors) {
  __shared__ double parts[kSumWarps][kWarp];
  const RowMatrix& matrix = all.matrices[blockIdx.y];
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + threadIdx.x;
  const double* own = factors + matrix.group * all.rows;
  double sum = 0;
  if (column < matrix.width) {
#pragma unroll 4
    for (std::int64_t row = threadIdx.y; row < all.rows; row += kSumWarps) {
      const double factor = own[row];
      const double value = matrix.values[row * matrix.width + column];
      if (factor != 0) sum += factor * value;
    }
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= matrix.width) return;
  for (int k = 1; k < kSumWarps; ++k) sum += parts[k][threadIdx.x];
  matrix.result[column] = static_cast<float>(sum);
}

// A block an example. Calls visit(entry, column, sum) for every entry that the example looks up and
// every column: the sum over its rows of that entry, in their order, in float64. A warp takes the
// first row of an entry, its lanes take columns; all lanes of a warp make the same calls, with
// column beyond the width where there is none.
template <typename Visit>
__device__ void ForEachEntry(const LookupArrays& a, std::int64_t* entries, const Visit& visit) {
  const std::int64_t example = blockIdx.x;
  const std::int64_t rows = a.outer * a.inner;
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const auto place = [&](std::int64_t r) {
    return (r / a.inner * a.examples + example) * a.inner + r % a.inner;
  };
  for (std::int64_t r = threadIdx.x; r < rows; r += blockDim.x) {
    const std::int64_t entry = a.index[place(r)];
    entries[r] = entry == a.padding_index ? -1 : entry;  // -1: left out
  }
  __syncthreads();
  for (std::int64_t r = threadIdx.x / kWarp; r < rows; r += blockDim.x / kWarp) {
    const std::int64_t entry = entries[r];
    bool is_first = entry >= 0;
    for (std::int64_t before = lane; before < r; before += kWarp) {
      is_first = is_first && entries[before] != entry;
    }
    if (!__all_sync(kAllLanes, is_first)) continue;
    for (std::int64_t base = 0; base < a.width; base += kWarp) {
      const std::int64_t column = base + lane;
      const bool inside = column < a.width;
      double sum = inside ? a.gradient[place(r) * a.width + column] : 0;
      for (std::int64_t block = r + 1; block < rows; block += kWarp) {
        const std::int64_t own = block + lane;
        unsigned same = __ballot_sync(kAllLanes, own < rows && entries[own] == entry);
        for (; same != 0; same &= same - 1) {
          const std::int64_t row = place(block + __ffs(static_cast<int>(same)) - 1);
          if (inside) sum += a.gradient[row * a.width + column];
        }
      }
      visit(entry, column, sum);
    }
  }
}

// A warp for every eight rows of an example, so that most of their loads are under way at once.
constexpr int kLookupRowsOfWarp = 8;
constexpr int kMostLookupThreads = 1024;
unsigned LookupThreads(const LookupArrays& a) {
  const std::int64_t warps = (a.outer * a.inner + kLookupRowsOfWarp - 1) / kLookupRowsOfWarp;
  return static_cast<unsigned>(warps < kMostLookupThreads / kWarp ? warps * kWarp
                                                                  : kMostLookupThreads);
}

__global__ void __launch_bounds__(kMostLookupThreads, 1) LookupNormsKernel(LookupArrays a) {
  extern __shared__ std::int64_t entries[];
  double total = 0;
  ForEachEntry(a, entries, [&](std::int64_t /*entry*/, std::int64_t /*column*/, double sum) {
    total += sum * sum;
  });
  __shared__ double parts[kMostLookupThreads / kWarp];
  total = WarpSum(total);
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = total;
  __syncthreads();
  if (threadIdx.x != 0) return;
  double sum = a.squared[blockIdx.x];
  for (unsigned k = 0; k < blockDim.x / kWarp; ++k) sum += parts[k];
  a.squared[blockIdx.x] = sum;
}

// Examples meet in the entries of the table, in any order: the last bits of a float64 sum.
__global__ void __launch_bounds__(kMostLookupThreads, 1) LookupSumKernel(LookupArrays a) {
  extern __shared__ std::int64_t entries[];
  const double factor = a.factors[blockIdx.x];
  if (factor == 0) return;
  ForEachEntry(a, entries, [&](std::int64_t entry, std::int64_t column, double sum) {
    if (column < a.width) atomicAdd(&a.table[entry * a.width + column], factor * sum);
  });
}

std::int64_t Widest(const RowMatrices& all) {
  std::int64_t widest = 0;
  for (int k = 0; k < all.count; ++k) {
    if (all.matrices[k].width > widest) widest = all.matrices[k].width;
  }
  return widest;
}

}  // namespace

void LaunchSquaredNorms(const RowMatrices& all, int span_count, double* spans, double* squared,
                        void* stream) {
  const dim3 grid(static_cast<unsigned>(all.rows), static_cast<unsigned>(span_count));
  SpanNormsKernel<<<grid, kThreads, 0, Stream(stream)>>>(all, spans);
  if (spans == squared) return;
  AddSpansKernel<<<Blocks(all.count * all.rows, kThreads), kThreads, 0, Stream(stream)>>>(
      all, span_count, spans, squared);
}

void LaunchAddPieces(const NormPieces& pieces, const double* squared, double limit,
                     std::int64_t groups, std::int64_t rows, double* total, void* stream) {
  AddPiecesKernel<<<Blocks(groups * rows, kThreads), kThreads, 0, Stream(stream)>>>(
      pieces, squared, limit, groups, rows, total);
}

void LaunchSmallNorms(const RowMatrices& all, const NormPieces& pieces, double limit,
                      std::int64_t groups, double* total, void* stream) {
  SmallNormsKernel<<<static_cast<unsigned>(all.rows), kSmallThreads, 0, Stream(stream)>>>(
      all, pieces, limit, groups, total);
}

void LaunchFactors(const FactorArrays& arrays, void* stream) {
  constexpr int kFactorThreads = 512;
  const auto memory = static_cast<std::size_t>(arrays.groups) * sizeof(unsigned long long);
  FactorsKernel<<<1, kFactorThreads, memory, Stream(stream)>>>(arrays);
}

void LaunchScaleRows(const RowMatrices& all, const float* factors, void* stream) {
  const dim3 grid(Blocks(all.rows * Widest(all), kThreads), static_cast<unsigned>(all.count));
  ScaleRowsKernel<<<grid, kThreads, 0, Stream(stream)>>>(all, factors);
}

void LaunchSumRows(const RowMatrices& all, const double* factors, void* stream) {
  const dim3 grid(Blocks(Widest(all), kWarp), static_cast<unsigned>(all.count));
  SumRowsKernel<<<grid, dim3(kWarp, kSumWarps), 0, Stream(stream)>>>(all, factors);
}

void LaunchLookupNorms(const LookupArrays& arrays, void* stream) {
  const auto memory = static_cast<std::size_t>(arrays.outer * arrays.inner) * sizeof(std::int64_t);
  LookupNormsKernel<<<static_cast<unsigned>(arrays.examples), LookupThreads(arrays), memory,
                      Stream(stream)>>>(arrays);
}

void LaunchLookupSum(const LookupArrays& arrays, void* stream) {
  const auto memory = static_cast<std::size_t>(arrays.outer * arrays.inner) * sizeof(std::int64_t);
  LookupSumKernel<<<static_cast<unsigned>(arrays.examples), LookupThreads(arrays), memory,
                    Stream(stream)>>>(arrays);
}

}  // namespace sordino::kernels
