#include "sordino/mechanisms/integer_noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

// At sigma >= 2^33 steps, the mass of the discrete Gaussian at k differs from that of the interval
// [k - 1/2, k + 1/2] under the continuous one by a factor 1 + ((k/sigma)^2 - 1) / (24 sigma^2) and
// higher terms: below 2^-63 for |k| <= 13 sigma. Two densities of d coordinates each cost 2 d 2^-63
// in epsilon, which the charge covers up to the number of coordinates that is allowed.
constexpr double kGridCharge = 0x1p-40;
constexpr std::size_t kMaxCoordinates = std::size_t{1} << 20;
// An integer plus a rounded continuous Gaussian is post-processing of the continuous mechanism. In
// total variation the discrete Gaussian is half the mean of |z^2 - 1| / (24 sigma^2) from the
// rounded one, below 2^-71 by the same expansion; its missing tail adds TotalVariationBound().
constexpr double kDrawFailure = 0x1p-70;
static_assert(0x1p-71 + DiscreteGaussian::TotalVariationBound() < kDrawFailure);
constexpr double kSupportSigmas = 13;  // discrete_gaussian.h: nothing is drawn beyond
constexpr int kNoiseBits = 37;
constexpr int kRecordBits = 50;

// mu = 13 - z with d Q(z) <= share, where Q is the upper tail of the normal distribution. Under
// one neighbour a coordinate lies within 13 sigma of a centre that is mu sigma away at most; it
// leaves the support of the other neighbour with probability Q(13 - mu) at most.
double LargestMuWithinSupport(double share, std::size_t dimension) {
  const double each = share / static_cast<double>(dimension);
  return kSupportSigmas - UpperQuantile(each);
}

}  // namespace

double NormalHalfWidth(double confidence) { return UpperQuantile((1 - confidence) / 2); }

double GridNoiseMultiplier(NoiseKind kind, Epsilon epsilon, Delta delta, std::size_t dimension,
                           GaussianCalibration calibration) {
  if (kind == NoiseKind::kLaplace) return LaplaceNoise(epsilon).value();
  if (dimension > kMaxCoordinates) {
    throw Error(fmt::format(
        "Gaussian noise is drawn for at most {} values at once, not {}; release fewer or use "
        "Laplace noise.",
        kMaxCoordinates, dimension));
  }
  double multiplier = AnalyticGaussianNoise(epsilon, delta).value();
  if (calibration == GaussianCalibration::kClassic) {
    multiplier = std::max(multiplier, ClassicGaussianNoise(epsilon, delta).value());
  }
  if (!(epsilon.value() >= 0x1p-30)) {
    throw Error(fmt::format("Gaussian noise on a grid needs an epsilon of at least 1e-9, not {}.",
                            epsilon.value()));
  }
  const double charged =
      GaussianMu(epsilon.value() - kGridCharge, std::log(delta.value()) + std::log1p(-0x1p-30));
  const double support = LargestMuWithinSupport(delta.value() * 0x1p-31, dimension);
  if (!(support > 0x1p-20)) {
    throw Error(fmt::format(
        "delta {} is too small for {} values at once with Gaussian noise; use a delta above 1e-25 "
        "or Laplace noise.",
        delta.value(), dimension));
  }
  return std::max(multiplier, (1 + 0x1p-50) / std::min(charged, support));
}

double NoiseFailure(NoiseKind kind, std::size_t draws) {
  return kind == NoiseKind::kGaussian ? static_cast<double>(draws) * kDrawFailure : 0;
}

int GridExponent(double noise_scale, double magnitude) {
  SORDINO_CHECK(
      noise_scale > 0 && noise_scale < kInfinity && magnitude >= 0 && magnitude < kInfinity,
      "a grid needs finite noise");
  int exponent = std::ilogb(noise_scale) - kNoiseBits;
  if (magnitude > 0) exponent = std::max(exponent, std::ilogb(magnitude) + 1 - kRecordBits);
  // Steps stay normal numbers, so that dividing by one is exact.
  return std::clamp(exponent, -900, 900);
}

IntegerNoise::IntegerNoise(NoiseKind kind, const IntegerSensitivity& sensitivity, double multiplier)
    : kind_(kind) {
  const double unit = kind == NoiseKind::kLaplace ? sensitivity.l1 : sensitivity.l2;
  SORDINO_CHECK(unit > 0 && multiplier > 0, "noise needs a sensitivity above 0");
  if (!(unit < 0x1p62)) {
    throw Error(
        "the rows of one user may move the sum by more than a 62-bit integer; use a smaller cap of "
        "rows per user or a smaller epsilon.");
  }
  // Two roundings up cover the product's own rounding.
  scale_ = std::nextafter(std::nextafter(unit * multiplier, kInfinity), kInfinity);
  if (kind == NoiseKind::kLaplace) {
    scale_ = std::max(scale_, DiscreteLaplace::kMinScale);
    if (scale_ > DiscreteLaplace::kMaxScale) {
      throw Error(fmt::format(
          "the noise would span {:.3g} steps of the smallest grid, more than 2^40; use a larger "
          "epsilon.",
          scale_));
    }
    laplace_.emplace(scale_);
  } else {
    if (scale_ < 0x1p33) {
      throw Error(
          "the grid of such values is too coarse for Gaussian noise of this size; move the bounds "
          "nearer to 0, or use a smaller epsilon or Laplace noise.");
    }
    if (scale_ > DiscreteGaussian::kMaxSigma) {
      throw Error(fmt::format(
          "the noise would span {:.3g} steps of the smallest grid, more than 2^40; use a larger "
          "epsilon or delta.",
          scale_));
    }
    gaussian_.emplace(scale_);
  }
}

std::int64_t IntegerNoise::operator()(Generator& generator) const {
  return laplace_ ? (*laplace_)(generator) : (*gaussian_)(generator);
}

double IntegerNoise::Variance() const {
  if (kind_ == NoiseKind::kGaussian) return scale_ * scale_;
  const double s = std::sinh(1 / (2 * scale_));
  return 1 / (2 * s * s);
}

double IntegerNoise::HalfWidth(double confidence) const {
  SORDINO_CHECK(confidence > 0 && confidence < 1, "a confidence lies between 0 and 1");
  if (kind_ == NoiseKind::kGaussian) return NormalHalfWidth(confidence) * scale_ + 1;
  const double t = scale_ * std::log(2 / ((1 - confidence) * (1 + std::exp(-1 / scale_)))) - 1;
  return std::max(0.0, std::ceil(t));
}

}  // namespace sordino
