#include "sordino/mechanisms/additive_mechanism.h"

#include <fmt/format.h>

#include <algorithm>

#include "sordino/base/error.h"

namespace sordino {
namespace {

double CheckedSensitivity(double sensitivity, std::size_t dimension) {
  if (dimension == 0) throw Error("a mechanism releases at least one value; the dimension is 0.");
  if (!(sensitivity > 0)) {
    throw Error(
        "a sensitivity of 0 says that the data cannot change the value, so there is nothing to "
        "protect; release the value as it is or declare the right sensitivity.");
  }
  return sensitivity;
}

void CheckConfidence(double confidence) {
  CheckRange("the confidence", confidence, 0, true, 1, true);
}

// The sensitivity of the rounded query, in steps.
IntegerSensitivity InSteps(double sensitivity, const Grid& grid, std::size_t dimension) {
  const double l1 = grid.Enlarged(L1Sensitivity(sensitivity), dimension).value();
  const double l2 = grid.Enlarged(L2Sensitivity(sensitivity), dimension).value();
  return {l1 / grid.Granularity(), l2 / grid.Granularity()};
}

}  // namespace

namespace internal {

GridMechanism::GridMechanism(NoiseKind kind, double sensitivity, double multiplier,
                             std::size_t dimension)
    : dimension_(dimension),
      multiplier_(multiplier),
      grid_(GridExponent(CheckedSensitivity(sensitivity, dimension) * multiplier, sensitivity)),
      noise_(kind, InSteps(sensitivity, grid_, dimension), multiplier) {}

Release GridMechanism::Apply(std::span<const double> values, double confidence,
                             Generator& generator) const {
  CheckConfidence(confidence);
  if (values.size() != dimension_) {
    throw Error(fmt::format("the mechanism was made for {} values and was given {}.", dimension_,
                            values.size()));
  }
  Release release;
  release.confidence = confidence;
  release.noise_scale = noise_scale();
  release.is_private = generator.IsPrivate();
  const double half = noise_.HalfWidth(confidence) * grid_.Granularity() + grid_.RoundingError();
  for (const double value : values) {
    const double released = grid_.Value(grid_.Round(value) + noise_(generator));
    release.values.push_back(released);
    release.intervals.push_back({released - half, released + half});
  }
  return release;
}

}  // namespace internal

LaplaceMechanism::LaplaceMechanism(L1Sensitivity sensitivity, Epsilon epsilon,
                                   std::size_t dimension, Adjacency adjacency)
    : epsilon_(epsilon),
      // A vector of discrete Laplace noises is charged as what it surely is, epsilon-DP.
      event_(Event::Pure(epsilon, adjacency)),
      grid_(NoiseKind::kLaplace, sensitivity.value(), LaplaceNoise(epsilon).value(), dimension) {}

Release LaplaceMechanism::operator()(double value, Generator& generator, double confidence) const {
  return (*this)(std::span<const double>(&value, 1), generator, confidence);
}

Release LaplaceMechanism::operator()(std::span<const double> values, Generator& generator,
                                     double confidence) const {
  Release release = grid_.Apply(values, confidence, generator);
  release.epsilon = epsilon_;
  release.event = event_;
  return release;
}

GaussianMechanism::GaussianMechanism(L2Sensitivity sensitivity, Epsilon epsilon, Delta delta,
                                     std::size_t dimension, Adjacency adjacency,
                                     GaussianCalibration calibration)
    : epsilon_(epsilon),
      delta_(delta),
      event_(Event::None(adjacency)),
      grid_(NoiseKind::kGaussian, sensitivity.value(),
            GridNoiseMultiplier(NoiseKind::kGaussian, epsilon, delta,
                                std::max<std::size_t>(dimension, 1), calibration),
            dimension) {
  event_ = Event::Gaussian(NoiseMultiplier(grid_.multiplier()), adjacency);
}

Release GaussianMechanism::operator()(double value, Generator& generator, double confidence) const {
  return (*this)(std::span<const double>(&value, 1), generator, confidence);
}

Release GaussianMechanism::operator()(std::span<const double> values, Generator& generator,
                                      double confidence) const {
  Release release = grid_.Apply(values, confidence, generator);
  release.epsilon = epsilon_;
  release.delta = delta_;
  release.event = event_;
  release.failure = NoiseFailure(NoiseKind::kGaussian, values.size());
  return release;
}

}  // namespace sordino
