#include "sordino/kernels/fused_product.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "sordino/kernels/internal/fused_launch.h"

namespace sordino {
namespace {

// squared[example] += sum over its parts; one warp an example, always in the same order.
__global__ void AddParts(const double* partial, int parts, int examples, double* squared) {
  const int example = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / kWarpLanes);
  const int lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  if (example >= examples) return;
  double sum = 0;
  for (int k = lane; k < parts; k += kWarpLanes) {
    sum += partial[static_cast<std::int64_t>(example) * parts + k];
  }
#pragma unroll
  for (int distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffU, sum, distance);
  }
  if (lane == 0) squared[example] += sum;
}

inline constexpr int kAddRows = 8;  // threads that share the chunks of one entry

// result[k] = sum over the chunks of partial[chunk, k], always in the same order, rounded once.
__global__ void AddChunks(const double* partial, int chunks, std::int64_t entries,
                          FusedResult result) {
  __shared__ double shares[kAddRows][kWarpLanes];
  const std::int64_t entry = static_cast<std::int64_t>(blockIdx.x) * kWarpLanes + threadIdx.x;
  double sum = 0;
  if (entry < entries) {
#pragma unroll 4
    for (int chunk = static_cast<int>(threadIdx.y); chunk < chunks; chunk += kAddRows) {
      sum += partial[chunk * entries + entry];
    }
  }
  shares[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || entry >= entries) return;
#pragma unroll
  for (int k = 1; k < kAddRows; ++k) sum += shares[k][threadIdx.x];
  if (result.float64 != nullptr) {
    result.float64[entry] = sum;
  } else {
    result.float32[entry] = static_cast<float>(sum);
  }
}

const char* Name(cudaError_t error) {
  return error == cudaSuccess ? nullptr : cudaGetErrorName(error);
}

FusedWork WorkOf(const FusedPlan& plan, const FusedShares& shares) {
  FusedWork work;
  work.tiles_m = plan.tiles_m;
  work.tiles_n = plan.tiles_n;
  work.tiles = plan.tiles();
  work.stages = shares.stages;
  work.stage_words = shares.stage_words;
  work.examples_per_block = shares.examples_per_block;
  return work;
}

template <typename Source>
const char* AddNorms(const Source& source, const FusedPlan& plan, FusedPrecision precision,
                     double* workspace, double* squared, DeviceStream stream) {
  if (source.examples == 0 || source.m == 0 || source.n == 0 || source.pieces() == 0) {
    return nullptr;
  }
  auto* const queue = static_cast<cudaStream_t>(stream);
  FusedWork work = WorkOf(plan, plan.norms);
  work.partial = workspace;
  const cudaError_t error = LaunchNorms(source, plan, precision, work, queue);
  if (error != cudaSuccess) return Name(error);
  constexpr int kThreads = 128;
  constexpr int kExamples = kThreads / kWarpLanes;
  const int blocks = (source.examples + kExamples - 1) / kExamples;
  AddParts<<<static_cast<unsigned>(blocks), kThreads, 0, queue>>>(
      workspace, plan.tiles() * plan.output_warps, source.examples, squared);
  return Name(cudaGetLastError());
}

template <typename Source>
const char* Gradients(const Source& source, const FusedPlan& plan, FusedPrecision precision,
                      float* result, DeviceStream stream) {
  const std::int64_t entries =
      static_cast<std::int64_t>(source.examples) * plan.groups * source.m * source.n;
  if (entries == 0) return nullptr;
  auto* const queue = static_cast<cudaStream_t>(stream);
  if (source.pieces() == 0) {
    return Name(
        cudaMemsetAsync(result, 0, static_cast<std::size_t>(entries) * sizeof(float), queue));
  }
  FusedWork work = WorkOf(plan, plan.norms);
  work.gradients = result;
  return Name(LaunchGradients(source, plan, precision, work, queue));
}

template <typename Source>
const char* Sum(const Source& source, const FusedPlan& plan, FusedPrecision precision,
                const double* factors, double* workspace, const FusedResult& result,
                DeviceStream stream) {
  auto* const queue = static_cast<cudaStream_t>(stream);
  const std::int64_t entries = static_cast<std::int64_t>(plan.groups) * source.m * source.n;
  if (entries == 0) return nullptr;
  if (source.examples == 0 || source.pieces() == 0) {
    const auto count = static_cast<std::size_t>(entries);
    return Name(result.float64 != nullptr
                    ? cudaMemsetAsync(result.float64, 0, count * sizeof(double), queue)
                    : cudaMemsetAsync(result.float32, 0, count * sizeof(float), queue));
  }
  FusedWork work = WorkOf(plan, plan.sums);
  work.factors = factors;
  work.partial = workspace;
  const cudaError_t error = LaunchSums(source, plan, precision, work, queue);
  if (error != cudaSuccess) return Name(error);
  const dim3 threads(kWarpLanes, kAddRows);
  const auto blocks = static_cast<unsigned>((entries + kWarpLanes - 1) / kWarpLanes);
  AddChunks<<<blocks, threads, 0, queue>>>(workspace, plan.sums.chunks, entries, result);
  return Name(cudaGetLastError());
}

}  // namespace

const char* AddFusedNorms(const RowsSource& source, const FusedPlan& plan, FusedPrecision precision,
                          double* workspace, double* squared, DeviceStream stream) {
  return AddNorms(source, plan, precision, workspace, squared, stream);
}

const char* AddFusedNorms(const WindowSource& source, const FusedPlan& plan,
                          FusedPrecision precision, double* workspace, double* squared,
                          DeviceStream stream) {
  return AddNorms(source, plan, precision, workspace, squared, stream);
}

const char* FusedGradients(const RowsSource& source, const FusedPlan& plan,
                           FusedPrecision precision, float* result, DeviceStream stream) {
  return Gradients(source, plan, precision, result, stream);
}

const char* FusedGradients(const WindowSource& source, const FusedPlan& plan,
                           FusedPrecision precision, float* result, DeviceStream stream) {
  return Gradients(source, plan, precision, result, stream);
}

const char* FusedSum(const RowsSource& source, const FusedPlan& plan, FusedPrecision precision,
                     const double* factors, double* workspace, const FusedResult& result,
                     DeviceStream stream) {
  return Sum(source, plan, precision, factors, workspace, result, stream);
}

const char* FusedSum(const WindowSource& source, const FusedPlan& plan, FusedPrecision precision,
                     const double* factors, double* workspace, const FusedResult& result,
                     DeviceStream stream) {
  return Sum(source, plan, precision, factors, workspace, result, stream);
}

}  // namespace sordino
