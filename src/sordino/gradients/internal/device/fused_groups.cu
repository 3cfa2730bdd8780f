// Kernels of fused_product.h for rows whose products are taken by groups of warps (fused_groups.h).
// They need the instructions of sm_90a, for which SORDINO_WARP_GROUPS is defined; compiled for
// anything else they are empty, and HasWarpGroups says so.
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "sordino/gradients/internal/device/fused_copy.h"
#include "sordino/gradients/internal/device/fused_groups.h"
#include "sordino/gradients/internal/device/fused_launch.h"
#include "sordino/gradients/internal/device/fused_rows.h"
#include "sordino/gradients/internal/device/fused_stages.cuh"
#include "sordino/gradients/internal/device/fused_tile.h"

namespace sordino {
namespace {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

// d += a b for 64 rows and 128 columns, of which this thread has 64 entries.
__device__ __forceinline__ void MultiplyGroup(float (&d)[GroupTile::kEntries], const float (&a)[4],
                                              std::uint64_t right) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, "
      "%9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "
      "%27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, "
      "%45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, "
      "%63}, {%64, %65, %66, %67}, %68, "
      "add, 1, 1;\n}\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
        "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
        "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]),
        "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),
        "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
        "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]),
        "+f"(d[63])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "l"(right), "r"(1));
}

// Keeps the compiler from moving what it does with the entries across.
__device__ __forceinline__ void HoldEntries(float (&entries)[GroupTile::kEntries]) {
#pragma unroll
  for (int k = 0; k < GroupTile::kEntries; ++k) asm volatile("" : "+f"(entries[k])::"memory");
}

// Where the right operand of a step lies: its address, the distance of blocks along t and along the
// columns, all in units of 16 bytes; no swizzling.
__device__ __forceinline__ std::uint64_t DescribeRight(const float* stage, int step) {
  constexpr std::uint64_t kAlongRows =
      GroupTile::kBlocksAcross * GroupTile::kBlockWords * sizeof(float) / 16;
  constexpr std::uint64_t kAlongColumns = GroupTile::kBlockWords * sizeof(float) / 16;
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(
      stage + GroupTile::kLeftWords + GroupRightWord(step * kStepRows, 0)));
  return (static_cast<std::uint64_t>(address & 0x3ffffU) >> 4) | kAlongRows << 16 |
         kAlongColumns << 32;
}

// The products of one piece, in the time of which `meanwhile` is done. Rows beyond the last are 0.
template <typename Meanwhile>
__device__ __forceinline__ void AccumulateGroups(const float* stage, int thread,
                                                 float (&entries)[GroupTile::kEntries],
                                                 const Meanwhile& meanwhile) {
  float a[GroupTile::kSteps][4];
#pragma unroll
  for (int step = 0; step < GroupTile::kSteps; ++step) {
    GroupFragment(stage, thread, step, a[step]);
  }
#pragma unroll
  for (int step = 0; step < GroupTile::kSteps; ++step) {
#pragma unroll
    for (int k = 0; k < 4; ++k) asm volatile("" : "+f"(a[step][k])::"memory");
  }
  HoldEntries(entries);
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
  for (int step = 0; step < GroupTile::kSteps; ++step) {
    MultiplyGroup(entries, a[step], DescribeRight(stage, step));
  }
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
  meanwhile();
  asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
  HoldEntries(entries);
#pragma unroll
  for (int step = 0; step < GroupTile::kSteps; ++step) {
#pragma unroll
    for (int k = 0; k < 4; ++k) asm volatile("" : "+f"(a[step][k])::"memory");
  }
}

// As SumOfSquares of fused_kernels.cuh.
__device__ __forceinline__ double GroupSumOfSquares(int thread, int rows, int columns,
                                                    const float (&entries)[GroupTile::kEntries]) {
  constexpr int kGroup = 32;
  double sum = 0;
#pragma unroll
  for (int first = 0; first < GroupTile::kEntries; first += kGroup) {
    float squares = 0;
#pragma unroll
    for (int k = first; k < first + kGroup; ++k) {
      const FusedEntry entry = GroupEntryOf(thread, k);
      if (entry.row < rows && entry.column < columns) {
        squares = __fmaf_rn(entries[k], entries[k], squares);
      }
    }
    sum += static_cast<double>(squares);
  }
  return SumOfLanes(sum);
}

#endif

