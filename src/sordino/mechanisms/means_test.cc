#include "sordino/mechanisms/means.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/not_a_number.h"
#include "sordino/mechanisms/testing/test_support.h"

namespace sordino {
namespace {

// The mean of the squared errors over many fresh datasets and releases, with its standard error.
template <typename OneError>
SampleMoments SquaredErrors(int rounds, const OneError& one_error) {
  std::vector<double> squares;
  squares.reserve(static_cast<std::size_t>(rounds));
  for (int i = 0; i < rounds; ++i) squares.push_back(std::pow(one_error(), 2));
  return MomentsOf(squares);
}

// Here and below: measured and predicted differ by at most 5 standard errors of the measurement
// (false alarm 6e-7 if normal; the squares of Laplace noise are skewed, and with 20,000 rounds the
// chance stays below 1e-5).
TEST(PrivateBinaryMean, HasThePredictedError) {
  std::mt19937_64 random(1);
  InsecureSeededGenerator generator(1);
  const double p = 0.3;
  const Epsilon epsilon(0.2);
  std::bernoulli_distribution coin(p);
  std::vector<std::uint8_t> data(200);
  const SampleMoments errors = SquaredErrors(20'000, [&] {
    for (auto& x : data) x = coin(random) ? 1 : 0;
    return PrivateBinaryMean(data, epsilon, generator).value() - p;
  });
  const double predicted = BinaryMeanError(200, p, epsilon);
  EXPECT_NEAR(errors.mean, predicted, 5 * errors.standard_error);
  EXPECT_LT(5 * errors.standard_error, 0.1 * predicted);
  EXPECT_LE(predicted, BinaryMeanErrorBound(200, epsilon));
  EXPECT_NEAR(BinaryMeanErrorBound(200, epsilon), 1.0 / 800 + 2 / std::pow(200 * 0.2, 2), 1e-12);
}

TEST(PrivateBoundedMean, HasThePredictedError) {
  std::mt19937_64 random(2);
  InsecureSeededGenerator generator(2);
  const Bounds bounds(-1, 3);
  const Epsilon epsilon(0.5);
  std::uniform_real_distribution<double> uniform(-1, 3);
  std::vector<double> data(100);
  const SampleMoments errors = SquaredErrors(20'000, [&] {
    for (double& x : data) x = uniform(random);
    return PrivateBoundedMean(data, bounds, epsilon, generator).value() - 1;
  });
  const double predicted = BoundedMeanError(100, 16.0 / 12, bounds, epsilon);
  EXPECT_NEAR(errors.mean, predicted, 5 * errors.standard_error);
  EXPECT_LT(5 * errors.standard_error, 0.1 * predicted);
}

TEST(PrivateClippedMean, UsesTheThresholdOfTheTheorem) {
  EXPECT_DOUBLE_EQ(ClippedMeanThreshold(400, 3, Epsilon(0.25)), 3 * std::sqrt(100.0) / 2);
}

TEST(PrivateClippedMean, StaysBelowTheTheoremsBoundOnHeavyTails) {
  std::mt19937_64 random(4);
  InsecureSeededGenerator generator(4);
  const Epsilon epsilon(0.5);
  constexpr std::uint64_t kN = 300;
  // Student's t with 3 degrees of freedom plus 1: second moment 3 + 1 = 4.
  std::student_t_distribution<double> heavy(3);
  std::vector<double> data(kN);
  const SampleMoments errors = SquaredErrors(20'000, [&] {
    for (double& x : data) x = 1 + heavy(random);
    return PrivateClippedMean(data, 2, epsilon, generator).value() - 1;
  });
  const double bound = ClippedMeanErrorBound(kN, 2, epsilon);
  EXPECT_LE(errors.mean - 5 * errors.standard_error, bound);
  EXPECT_LT(bound, LectureClippedMeanErrorBound(kN, 2, epsilon));
  EXPECT_NEAR(LectureClippedMeanErrorBound(kN, 2, epsilon), 4.0 / kN + 16.0 / (kN * 0.5), 1e-12);
  // The noise is the part of the bound that is met with equality: 2 s^2 / (n epsilon).
  EXPECT_GT(errors.mean, 0.9 * (2 * 4.0 / (kN * 0.5)));
}

TEST(PrivateClippedMean, BiasBoundIsMetWithEqualityByItsWorstCase) {
  // All mass at 0 except a point at 2 tau of probability q = s^2 / (4 tau^2): the second moment is
  // s^2 and the bias q tau = s^2 / (4 tau), squared s^4 / (16 tau^2).
  const Epsilon epsilon(1);
  constexpr std::uint64_t kN = 100;
  const double tau = ClippedMeanThreshold(kN, 1, epsilon);
  const double q = 1 / (4 * tau * tau);
  std::mt19937_64 random(5);
  InsecureSeededGenerator generator(5);
  std::bernoulli_distribution coin(q);
  std::vector<double> data(kN);
  const SampleMoments errors = SquaredErrors(40'000, [&] {
    for (double& x : data) x = coin(random) ? 2 * tau : 0;
    return PrivateClippedMean(data, 1, epsilon, generator).value() - q * 2 * tau;
  });
  const double sampling = q * (1 - q) * tau * tau / kN;
  const double predicted = sampling + 1 / (16 * tau * tau) + 2 / (kN * epsilon.value());
  EXPECT_NEAR(errors.mean, predicted, 5 * errors.standard_error);
  EXPECT_LE(predicted, ClippedMeanErrorBound(kN, 1, epsilon));
}

