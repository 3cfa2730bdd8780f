#include "sordino/kernels/group_norm.h"

#include <ATen/ops/alias.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <limits>

#include "sordino/base/check.h"
#include "sordino/kernels/alignment.h"
#include "sordino/kernels/internal/group_norm_launch.h"
#include "sordino/kernels/launch.h"

namespace sordino {
namespace {

kernels::GroupNormShape ShapeOf(const at::Tensor& input, std::int64_t groups) {
  const std::int64_t images = input.size(0);
  const std::int64_t channels = input.size(1);
  return {.images = images,
          .groups = groups,
          .channels = channels / groups,
          .positions = input.numel() / (images * channels)};
}

bool IsPacked(const at::Tensor& tensor) {
  return kKernelsAreBuilt && tensor.is_cuda() && tensor.scalar_type() == at::kFloat &&
         tensor.is_contiguous() && kernels::IsAligned(tensor.const_data_ptr());
}

}  // namespace

bool HasGroupNorm(const at::Tensor& input, std::int64_t groups, const at::Tensor& scale,
                  const at::Tensor& shift) {
  if (input.dim() < 2 || input.numel() == 0 || groups < 1 || !scale.defined() || !shift.defined()) {
    return false;
  }
  const std::int64_t channels = input.size(1);
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return channels % groups == 0 && scale.sizes() == at::IntArrayRef{channels} &&
         shift.sizes() == at::IntArrayRef{channels} && IsPacked(input) && IsPacked(scale) &&
         IsPacked(shift) && scale.device() == input.device() && shift.device() == input.device() &&
         input.size(0) * groups <= kMost && input.numel() / (input.size(0) * groups) <= kMost;
}

bool HasGroupNormOfOne(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& mean,
                       const at::Tensor& deviation, const at::Tensor& scale) {
  return mean.defined() && deviation.defined() && HasGroupNorm(input, mean.size(1), scale, scale) &&
         input.size(0) == 1 && IsPacked(mean) && IsPacked(deviation) && gradient.is_cuda() &&
         gradient.device() == input.device() && gradient.scalar_type() == at::kFloat &&
         gradient.sizes().slice(1) == input.sizes().slice(1) &&
         gradient.size(0) * mean.size(1) <= std::numeric_limits<std::int32_t>::max();
}

GroupNormResult DeviceGroupNorm(const at::Tensor& input, std::int64_t groups,
                                const at::Tensor& scale, const at::Tensor& shift, double eps) {
  // Operations of libtorch that do nothing: a recording keeps what they are given, and does not see
  // what our own kernels read (device/recorded_graph.h).
  static_cast<void>(at::alias(scale));
  static_cast<void>(at::alias(shift));
  GroupNormResult result{at::empty_like(input), at::empty({input.size(0), groups}, input.options()),
                         at::empty({input.size(0), groups}, input.options())};
  OnDeviceOf(input, [&](auto stream) {
    kernels::LaunchGroupNorm({.shape = ShapeOf(input, groups),
                              .input = input.const_data_ptr<float>(),
                              .scale = scale.const_data_ptr<float>(),
                              .shift = shift.const_data_ptr<float>(),
                              .eps = static_cast<float>(eps),
                              .output = result.output.mutable_data_ptr<float>(),
                              .mean = result.mean.mutable_data_ptr<float>(),
                              .deviation = result.deviation.mutable_data_ptr<float>()},
                             stream);
  });
  return result;
}

GroupNormGradients DeviceGroupNormGradients(const at::Tensor& gradient, const at::Tensor& input,
                                            const at::Tensor& mean, const at::Tensor& deviation,
                                            const at::Tensor& scale) {
  SORDINO_CHECK(input.size(0) == 1 || input.size(0) == gradient.size(0),
                "an image for each gradient, or one for all");
  const at::Tensor own =
      IsPacked(gradient) ? gradient : gradient.clone(at::MemoryFormat::Contiguous);
  GroupNormGradients result{at::empty_like(own),
                            at::empty({own.size(0), own.size(1)}, own.options()),
                            at::empty({own.size(0), own.size(1)}, own.options())};
  OnDeviceOf(input, [&](auto stream) {
    kernels::LaunchGroupNormGradient({.shape = ShapeOf(own, mean.size(1)),
                                      .gradient = own.const_data_ptr<float>(),
                                      .one_input = input.size(0) != own.size(0),
                                      .input = input.const_data_ptr<float>(),
                                      .mean = mean.const_data_ptr<float>(),
                                      .deviation = deviation.const_data_ptr<float>(),
                                      .scale = scale.const_data_ptr<float>(),
                                      .of_input = result.input.mutable_data_ptr<float>(),
                                      .of_scale = result.scale.mutable_data_ptr<float>(),
                                      .of_shift = result.shift.mutable_data_ptr<float>()},
                                     stream);
  });
  return result;
}

}  // namespace sordino
