#include "sordino/convex/internal/vector_noise.h"

#include <ATen/Functions.h>

#include <cmath>
#include <numbers>
#include <span>

#include "sordino/base/check.h"
#include "sordino/noise/noise_component.h"
#include "sordino/random/grid_noise.h"

namespace sordino::internal {
namespace {

template <typename Noise>
NoisedVector AddGridNoise(const at::Tensor& value, double sensitivity, double multiplier,
                          double moved, Generator& generator) {
  SORDINO_CHECK(sensitivity > 0 && multiplier > 0, "noise needs a sensitivity above 0");
  const double exact = multiplier * sensitivity * (1 + 0x1p-40);
  // The enlarged scale has the same grid or the next: it is at most twice as coarse.
  const double granularity = 2 * Noise(exact).Granularity();
  const double scale = exact + multiplier * moved * granularity * (1 + 0x1p-40);
  const Noise noise(scale);
  SORDINO_CHECK(noise.Granularity() <= granularity, "rounding takes over the noise");
  at::Tensor noised = value.to(at::kDouble).contiguous().clone();
  noise.AddTo(generator, std::span<double>(noised.mutable_data_ptr<double>(),
                                           static_cast<std::size_t>(noised.numel())));
  return {std::move(noised), scale, scale};
}

}  // namespace

NoisedVector AddGaussianNoise(const at::Tensor& value, double sensitivity, double multiplier,
                              Generator& generator) {
  return AddGridNoise<GridGaussian>(value, sensitivity, multiplier,
                                    std::sqrt(static_cast<double>(value.numel())), generator);
}

NoisedVector AddLaplaceNoise(const at::Tensor& value, double sensitivity, double multiplier,
                             Generator& generator) {
  NoisedVector noised = AddGridNoise<GridLaplace>(value, sensitivity, multiplier,
                                                  static_cast<double>(value.numel()), generator);
  noised.deviation = noised.scale * std::numbers::sqrt2;
  return noised;
}

double GaussianFailure(double draws) { return GaussianNoise().Distance(draws); }

}  // namespace sordino::internal
