#include "sordino/mechanisms/means.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/mechanisms/calibration.h"
#include "sordino/mechanisms/integer_noise.h"
#include "sordino/mechanisms/internal/additive_statistic.h"
#include "sordino/mechanisms/internal/clipped_row.h"
#include "sordino/mechanisms/streamed_statistic.h"

namespace sordino {
namespace {

using internal::Int128;

void CheckNotEmpty(std::size_t n) {
  if (n == 0) throw Error("the mean of no records does not exist; give at least one record.");
}

double CheckedRoot(double second_moment_root) {
  CheckRange("the root of the second moment", second_moment_root, 0, true, kInfinity, true);
  return second_moment_root;
}

double Square(double x) { return x * x; }

}  // namespace

Release PrivateBinaryMean(std::span<const std::uint8_t> data, Epsilon epsilon, Generator& generator,
                          double confidence) {
  CheckNotEmpty(data.size());
  CheckRange("the confidence", confidence, 0, true, 1, true);
  std::int64_t ones = 0;
  for (const std::uint8_t x : data) ones += x != 0 ? 1 : 0;
  // Replacing one record moves the number of ones by at most 1.
  const IntegerNoise noise(NoiseKind::kLaplace, {1, 1}, LaplaceNoise(epsilon).value());
  const double n = static_cast<double>(data.size());
  const double mean = static_cast<double>(ones + noise(generator)) / n;
  const double half = noise.HalfWidth(confidence) / n;
  Release release;
  release.values = {mean};
  release.intervals = {{mean - half, mean + half}};
  release.confidence = confidence;
  release.noise_scale = noise.scale() / n;
  release.epsilon = epsilon;
  release.event = Event::DiscreteLaplace(noise.scale(), 1, Adjacency::kReplaceOne);
  release.is_private = generator.IsPrivate();
  return release;
}

Release PrivateBoundedMean(std::span<const double> data, const Bounds& bounds, Epsilon epsilon,
                           Generator& generator, double confidence) {
  CheckNotEmpty(data.size());
  const PrivacyUnit unit{.adjacency = Adjacency::kReplaceOne, .count_is_public = true};
  const auto sum = MakeSum(bounds, unit, {.epsilon = epsilon, .confidence = confidence});
  for (const double x : data) sum->Add(0, x);
  // Dividing by the public n is post-processing. The mean is not clamped to the bounds, so that it
  // stays unbiased and the predicted error holds.
  Release release = sum->Finish(generator).front();
  const double n = static_cast<double>(data.size());
  release.values.front() /= n;
  release.intervals.front().lower /= n;
  release.intervals.front().upper /= n;
  release.noise_scale /= n;
  return release;
}

Release PrivateClippedMean(std::span<const double> data, double second_moment_root, Epsilon epsilon,
                           Generator& generator, double confidence) {
  CheckNotEmpty(data.size());
  const double tau = ClippedMeanThreshold(data.size(), second_moment_root, epsilon);
  std::vector<double> finite(data.begin(), data.end());
  for (double& x : finite) {
    if (!std::isfinite(x)) x = 0;
  }
  return PrivateBoundedMean(finite, Bounds(-tau, tau), epsilon, generator, confidence);
}

Release PrivateVectorMean(std::span<const double> data, std::size_t dimension, ClipNorm tau,
                          Epsilon epsilon, Delta delta, Generator& generator, double confidence) {
  if (dimension == 0 || data.size() % dimension != 0) {
    throw Error(
        fmt::format("{} numbers are not whole records of dimension {}.", data.size(), dimension));
  }
  CheckNotEmpty(data.size());
  CheckRange("the confidence", confidence, 0, true, 1, true);
  const double d = static_cast<double>(dimension);
  const std::size_t records = data.size() / dimension;
  const double n = static_cast<double>(records);
  const double multiplier = GridNoiseMultiplier(NoiseKind::kGaussian, epsilon, delta, dimension);
  const double step = std::ldexp(1.0, GridExponent(2 * tau.value() * multiplier, tau.value()));
  const double longest = internal::LongestRow(tau.value(), step, dimension);
  const IntegerNoise noise(NoiseKind::kGaussian, {2 * longest * d, 2 * longest}, multiplier);

  std::vector<Int128> sums(dimension, 0);
  for (std::size_t row = 0; row < data.size(); row += dimension) {
    internal::AddClippedRow(data.subspan(row, dimension), tau.value(), step, sums.data());
  }

  Release release;
  const double half = (noise.HalfWidth(confidence) * step) / n + step;
  for (const Int128 sum : sums) {
    const double mean = static_cast<double>(sum + noise(generator)) * step / n;
    release.values.push_back(mean);
    release.intervals.push_back({mean - half, mean + half});
  }
  release.confidence = confidence;
  release.noise_scale = noise.scale() * step / n;
  release.epsilon = epsilon;
  release.delta = delta;
  release.event = Event::Gaussian(NoiseMultiplier(multiplier), Adjacency::kReplaceOne);
  release.failure = NoiseFailure(NoiseKind::kGaussian, dimension);
  release.is_private = generator.IsPrivate();
  return release;
}

double BinaryMeanError(std::uint64_t n, double p, Epsilon epsilon) {
  const double count = static_cast<double>(n);
  const IntegerNoise noise(NoiseKind::kLaplace, {1, 1}, LaplaceNoise(epsilon).value());
  return p * (1 - p) / count + noise.Variance() / Square(count);
}

double BinaryMeanErrorBound(std::uint64_t n, Epsilon epsilon) {
  const double count = static_cast<double>(n);
  return 1 / (4 * count) + 2 / Square(count * epsilon.value());
}

double BoundedMeanError(std::uint64_t n, double variance, const Bounds& bounds, Epsilon epsilon) {
  const double count = static_cast<double>(n);
  return variance / count + 2 * Square(bounds.width() / (count * epsilon.value()));
}

double ClippedMeanThreshold(std::uint64_t n, double second_moment_root, Epsilon epsilon) {
  return CheckedRoot(second_moment_root) * std::sqrt(static_cast<double>(n) * epsilon.value()) / 2;
}

double ClippedMeanErrorBound(std::uint64_t n, double second_moment_root, Epsilon epsilon) {
  const double count = static_cast<double>(n);
  const double s2 = Square(CheckedRoot(second_moment_root));
  return s2 / count + 2.25 * s2 / (count * epsilon.value());
}

double LectureClippedMeanErrorBound(std::uint64_t n, double second_moment_root, Epsilon epsilon) {
  const double count = static_cast<double>(n);
  const double s2 = Square(CheckedRoot(second_moment_root));
  return s2 / count + 4 * s2 / (count * epsilon.value());
}

ClipNorm VectorMeanThreshold(std::uint64_t n, std::size_t dimension, double second_moment_root,
                             Epsilon epsilon, Delta delta) {
  const double m = GridNoiseMultiplier(NoiseKind::kGaussian, epsilon, delta, dimension);
  const double root_d = std::sqrt(static_cast<double>(dimension));
  return ClipNorm(CheckedRoot(second_moment_root) *
                  std::sqrt(static_cast<double>(n) / (8 * m * root_d)));
}

double VectorMeanErrorBound(std::uint64_t n, std::size_t dimension, double second_moment_root,
                            ClipNorm tau, Epsilon epsilon, Delta delta) {
  const double count = static_cast<double>(n);
  const double m = GridNoiseMultiplier(NoiseKind::kGaussian, epsilon, delta, dimension);
  const double s2 = Square(CheckedRoot(second_moment_root));
  const double noise = static_cast<double>(dimension) * Square(2 * tau.value() * m / count);
  return s2 / count + Square(s2) / (16 * Square(tau.value())) + noise;
}

}  // namespace sordino
