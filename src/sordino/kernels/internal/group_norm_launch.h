// Group norm of float32 images, forward and backward, by plain pointers. A stream is a
// cudaStream_t.
#ifndef SORDINO_KERNELS_INTERNAL_GROUP_NORM_LAUNCH_H_
#define SORDINO_KERNELS_INTERNAL_GROUP_NORM_LAUNCH_H_

#include <cstdint>

namespace sordino::kernels {

// Images are [images, groups, channels, positions], `channels` of a group.
struct GroupNormShape {
  std::int64_t images = 0;
  std::int64_t groups = 0;
  std::int64_t channels = 0;
  std::int64_t positions = 0;
};

struct GroupNormArrays {
  GroupNormShape shape;
  const float* input = nullptr;
  const float* scale = nullptr;  // [groups, channels]
  const float* shift = nullptr;  // [groups, channels]
  float eps = 0;
  float* output = nullptr;
  float* mean = nullptr;       // [images, groups]
  float* deviation = nullptr;  // [images, groups]: one over the standard deviation
};
void LaunchGroupNorm(const GroupNormArrays& arrays, void* stream);

struct GroupNormGradientArrays {
  GroupNormShape shape;
  const float* gradient = nullptr;  // of the output
  // One image for all gradients: input, mean and deviation are of one.
  bool one_input = false;
  const float* input = nullptr;
  const float* mean = nullptr;
  const float* deviation = nullptr;
  const float* scale = nullptr;
  float* of_input = nullptr;
  float* of_scale = nullptr;  // [images, groups, channels]
  float* of_shift = nullptr;  // [images, groups, channels]
};
void LaunchGroupNormGradient(const GroupNormGradientArrays& arrays, void* stream);

}  // namespace sordino::kernels

#endif  // SORDINO_KERNELS_INTERNAL_GROUP_NORM_LAUNCH_H_
