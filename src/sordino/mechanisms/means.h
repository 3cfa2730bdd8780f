// Private means of n records, n public (replace-one adjacency), with their predicted errors.
//
// Every estimator is a clamped or clipped sum, exact on an integer grid, plus integer noise,
// divided by n. The predicted error is the mean squared error of the release as an estimate of the
// mean mu of the distribution from which the records are drawn independently:
// sampling + clipping bias + noise.
//
//   binary   x in {0, 1}: p (1 - p) / n + Var(noise) / n^2, at most 1 / (4 n) + 2 / (n epsilon)^2.
//   bounded  x in [low, high]: variance / n + 2 (w / (n epsilon))^2.
//   clipped  E x^2 <= s^2, no bounds: clip to [-tau, tau], tau = s sqrt(n epsilon) / 2. The bias is
//            at most E (|x| - tau)+ <= s^2 / (4 tau), the noise Lap(2 tau / (n epsilon)):
//            s^2 / n + s^4 / (16 tau^2) + 8 tau^2 / (n epsilon)^2
//            = s^2 / n + (9/4) s^2 / (n epsilon), below the bound of the lecture's theorem,
//            s^2 / n + 4 s^2 / (n epsilon).
//   vector   E ||x||^2 <= s^2 in d dimensions: clip the L2 norm to tau, sensitivity 2 tau / n, and
//            Gaussian noise of sigma = 2 tau m / n in each coordinate, m the noise multiplier:
//            s^2 / n + s^4 / (16 tau^2) + d sigma^2, least at tau = s sqrt(n / (8 m sqrt(d))),
//            where it is s^2 / n + s^2 m sqrt(d) / n.
//
// A record that is not finite contributes 0 (a binary one counts as 1 when it is not 0).
#ifndef SORDINO_MECHANISMS_MEANS_H_
#define SORDINO_MECHANISMS_MEANS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "sordino/base/quantity.h"
#include "sordino/mechanisms/release.h"
#include "sordino/mechanisms/sensitivity.h"
#include "sordino/random/generator.h"

namespace sordino {

// Each throws Error for an empty dataset.
Release PrivateBinaryMean(std::span<const std::uint8_t> data, Epsilon epsilon, Generator& generator,
                          double confidence = kDefaultConfidence);
Release PrivateBoundedMean(std::span<const double> data, const Bounds& bounds, Epsilon epsilon,
                           Generator& generator, double confidence = kDefaultConfidence);
// second_moment_root is s > 0, declared, never computed from the data. The interval covers the
// mean of the clipped records.
Release PrivateClippedMean(std::span<const double> data, double second_moment_root, Epsilon epsilon,
                           Generator& generator, double confidence = kDefaultConfidence);
// Row-major records of `dimension` numbers, each clipped to L2 norm tau.
Release PrivateVectorMean(std::span<const double> data, std::size_t dimension, ClipNorm tau,
                          Epsilon epsilon, Delta delta, Generator& generator,
                          double confidence = kDefaultConfidence);

// p is the probability of a 1.
double BinaryMeanError(std::uint64_t n, double p, Epsilon epsilon);
double BinaryMeanErrorBound(std::uint64_t n, Epsilon epsilon);
double BoundedMeanError(std::uint64_t n, double variance, const Bounds& bounds, Epsilon epsilon);
double ClippedMeanThreshold(std::uint64_t n, double second_moment_root, Epsilon epsilon);
double ClippedMeanErrorBound(std::uint64_t n, double second_moment_root, Epsilon epsilon);
double LectureClippedMeanErrorBound(std::uint64_t n, double second_moment_root, Epsilon epsilon);
ClipNorm VectorMeanThreshold(std::uint64_t n, std::size_t dimension, double second_moment_root,
                             Epsilon epsilon, Delta delta);
double VectorMeanErrorBound(std::uint64_t n, std::size_t dimension, double second_moment_root,
                            ClipNorm tau, Epsilon epsilon, Delta delta);

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_MEANS_H_
