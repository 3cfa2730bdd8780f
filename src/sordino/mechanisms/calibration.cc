#include "sordino/mechanisms/calibration.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

void CheckGaussianDelta(Delta delta) {
  if (delta.value() > 0 && delta.value() < 1) return;
  throw Error(fmt::format(
      "Gaussian noise needs a delta strictly between 0 and 1, not {}; give one well below 1/n, or "
      "use Laplace noise for delta 0.",
      delta.value()));
}

double RoundUp(double value) { return std::nextafter(value, kInfinity); }

}  // namespace

NoiseMultiplier LaplaceNoise(Epsilon epsilon) {
  if (!(epsilon.value() > 0 && epsilon.value() < kInfinity)) {
    throw Error(
        fmt::format("Laplace noise needs a finite epsilon above 0, not {}.", epsilon.value()));
  }
  return NoiseMultiplier(RoundUp(1 / epsilon.value()));
}

NoiseMultiplier ClassicGaussianNoise(Epsilon epsilon, Delta delta) {
  CheckGaussianDelta(delta);
  if (!(epsilon.value() > 0 && epsilon.value() <= 1)) {
    throw Error(fmt::format(
        "the classic Gaussian calibration is proven for epsilon in (0, 1] and too small above, and "
        "epsilon is {}; use the analytic calibration.",
        epsilon.value()));
  }
  const double sigma = std::sqrt(2 * std::log(1.25 / delta.value())) / epsilon.value();
  return NoiseMultiplier(sigma * (1 + 0x1p-50));
}

NoiseMultiplier AnalyticGaussianNoise(Epsilon epsilon, Delta delta) {
  CheckGaussianDelta(delta);
  if (epsilon.value() == kInfinity) {
    throw Error("an infinite epsilon asks for no noise; give a finite one.");
  }
  // One unit below the logarithm, which may have been rounded up.
  const double log_delta = std::nextafter(std::log(delta.value()), -kInfinity);
  return NoiseMultiplier(RoundUp(1 / GaussianMu(epsilon.value(), log_delta)));
}

}  // namespace sordino