TEST(PrivateVectorMean, HasThePredictedErrorWithoutClipping) {
  std::mt19937_64 random(6);
  InsecureSeededGenerator generator(6);
  constexpr std::size_t kD = 5;
  constexpr std::uint64_t kN = 50;
  const Epsilon epsilon(1);
  const Delta delta(1e-5);
  const ClipNorm tau(10);
  std::normal_distribution<double> normal(0, 0.3);
  std::vector<double> data(kD * kN);
  std::vector<double> squares;
  for (int round = 0; round < 4000; ++round) {
    for (double& x : data) x = normal(random);
    const Release release = PrivateVectorMean(data, kD, tau, epsilon, delta, generator);
    double square = 0;
    for (const double x : release.values) square += x * x;
    squares.push_back(square);
  }
  const SampleMoments errors = MomentsOf(squares);
  const double s2 = kD * 0.09;
  // Nothing is clipped, so the bound less its bias term is the exact error.
  const double predicted =
      VectorMeanErrorBound(kN, kD, std::sqrt(s2), tau, epsilon, delta) - s2 * s2 / (16 * 100);
  EXPECT_NEAR(errors.mean, predicted, 5 * errors.standard_error);
  EXPECT_LT(5 * errors.standard_error, 0.1 * predicted);
}

TEST(PrivateVectorMean, BestThresholdMinimisesTheBound) {
  const Epsilon epsilon(0.5);
  const Delta delta(1e-6);
  const ClipNorm best = VectorMeanThreshold(1000, 16, 2, epsilon, delta);
  const double least = VectorMeanErrorBound(1000, 16, 2, best, epsilon, delta);
  for (const double factor : {0.9, 1.1}) {
    EXPECT_GT(VectorMeanErrorBound(1000, 16, 2, ClipNorm(best.value() * factor), epsilon, delta),
              least);
  }
}

// Record and replay: the same noise on neighbouring datasets, so that the difference of the
// releases is that of the sums. It may not exceed the sensitivity the noise was calibrated to.
TEST(PrivateVectorMean, ReplacedRecordsMoveTheSumByAtMostTwiceTheClip) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0, 1);
  constexpr std::size_t kD = 7;
  const ClipNorm tau(1.5);
  const Epsilon epsilon(1);
  const Delta delta(1e-5);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> data(kD * 3);
    for (double& x : data) x = normal(random) * std::pow(10.0, round % 7 - 3);
    std::vector<double> other = data;
    for (std::size_t i = 0; i < kD; ++i) {
      other[i] = round % 3 == 0 ? -data[i] : normal(random) * 1e6;
    }
    if (round % 10 == 1) other[2] = kNan;
    if (round % 10 == 2) other[2] = kInfinity;
    InsecureSeededGenerator one(round);
    InsecureSeededGenerator two(round);
    const Release a = PrivateVectorMean(data, kD, tau, epsilon, delta, one);
    const Release b = PrivateVectorMean(other, kD, tau, epsilon, delta, two);
    double square = 0;
    for (std::size_t i = 0; i < kD; ++i) square += std::pow(a.values[i] - b.values[i], 2);
    const double multiplier = a.event.number("noise");
    EXPECT_LE(std::sqrt(square), a.noise_scale / multiplier * (1 + 1e-9)) << round;
  }
}

TEST(PrivateMeans, LetNothingThatIsNotFiniteThrough) {
  InsecureSeededGenerator generator(8);
  const std::vector<double> bad = {kNan, kInfinity, -kInfinity, 1e308, 0.5};
  EXPECT_TRUE(std::isfinite(PrivateBoundedMean(bad, Bounds(0, 1), Epsilon(1), generator).value()));
  EXPECT_TRUE(std::isfinite(PrivateClippedMean(bad, 1, Epsilon(1), generator).value()));
  for (const double x :
       PrivateVectorMean(bad, 5, ClipNorm(1), Epsilon(1), Delta(1e-5), generator).values) {
    EXPECT_TRUE(std::isfinite(x));
  }
}

TEST(PrivateMeans, RefuseEmptyDataAndBadShapes) {
  InsecureSeededGenerator generator(9);
  EXPECT_THROW(PrivateBinaryMean({}, Epsilon(1), generator), Error);
  EXPECT_THROW(PrivateBoundedMean({}, Bounds(0, 1), Epsilon(1), generator), Error);
  EXPECT_THROW(PrivateClippedMean(std::vector{1.0}, -1, Epsilon(1), generator), Error);
  EXPECT_THROW(PrivateVectorMean(std::vector{1.0, 2.0, 3.0}, 2, ClipNorm(1), Epsilon(1),
                                 Delta(1e-5), generator),
               Error);
}

}  // namespace
}  // namespace sordino
