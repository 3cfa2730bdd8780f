#include <cuda_runtime.h>

#include "sordino/kernels/row_launch.h"

namespace sordino::kernels {
namespace {

constexpr int kColumns = kSumColumns;  // threads side by side, each with one entry of a row
constexpr int kGroups = 8;             // of threads that share the rows of an example
constexpr int kRun = 8;                // rows that a thread adds in float32
constexpr int kLinesPerBlock = 8;

__device__ void Add(float4 value, double* sum) {
  sum[0] += static_cast<double>(value.x);
  sum[1] += static_cast<double>(value.y);
  sum[2] += static_cast<double>(value.z);
  sum[3] += static_cast<double>(value.w);
}
__device__ void Add(float value, double* sum) { sum[0] += static_cast<double>(value); }
__device__ float4 Plus(float4 v, float4 w) {
  return {v.x + w.x, v.y + w.y, v.z + w.z, v.w + w.w};
}
__device__ float Plus(float v, float w) { return v + w; }
__device__ float4 Normalised(float4 g, float4 x, float mean, float deviation) {
  return {g.x * ((x.x - mean) * deviation), g.y * ((x.y - mean) * deviation),
          g.z * ((x.z - mean) * deviation), g.w * ((x.w - mean) * deviation)};
}
__device__ float Normalised(float g, float x, float mean, float deviation) {
  return g * ((x - mean) * deviation);
}
__device__ float4 Rounded(const double* sum, float4 /*like*/) {
  return {static_cast<float>(sum[0]), static_cast<float>(sum[1]), static_cast<float>(sum[2]),
          static_cast<float>(sum[3])};
}
__device__ float Rounded(const double* sum, float /*like*/) { return static_cast<float>(sum[0]); }

// A block for kColumns entries of one example, whatever the others are. Entries are float4 where
// all rows begin at a multiple of 16 bytes, else float. kTogether: the rows of an example lie behind
// each other.
template <typename Entry, bool kNormalised, bool kTogether>
__global__ void ExampleSumsKernel(ExampleSumArrays a, int tiles) {
  constexpr int kWidth = sizeof(Entry) / sizeof(float);
  __shared__ double parts[kGroups][kColumns * kWidth];
  const std::int64_t example = blockIdx.x / tiles;
  const std::int64_t width = a.width / kWidth;
  const std::int64_t column = std::int64_t{blockIdx.x % tiles} * kColumns + threadIdx.x;
  const auto inner = static_cast<int>(a.inner);
  const auto rows = static_cast<int>(a.outer * a.inner);
  double sum[kWidth] = {};
  if (column < width) {
    const auto* values = reinterpret_cast<const Entry*>(a.values) + column;
    const auto* input = reinterpret_cast<const Entry*>(a.input) + column;
    for (int first = static_cast<int>(threadIdx.y); first < rows; first += kRun * kGroups) {
      // All rows of a run are read before the first is added.
      Entry terms[kRun];
#pragma unroll
      for (int k = 0; k < kRun; ++k) {
        const int r = min(first + k * kGroups, rows - 1);
        const int o = kTogether ? 0 : r / inner;
        const std::int64_t row = (o * a.examples + example) * inner + (r - o * inner);
        if constexpr (kNormalised) {
          terms[k] =
              Normalised(values[row * width], input[row * width], a.mean[row], a.deviation[row]);
        } else {
          terms[k] = values[row * width];
        }
      }
      Entry run = terms[0];
#pragma unroll
      for (int k = 1; k < kRun; ++k) {
        if (first + k * kGroups < rows) run = Plus(run, terms[k]);
      }
      Add(run, sum);
    }
  }
#pragma unroll
  for (int k = 0; k < kWidth; ++k) parts[threadIdx.y][threadIdx.x * kWidth + k] = sum[k];
  __syncthreads();
  if (threadIdx.y > 0 || column >= width) return;
  for (int group = 1; group < kGroups; ++group) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum[k] += parts[group][threadIdx.x * kWidth + k];
  }
  reinterpret_cast<Entry*>(a.result)[example * width + column] = Rounded(sum, Entry{});
}

// Rows of one entry that lie after each other: a warp for each example.
__global__ void LineSumsKernel(const float* values, float* result, std::int64_t lines,
                               std::int64_t length) {
  const std::int64_t line = std::int64_t{blockIdx.x} * kLinesPerBlock + threadIdx.y;
  if (line >= lines) return;
  const float* const own = values + line * length;
  double sum = 0;
  for (std::int64_t k = threadIdx.x; k < length; k += warpSize) sum += static_cast<double>(own[k]);
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(~0U, sum, static_cast<unsigned>(distance));
  }
  if (threadIdx.x == 0) result[line] = static_cast<float>(sum);
}

void LaunchLines(const ExampleSumArrays& arrays, cudaStream_t stream) {
  const auto blocks =
      static_cast<unsigned>((arrays.examples + kLinesPerBlock - 1) / kLinesPerBlock);
  const dim3 threads(32, kLinesPerBlock);
  LineSumsKernel<<<blocks, threads, 0, stream>>>(arrays.values, arrays.result, arrays.examples,
                                                 arrays.inner);
}

template <typename Entry>
void Launch(const ExampleSumArrays& arrays, cudaStream_t stream) {
  constexpr int kEntries = kColumns * static_cast<int>(sizeof(Entry) / sizeof(float));
  const auto tiles = static_cast<int>((arrays.width + kEntries - 1) / kEntries);
  const auto blocks = static_cast<unsigned>(arrays.examples * tiles);
  const dim3 threads(kColumns, kGroups);
  const bool normalised = arrays.input != nullptr;
  const bool together = arrays.outer == 1;
  const auto kernel = normalised ? (together ? ExampleSumsKernel<Entry, true, true>
                                             : ExampleSumsKernel<Entry, true, false>)
                                 : (together ? ExampleSumsKernel<Entry, false, true>
                                             : ExampleSumsKernel<Entry, false, false>);
  kernel<<<blocks, threads, 0, stream>>>(arrays, tiles);
}

}  // namespace

void LaunchExampleSums(const ExampleSumArrays& arrays, void* stream) {
  auto* const on = static_cast<cudaStream_t>(stream);
  if (arrays.width == 1 && arrays.outer == 1 && arrays.input == nullptr) {
    LaunchLines(arrays, on);
  } else if (arrays.fours) {
    Launch<float4>(arrays, on);
  } else {
    Launch<float>(arrays, on);
  }
}

}  // namespace sordino::kernels
