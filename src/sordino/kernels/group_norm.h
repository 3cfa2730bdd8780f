// Group norm of all images of a batch in one launch forward, and one backward that leaves the
// gradients of scale and shift for each image by itself. libtorch takes three and five, and hands
// out the sums of scale and shift over the images only.
//
// A block of threads sees one group of one image, so what an image leads to depends on that image
// alone, and its sums have a fixed order.
#ifndef SORDINO_KERNELS_GROUP_NORM_H_
#define SORDINO_KERNELS_GROUP_NORM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sordino {

struct GroupNormResult {
  at::Tensor output;
  at::Tensor mean;       // [images, groups]
  at::Tensor deviation;  // one over the standard deviation
};

struct GroupNormGradients {
  at::Tensor input;
  at::Tensor scale;  // [images, channels]
  at::Tensor shift;
};

// Whether the kernels are built and take these: [images, channels, ...] and [channels], float32 and
// contiguous on one CUDA device.
bool HasGroupNorm(const at::Tensor& input, std::int64_t groups, const at::Tensor& scale,
                  const at::Tensor& shift);

// The same for gradients of weights: `input` is one image, and `gradient` [examples, channels, ...]
// has one of it for each example.
bool HasGroupNormOfOne(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& mean,
                       const at::Tensor& deviation, const at::Tensor& scale);

// Plain tensors, nothing is recorded for derivatives.
GroupNormResult DeviceGroupNorm(const at::Tensor& input, std::int64_t groups,
                                const at::Tensor& scale, const at::Tensor& shift, double eps);
// `input` has an image for each of `gradient`, or one that all gradients are of.
GroupNormGradients DeviceGroupNormGradients(const at::Tensor& gradient, const at::Tensor& input,
                                            const at::Tensor& mean, const at::Tensor& deviation,
                                            const at::Tensor& scale);

}  // namespace sordino

#endif  // SORDINO_KERNELS_GROUP_NORM_H_