template <bool kSum>
__global__ void __launch_bounds__(GroupTile::kThreads,
                                  kSum ? GroupTile::kSumBlocks : GroupTile::kNormBlocks)
    GroupKernel(const __grid_constant__ RowsSource source, const __grid_constant__ FusedWork work) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(128) float shared[];
  const int thread = static_cast<int>(threadIdx.x);
  const int tile = static_cast<int>(blockIdx.x) % work.tiles;
  const int chunk = static_cast<int>(blockIdx.x) / work.tiles;
  const FusedPlace where = PlaceOfTile<GroupTile>(tile, work.tiles_m, work.tiles_n);
  const int first = chunk * work.examples_per_block;
  const int last = min(first + work.examples_per_block, source.examples);
  const int pieces = source.pieces();
  const int total = (last - first) * pieces;
  const int rows = source.m - where.m;
  const int columns = source.n - where.n;

  RowsSource::Cursor cursor;
  cursor.example = first;
  int loaded = 0;
  int filling = 0;
  const auto load = [&] {
    if (loaded < total) {
      LoadForGroups(source, cursor, where, thread, shared + filling * work.stage_words);
      source.Advance(cursor);
      ++loaded;
    }
    filling = filling + 1 == work.stages ? 0 : filling + 1;
    Commit();
  };
  for (int k = 0; k + 1 < work.stages; ++k) load();

  float entries[GroupTile::kEntries];
  double sums[kSum ? GroupTile::kEntries : 1];
#pragma unroll
  for (int k = 0; k < (kSum ? GroupTile::kEntries : 1); ++k) sums[k] = 0;
#pragma unroll
  for (int k = 0; k < GroupTile::kEntries; ++k) entries[k] = 0;

  int example = first;
  int piece = 0;
  int stage = 0;
  for (int k = 0; k < total; ++k) {
    WaitForStage(work.stages);
    // What was copied is to be seen by wgmma, which reads memory by another way.
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    __syncthreads();
    AccumulateGroups(shared + stage * work.stage_words, thread, entries, load);
    stage = stage + 1 == work.stages ? 0 : stage + 1;
    if (++piece < pieces) continue;
    piece = 0;
    if constexpr (kSum) {
      const double factor = work.factors[example] * kShiftedUnit;
      if (factor != 0) {
#pragma unroll
        for (int i = 0; i < GroupTile::kEntries; ++i) {
          sums[i] = __fma_rn(factor, Shifted(entries[i]), sums[i]);
        }
      }
    } else {
      const double sum = GroupSumOfSquares(thread, rows, columns, entries);
      if (thread % kWarpLanes == 0) {
        work.partial[(static_cast<std::int64_t>(example) * work.tiles + tile) *
                         GroupTile::kOutputWarps +
                     thread / kWarpLanes] = sum;
      }
    }
#pragma unroll
    for (int i = 0; i < GroupTile::kEntries; ++i) entries[i] = 0;
    ++example;
  }
  if constexpr (kSum) {
    double* out = work.partial +
                  static_cast<std::int64_t>(chunk) * source.m * static_cast<std::int64_t>(source.n);
#pragma unroll
    for (int i = 0; i < GroupTile::kEntries; ++i) {
      const FusedEntry entry = GroupEntryOf(thread, i);
      if (entry.row < rows && entry.column < columns) {
        out[static_cast<std::int64_t>(where.m + entry.row) * source.n + where.n + entry.column] =
            sums[i];
      }
    }
  }
#endif
}

template <bool kSum>
cudaError_t LaunchGroupKernel(const RowsSource& source, const FusedWork& work, int chunks,
                              cudaStream_t stream) {
  const auto kernel = GroupKernel<kSum>;
  const auto bytes = work.stages * work.stage_words * static_cast<int>(sizeof(float));
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<unsigned>(static_cast<std::int64_t>(work.tiles) * chunks);
  kernel<<<blocks, GroupTile::kThreads, static_cast<std::size_t>(bytes), stream>>>(source, work);
  return cudaGetLastError();
}

}  // namespace

bool HasWarpGroups() {
#if defined(SORDINO_WARP_GROUPS)
  int device = 0;
  int major = 0;
  int minor = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess &&
         major == 9 && minor == 0;
#else
  return false;
#endif
}

cudaError_t LaunchGroups(const RowsSource& source, const FusedPlan& plan, bool sum,
                         const FusedWork& work, cudaStream_t stream) {
  return sum ? LaunchGroupKernel<true>(source, work, plan.sums.chunks, stream)
             : LaunchGroupKernel<false>(source, work, plan.norms.chunks, stream);
}

}  // namespace sordino
