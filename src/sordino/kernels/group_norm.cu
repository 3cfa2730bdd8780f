// A block for each group of an image. What it reads again lies in the caches: an image is read from
// memory once.
#include <cuda_runtime_api.h>

#include "sordino/kernels/internal/group_norm_launch.h"

namespace sordino::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxWarps = 8;

__device__ float WarpSum(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, offset);
  }
  return value;
}

// The sum over all threads of a block, in each of them; the order depends on the size of the block
// alone. `parts` has an entry for each warp.
__device__ float BlockSum(float value, float* parts) {
  value = WarpSum(value);
  __syncthreads();  // somebody may still read what was there
  if (threadIdx.x % kWarp == 0) parts[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0;
  for (int warp = 0; warp < static_cast<int>(blockDim.x) / kWarp; ++warp) sum += parts[warp];
  return sum;
}

__device__ float Sum(float4 v) { return (v.x + v.y) + (v.z + v.w); }
__device__ float Sum(float v) { return v; }
__device__ float4 Less(float4 v, float m) { return {v.x - m, v.y - m, v.z - m, v.w - m}; }
__device__ float Less(float v, float m) { return v - m; }
__device__ float4 Times(float4 v, float4 w) {
  return {v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w};
}
__device__ float Times(float v, float w) { return v * w; }
__device__ float4 Line(float4 v, float a, float b) {
  return {v.x * a + b, v.y * a + b, v.z * a + b, v.w * a + b};
}
__device__ float Line(float v, float a, float b) { return v * a + b; }
__device__ float4 Plus(float4 v, float4 w) {
  return {v.x + w.x, v.y + w.y, v.z + w.z, v.w + w.w};
}
__device__ float Plus(float v, float w) { return v + w; }

// Entries are float4 where the positions of a channel are a multiple of four, else float.
template <typename Entry>
__global__ void GroupNormKernel(GroupNormArrays a) {
  constexpr int kWidth = sizeof(Entry) / sizeof(float);
  __shared__ float parts[kMaxWarps];
  const std::int64_t block = blockIdx.x;
  const std::int64_t group = block % a.shape.groups;
  const int positions = static_cast<int>(a.shape.positions / kWidth);
  const int entries = positions * static_cast<int>(a.shape.channels);
  const auto count = static_cast<float>(a.shape.channels * a.shape.positions);
  const auto* input = reinterpret_cast<const Entry*>(a.input) + block * entries;
  auto* output = reinterpret_cast<Entry*>(a.output) + block * entries;
  float sum = 0;
  for (int k = static_cast<int>(threadIdx.x); k < entries; k += static_cast<int>(blockDim.x)) {
    sum += Sum(input[k]);
  }
  const float mean = BlockSum(sum, parts) / count;
  float squares = 0;
  for (int k = static_cast<int>(threadIdx.x); k < entries; k += static_cast<int>(blockDim.x)) {
    const Entry centred = Less(input[k], mean);
    squares += Sum(Times(centred, centred));
  }
  const float variance = BlockSum(squares, parts) / count;
  const float deviation = 1.0f / sqrtf(variance + a.eps);
  if (threadIdx.x == 0) {
    a.mean[block] = mean;
    a.deviation[block] = deviation;
  }
  const float* scale = a.scale + group * a.shape.channels;
  const float* shift = a.shift + group * a.shape.channels;
  for (int k = static_cast<int>(threadIdx.x); k < entries; k += static_cast<int>(blockDim.x)) {
    const int channel = k / positions;
    output[k] = Line(Less(input[k], mean), deviation * scale[channel], shift[channel]);
  }
}

// With x the input less its mean, d the deviation and N the entries of a group:
//   of shift = sum g, of scale = d sum g x, both over the positions of a channel;
//   of input = d scale g - d / N (sum over channels of scale * of shift)
//                        - d^2 x / N (sum over channels of scale * of scale).
// A warp takes a channel.
template <typename Entry>
__global__ void GroupNormGradientKernel(GroupNormGradientArrays a) {
  constexpr int kWidth = sizeof(Entry) / sizeof(float);
  __shared__ float parts[kMaxWarps];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const std::int64_t block = blockIdx.x;
  const std::int64_t group = block % a.shape.groups;
  const int positions = static_cast<int>(a.shape.positions / kWidth);
  const int channels = static_cast<int>(a.shape.channels);
  const int entries = positions * channels;
  const auto count = static_cast<float>(a.shape.channels * a.shape.positions);
  const std::int64_t normed = a.one_input ? group : block;
  const auto* gradient = reinterpret_cast<const Entry*>(a.gradient) + block * entries;
  const auto* input = reinterpret_cast<const Entry*>(a.input) + normed * entries;
  auto* of_input = reinterpret_cast<Entry*>(a.of_input) + block * entries;
  const float* scale = a.scale + group * channels;
  const float mean = a.mean[normed];
  const float deviation = a.deviation[normed];
  float all_shift = 0;
  float all_scale = 0;
  for (int channel = warp; channel < channels; channel += warps) {
    float of_shift = 0;
    float of_scale = 0;
    for (int k = channel * positions + lane; k < (channel + 1) * positions; k += kWarp) {
      of_shift += Sum(gradient[k]);
      of_scale += Sum(Times(gradient[k], Less(input[k], mean)));
    }
    of_shift = WarpSum(of_shift);
    of_scale = WarpSum(of_scale) * deviation;
    if (lane != 0) continue;
    a.of_shift[block * channels + channel] = of_shift;
    a.of_scale[block * channels + channel] = of_scale;
    all_shift += scale[channel] * of_shift;
    all_scale += scale[channel] * of_scale;
  }
  const float flat = -deviation / count * BlockSum(all_shift, parts);
  const float tilt = -deviation * deviation / count * BlockSum(all_scale, parts);
  for (int k = static_cast<int>(threadIdx.x); k < entries; k += static_cast<int>(blockDim.x)) {
    const int channel = k / positions;
    of_input[k] = Plus(Line(gradient[k], deviation * scale[channel], flat),
                       Line(Less(input[k], mean), tilt, 0.0f));
  }
}

unsigned Blocks(const GroupNormShape& shape) {
  return static_cast<unsigned>(shape.images * shape.groups);
}

// As many warps as have something to do.
unsigned Threads(std::int64_t warps) {
  return static_cast<unsigned>(kWarp * (warps < 1 ? 1 : warps > kMaxWarps ? kMaxWarps : warps));
}

// A row of four is read at once where all rows begin at a multiple of 16 bytes.
bool TakesFour(const GroupNormShape& shape) { return shape.positions % 4 == 0; }

}  // namespace

void LaunchGroupNorm(const GroupNormArrays& arrays, void* stream) {
  const GroupNormShape& shape = arrays.shape;
  auto* const on = static_cast<cudaStream_t>(stream);
  const std::int64_t entries = shape.channels * shape.positions;
  if (TakesFour(shape)) {
    GroupNormKernel<float4><<<Blocks(shape), Threads(entries / (8 * kWarp)), 0, on>>>(arrays);
  } else {
    GroupNormKernel<float><<<Blocks(shape), Threads(entries / (4 * kWarp)), 0, on>>>(arrays);
  }
}

void LaunchGroupNormGradient(const GroupNormGradientArrays& arrays, void* stream) {
  const GroupNormShape& shape = arrays.shape;
  auto* const on = static_cast<cudaStream_t>(stream);
  if (TakesFour(shape)) {
    GroupNormGradientKernel<float4><<<Blocks(shape), Threads(shape.channels), 0, on>>>(arrays);
  } else {
    GroupNormGradientKernel<float><<<Blocks(shape), Threads(shape.channels), 0, on>>>(arrays);
  }
}

}  // namespace sordino::kernels
