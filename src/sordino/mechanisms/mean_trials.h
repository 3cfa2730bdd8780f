// Measured errors of private means (means.h) beside their predictions, on records that are drawn.
//
// Each trial draws n records from a distribution whose mean mu is known, releases their private
// mean and takes the squared distance to mu; the measured error is the mean over the trials.
//
//   binary   1 with probability 1/2, which is the worst case; Laplace noise
//   scalar   normal with mean 1/2 and E x^2 = 1, clipped; Laplace noise
//   vector   d independent normal coordinates, ||mu|| = 1/2 and E ||x||^2 = 1, clipped;
//            Gaussian noise
//
// Nothing here is private: the records are made up from a seed. The noise is that of a
// release.
#ifndef SORDINO_MECHANISMS_MEAN_TRIALS_H_
#define SORDINO_MECHANISMS_MEAN_TRIALS_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "sordino/base/quantity.h"
#include "sordino/random/generator.h"

namespace sordino {

enum class MeanKind : std::uint8_t { kBinary, kScalar, kVector };
inline constexpr std::array<std::string_view, 3> kMeanKindNames = {"binary", "scalar", "vector"};

inline constexpr std::uint64_t kMaxMeanTrials = 100'000;
inline constexpr double kMaxMeanDraws = 1e10;  // numbers that all trials draw together

struct MeanQuestion {
  MeanKind kind = MeanKind::kBinary;
  std::uint64_t records = 0;    // from 1
  std::uint64_t dimension = 1;  // of a vector
  Epsilon epsilon{1};
  Delta delta{0};  // of a vector, above 0
};

struct PredictedMeanError {
  double error = 0;      // binary: exact; else a bound
  double published = 0;  // as the lecture has it; NaN for vectors, where it leaves constants open
  double without_privacy = 0;  // of the mean of the sample
};
// Throws Error for numbers that are not allowed.
PredictedMeanError PredictMeanError(const MeanQuestion& question);

struct MeasuredMeanError {
  double error = 0;
  double standard_error = 0;  // of `error`
};
// trials from 2. Throws Error for more draws than kMaxMeanDraws.
MeasuredMeanError MeasureMeanError(const MeanQuestion& question, std::uint64_t trials,
                                   std::uint64_t seed, Generator& noise);

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_MEAN_TRIALS_H_
