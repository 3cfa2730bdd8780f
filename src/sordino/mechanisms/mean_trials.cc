#include "sordino/mechanisms/mean_trials.h"

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/mechanisms/means.h"

namespace sordino {
namespace {

constexpr double kMeanNorm = 0.5;    // of mu
constexpr double kSecondMoment = 1;  // the root of E ||x||^2
constexpr double kTotalVariance = kSecondMoment * kSecondMoment - kMeanNorm * kMeanNorm;
constexpr double kBinaryMean = 0.5;

void CheckQuestion(const MeanQuestion& question) {
  if (question.records < 1 || question.dimension < 1) {
    throw Error("a mean needs 1 record and 1 dimension or more; give larger numbers.");
  }
  if (!(question.epsilon.value() > 0)) {
    throw Error("a private mean needs an epsilon above 0; give one.");
  }
  const bool vector = question.kind == MeanKind::kVector;
  if (vector && !(question.delta.value() > 0)) {
    throw Error("the mean of vectors has Gaussian noise, which needs a delta above 0; give one.");
  }
  if (!vector && (question.delta.value() > 0 || question.dimension > 1)) {
    throw Error("delta and dimension are for the mean of vectors; leave them out, or take vector.");
  }
}

// The squared distance of one private mean from mu.
class Trial {
 public:
  Trial(const MeanQuestion& question, std::uint64_t seed, Generator& noise)
      : question_(question), random_(seed), noise_(noise) {}

  double SquaredError() {
    switch (question_.kind) {
      case MeanKind::kBinary:
        return Binary();
      case MeanKind::kScalar:
        return Scalar();
      default:
        return Vector();
    }
  }

 private:
  double Binary() {
    std::vector<std::uint8_t> data(question_.records);
    for (std::uint8_t& x : data) x = static_cast<std::uint8_t>(random_() & 1U);
    return Square(PrivateBinaryMean(data, question_.epsilon, noise_).value() - kBinaryMean);
  }
  double Scalar() {
    const std::vector<double> data = Normals(question_.records, 1);
    return Square(PrivateClippedMean(data, kSecondMoment, question_.epsilon, noise_).value() -
                  kMeanNorm);
  }
  double Vector() {
    const auto d = static_cast<std::size_t>(question_.dimension);
    const std::vector<double> data = Normals(question_.records * question_.dimension, d);
    const ClipNorm tau = VectorMeanThreshold(question_.records, d, kSecondMoment, question_.epsilon,
                                             question_.delta);
    const Release release =
        PrivateVectorMean(data, d, tau, question_.epsilon, question_.delta, noise_);
    double square = 0;
    for (const double value : release.values) {
      square += Square(value - kMeanNorm / std::sqrt(static_cast<double>(d)));
    }
    return square;
  }
  std::vector<double> Normals(std::uint64_t count, std::size_t dimension) {
    const auto d = static_cast<double>(dimension);
    std::normal_distribution<double> normal(kMeanNorm / std::sqrt(d),
                                            std::sqrt(kTotalVariance / d));
    std::vector<double> data(count);
    for (double& x : data) x = normal(random_);
    return data;
  }
  static double Square(double x) { return x * x; }

  const MeanQuestion& question_;
  std::mt19937_64 random_;
  Generator& noise_;
};

}  // namespace

PredictedMeanError PredictMeanError(const MeanQuestion& question) {
  CheckQuestion(question);
  const auto n = static_cast<double>(question.records);
  switch (question.kind) {
    case MeanKind::kBinary:
      return {.error = BinaryMeanError(question.records, kBinaryMean, question.epsilon),
              .published = 1 / n + 2 / std::pow(n * question.epsilon.value(), 2),
              .without_privacy = kBinaryMean * (1 - kBinaryMean) / n};
    case MeanKind::kScalar:
      return {.error = ClippedMeanErrorBound(question.records, kSecondMoment, question.epsilon),
              .published =
                  LectureClippedMeanErrorBound(question.records, kSecondMoment, question.epsilon),
              .without_privacy = kTotalVariance / n};
    default: {
      const auto d = static_cast<std::size_t>(question.dimension);
      const ClipNorm tau =
          VectorMeanThreshold(question.records, d, kSecondMoment, question.epsilon, question.delta);
      return {.error = VectorMeanErrorBound(question.records, d, kSecondMoment, tau,
                                            question.epsilon, question.delta),
              .published = std::nan(""),
              .without_privacy = kTotalVariance / n};
    }
  }
}

MeasuredMeanError MeasureMeanError(const MeanQuestion& question, std::uint64_t trials,
                                   std::uint64_t seed, Generator& noise) {
  CheckQuestion(question);
  const double draws = static_cast<double>(question.records) *
                       static_cast<double>(question.dimension) * static_cast<double>(trials);
  if (trials < 2 || trials > kMaxMeanTrials || draws > kMaxMeanDraws) {
    throw Error(fmt::format(
        "{} trials draw {:.3g} numbers; give 2 to {} trials with at most {:.0e} numbers.", trials,
        draws, kMaxMeanTrials, kMaxMeanDraws));
  }
  Trial trial(question, seed, noise);
  double sum = 0;
  double squares = 0;
  for (std::uint64_t i = 0; i < trials; ++i) {
    const double error = trial.SquaredError();
    sum += error;
    squares += error * error;
  }
  const auto count = static_cast<double>(trials);
  const double mean = sum / count;
  const double variance = std::max(0.0, squares / count - mean * mean) * count / (count - 1);
  return {.error = mean, .standard_error = std::sqrt(variance / count)};
}

}  // namespace sordino
