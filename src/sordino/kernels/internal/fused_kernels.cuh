// The kernels of fused_product.h, and their launch.
#ifndef SORDINO_KERNELS_INTERNAL_FUSED_KERNELS_CUH_
#define SORDINO_KERNELS_INTERNAL_FUSED_KERNELS_CUH_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "sordino/kernels/fused_copy.h"
#include "sordino/kernels/fused_plan.h"
#include "sordino/kernels/fused_tile.h"
#include "sordino/kernels/internal/fused_launch.h"

namespace sordino {

__device__ __forceinline__ void Commit() { asm volatile("cp.async.commit_group;"); }

// Waits until all but the last stages - 2 groups of copies of this thread have arrived.
__device__ __forceinline__ void WaitForStage(int stages) {
  if (stages == 2) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  } else if (stages == 3) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
  } else {
    asm volatile("cp.async.wait_group 2;" ::: "memory");
  }
}

// c += a b on tensor cores, which cut the inputs off to TF32.
__device__ __forceinline__ void MultiplyFragments(float* c, const float (&a)[4],
                                                  const float (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

// What a thread has of the operands of one step.
template <typename Tile>
struct Fragments {
  float a[Tile::kMTiles][4];
  float b[Tile::kNTiles][2];
};

template <typename Tile>
__device__ __forceinline__ void Multiply(const Fragments<Tile>& fragments,
                                         float (&entries)[Tile::kEntries]) {
#pragma unroll
  for (int m = 0; m < Tile::kMTiles; ++m) {
#pragma unroll
    for (int n = 0; n < Tile::kNTiles; ++n) {
      MultiplyFragments(&entries[(m * Tile::kNTiles + n) * 4], fragments.a[m], fragments.b[n]);
    }
  }
}

// Adds the products of one piece to the entries of a thread. Where there are registers left, the
// operands of the next step are read while those of this one are multiplied.
template <typename Tile, typename View>
__device__ __forceinline__ void AccumulateOnTensorCores(const View& view, const ThreadPlace& place,
                                                        int steps,
                                                        float (&entries)[Tile::kEntries]) {
  int step = place.share;
  if constexpr (Tile::kMTiles > 2) {
    for (; step < steps; step += Tile::kWarpsK) {
      Fragments<Tile> all;
      view.Fragments(place, step, all.a, all.b);
      Multiply<Tile>(all, entries);
    }
  } else {
    if (step >= steps) return;
    Fragments<Tile> even;
    Fragments<Tile> odd;
    view.Fragments(place, step, even.a, even.b);
    while (true) {
      step += Tile::kWarpsK;
      if (step < steps) view.Fragments(place, step, odd.a, odd.b);
      Multiply<Tile>(even, entries);
      if (step >= steps) return;
      step += Tile::kWarpsK;
      if (step < steps) view.Fragments(place, step, even.a, even.b);
      Multiply<Tile>(odd, entries);
      if (step >= steps) return;
    }
  }
}

template <typename Tile, bool kTensorCores, typename View>
__device__ __forceinline__ void Accumulate(const View& view, const ThreadPlace& place, int steps,
                                           float (&entries)[Tile::kEntries]) {
  if constexpr (kTensorCores) {
    AccumulateOnTensorCores<Tile>(view, place, steps, entries);
  } else {
    for (int step = place.share; step < steps; step += Tile::kWarpsK) {
#pragma unroll 2
      for (int t = step * kStepRows; t < (step + 1) * kStepRows; ++t) {
        float a[4 * Tile::kMTiles];
        float b[Tile::kNTiles];
        view.Values(place, t, a, b);
#pragma unroll
        for (int i = 0; i < 4 * Tile::kMTiles; ++i) {
#pragma unroll
          for (int j = 0; j < Tile::kNTiles; ++j) {
            entries[i * Tile::kNTiles + j] = __fmaf_rn(a[i], b[j], entries[i * Tile::kNTiles + j]);
          }
        }
      }
    }
  }
}

// Adds up the shares of the warps that have the same entries, always in the same order; the result
// is with share 0.
template <typename Tile>
__device__ __forceinline__ void AddShares(const ThreadPlace& place, float* exchange,
                                          float (&entries)[Tile::kEntries]) {
  if constexpr (Tile::kWarpsK > 1) {
    constexpr int kWords = Tile::kEntries * Tile::kOutputWarps * kWarpLanes;
    float* mine = exchange + place.output_warp * Tile::kEntries * kWarpLanes + place.lane;
    if (place.share > 0) {
#pragma unroll
      for (int k = 0; k < Tile::kEntries; ++k) {
        mine[(place.share - 1) * kWords + k * kWarpLanes] = entries[k];
      }
    }
    __syncthreads();
    if (place.share == 0) {
#pragma unroll
      for (int share = 1; share < Tile::kWarpsK; ++share) {
#pragma unroll
        for (int k = 0; k < Tile::kEntries; ++k) {
          entries[k] = __fadd_rn(entries[k], mine[(share - 1) * kWords + k * kWarpLanes]);
        }
      }
    }
  }
}

// The sum of the squares of the entries of a warp, or (kPart) of those that lie within the product:
// at most kSquaresPerSum (row_sums.h) in float32, and float64 beyond. In every lane.
template <typename Tile, bool kTensorCores, bool kVector, bool kPart>
__device__ __forceinline__ double SumOfSquares(const ThreadPlace& place, int rows, int columns,
                                               const float (&entries)[Tile::kEntries]) {
  constexpr int kGroup = 32;
  double sum = 0;
#pragma unroll
  for (int first = 0; first < Tile::kEntries; first += kGroup) {
    float squares = 0;
#pragma unroll
    for (int k = first; k < (first + kGroup < Tile::kEntries ? first + kGroup : Tile::kEntries);
         ++k) {
      const FusedEntry entry = EntryOf<Tile, kTensorCores, kVector>(place.lane, k);
      const bool inside =
          !kPart || (place.row + entry.row < rows && place.column + entry.column < columns);
      if (inside) squares = __fmaf_rn(entries[k], entries[k], squares);
    }
    sum += static_cast<double>(squares);
  }
#pragma unroll
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  }
  return sum;
}

// Writes the entries of a thread that lie within the product to a tile in rows of n entries.
template <typename Tile, bool kTensorCores, bool kVector, typename Value>
__device__ __forceinline__ void Store(const ThreadPlace& place, int rows, int columns, int n,
                                      const Value (&entries)[Tile::kEntries], Value* tile) {
#pragma unroll
  for (int k = 0; k < Tile::kEntries; ++k) {
    const FusedEntry entry = EntryOf<Tile, kTensorCores, kVector>(place.lane, k);
    const int row = place.row + entry.row;
    const int column = place.column + entry.column;
    if (row < rows && column < columns) tile[static_cast<std::int64_t>(row) * n + column] = entries[k];
  }
}

template <typename Source, typename Choice, bool kTensorCores, FusedOutput kOutput>
__global__ void __launch_bounds__(Choice::Tile::kThreads,
                                  kOutput == FusedOutput::kSums ? Choice::kSumBlocks
                                                                : Choice::kNormBlocks)
    FusedKernel(const __grid_constant__ Source source, const __grid_constant__ FusedWork work) {
  using Tile = typename Choice::Tile;
  using View = typename Source::template View<Tile>;
  constexpr bool kSum = kOutput == FusedOutput::kSums;
  extern __shared__ __align__(16) float shared[];
  const int thread = static_cast<int>(threadIdx.x);
  const ThreadPlace place = PlaceOf<Tile>(thread);
  const int tile = static_cast<int>(blockIdx.x) % work.tiles;
  const int chunk = static_cast<int>(blockIdx.x) / work.tiles;
  const FusedPlace where = PlaceOfTile<Tile>(tile, work.tiles_m, work.tiles_n);
  const int first = chunk * work.examples_per_block;
  const int last = min(first + work.examples_per_block, source.examples);
  const int pieces = source.pieces();
  const int total = (last - first) * pieces;
  float* exchange = shared + work.stages * work.stage_words;
  const int rows = source.m - where.m;
  const int columns = source.n - where.n;
  const std::int64_t groups = work.tiles / (work.tiles_m * work.tiles_n);

  View view = source.template MakeView<Tile, kTensorCores>(where, place);
  typename Source::Cursor cursor;
  cursor.example = first;
  int loaded = 0;
  int filling = 0;  // the stage that is filled next
  const auto load = [&] {
    if (loaded < total) {
      source.template Load<Tile>(cursor, where, thread, shared + filling * work.stage_words);
      source.Advance(cursor);
      ++loaded;
    }
    filling = filling + 1 == work.stages ? 0 : filling + 1;
    Commit();
  };
  for (int k = 0; k < work.stages; ++k) {
    source.template Prepare<Tile>(thread, shared + k * work.stage_words);
  }
  __syncthreads();
  for (int k = 0; k + 1 < work.stages; ++k) load();

  float entries[Tile::kEntries];
  double sums[kSum ? Tile::kEntries : 1];
#pragma unroll
  for (int k = 0; k < (kSum ? Tile::kEntries : 1); ++k) sums[k] = 0;
#pragma unroll
  for (int k = 0; k < Tile::kEntries; ++k) entries[k] = 0;

  int example = first;
  int piece = 0;
  int stage = 0;
  for (int k = 0; k < total; ++k) {
    WaitForStage(work.stages);
    __syncthreads();  // all have copied this stage, and none reads the one that is filled next
    load();
    source.template Show<Tile>(shared + stage * work.stage_words, view);
    stage = stage + 1 == work.stages ? 0 : stage + 1;
    Accumulate<Tile, kTensorCores>(view, place, source.Steps(piece), entries);
    if (++piece < pieces) continue;
    piece = 0;
    AddShares<Tile>(place, exchange, entries);
    if (Tile::kWarpsK == 1 || place.share == 0) {
      if constexpr (kSum) {
        const double factor = work.factors[example] * kShiftedUnit;
        if (factor != 0) {
#pragma unroll
          for (int i = 0; i < Tile::kEntries; ++i) {
            sums[i] = __fma_rn(factor, Shifted(entries[i]), sums[i]);
          }
        }
      } else if constexpr (kOutput == FusedOutput::kGradients) {
        Store<Tile, kTensorCores, View::kVector>(
            place, rows, columns, source.n, entries,
            work.gradients + ((example * groups + where.group) * source.m + where.m) * source.n +
                where.n);
      } else {
        const bool whole = View::kZeroBeyond || (rows >= Tile::kM && columns >= Tile::kN);
        const double sum =
            whole ? SumOfSquares<Tile, kTensorCores, View::kVector, false>(place, rows, columns,
                                                                           entries)
                  : SumOfSquares<Tile, kTensorCores, View::kVector, true>(place, rows, columns,
                                                                          entries);
        if (place.lane == 0) {
          work.partial[(static_cast<std::int64_t>(example) * work.tiles + tile) *
                           Tile::kOutputWarps +
                       place.output_warp] = sum;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < Tile::kEntries; ++i) entries[i] = 0;
    ++example;
  }
  if constexpr (kSum) {
    if (place.share > 0) return;
    Store<Tile, kTensorCores, View::kVector>(
        place, rows, columns, source.n, sums,
        work.partial + ((chunk * groups + where.group) * source.m + where.m) * source.n + where.n);
  }
}

template <typename Source, typename Choice, bool kTensorCores, FusedOutput kOutput>
cudaError_t LaunchOne(const Source& source, const FusedWork& work, int chunks,
                      cudaStream_t stream) {
  using Tile = typename Choice::Tile;
  const std::size_t words =
      static_cast<std::size_t>(work.stages) * static_cast<std::size_t>(work.stage_words) +
      (Tile::kWarpsK - 1) * Tile::kM * Tile::kN;
  const auto kernel = FusedKernel<Source, Choice, kTensorCores, kOutput>;
  const auto bytes = static_cast<int>(words * sizeof(float));
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<unsigned>(static_cast<std::int64_t>(work.tiles) * chunks);
  kernel<<<blocks, Tile::kThreads, static_cast<std::size_t>(bytes), stream>>>(source, work);
  return cudaGetLastError();
}

template <FusedOutput kOutput, typename Source, typename Choice, typename... Others>
cudaError_t LaunchChoice(FusedChoices<Choice, Others...> /*choices*/, int choice,
                         const Source& source, FusedPrecision precision, const FusedWork& work,
                         int chunks, cudaStream_t stream) {
  if (choice == 0) {
    return precision == FusedPrecision::kTf32
               ? LaunchOne<Source, Choice, true, kOutput>(source, work, chunks, stream)
               : LaunchOne<Source, Choice, false, kOutput>(source, work, chunks, stream);
  }
  if constexpr (sizeof...(Others) > 0) {
    return LaunchChoice<kOutput>(FusedChoices<Others...>(), choice - 1, source, precision, work,
                                 chunks, stream);
  } else {
    return cudaErrorInvalidValue;
  }
}

}  // namespace sordino

#endif  // SORDINO_KERNELS_INTERNAL_FUSED_KERNELS_CUH_
