#include "sordino/mechanisms/additive_mechanism.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"
#include "sordino/base/testing/not_a_number.h"
#include "sordino/mechanisms/testing/test_support.h"

namespace sordino {
namespace {

TEST(LaplaceMechanism, HasTheScaleOfItsDefinition) {
  const LaplaceMechanism mechanism(L1Sensitivity(3), Epsilon(0.5));
  EXPECT_GE(mechanism.noise_scale(), 6);
  EXPECT_NEAR(mechanism.noise_scale(), 6, 1e-9);
  EXPECT_LT(mechanism.granularity(), 6e-10);
}

TEST(GaussianMechanism, HasTheAnalyticScale) {
  const GaussianMechanism mechanism(L2Sensitivity(2), Epsilon(1), Delta(1e-5));
  EXPECT_GE(mechanism.noise_scale(), 2 * 3.730631634815942);
  EXPECT_NEAR(mechanism.noise_scale(), 2 * 3.730631634815942, 1e-6);
}

TEST(GaussianMechanism, WithTheClassicCalibrationRefusesEpsilonAboveOne) {
  const auto classic = GaussianCalibration::kClassic;
  const GaussianMechanism mechanism(L2Sensitivity(1), Epsilon(1), Delta(1e-5), 1,
                                    Adjacency::kAddRemove, classic);
  EXPECT_NEAR(mechanism.noise_scale(), std::sqrt(2 * std::log(1.25e5)), 1e-6);
  EXPECT_THROW(GaussianMechanism(L2Sensitivity(1), Epsilon(2), Delta(1e-5), 1,
                                 Adjacency::kAddRemove, classic),
               Error);
}

TEST(GaussianMechanism, NeverLetsNeighboursLeaveEachOthersSupport) {
  // At epsilon 700 the curve alone would allow mu = 33, but the sampler ends at 13 sigma: the
  // neighbours' outputs would be disjoint. The noise is larger instead.
  const GaussianMechanism mechanism(L2Sensitivity(1), Epsilon(700), Delta(1e-6));
  EXPECT_GT(mechanism.noise_scale(), 1.0 / 13);
  EXPECT_LT(mechanism.noise_scale(), 1.0);
}

// The charge of the grid covers 2^20 coordinates.
TEST(GaussianMechanism, RefusesMoreValuesThanItsChargeCovers) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  EXPECT_NO_THROW(GaussianMechanism(L2Sensitivity(1), Epsilon(1), Delta(1e-6), kMost));
  EXPECT_THROW(GaussianMechanism(L2Sensitivity(1), Epsilon(1), Delta(1e-6), kMost + 1), Error);
}

TEST(AdditiveMechanisms, ReleaseMultiplesOfTheGridWhateverTheValue) {
  InsecureSeededGenerator generator(1);
  const LaplaceMechanism laplace(L1Sensitivity(1), Epsilon(1));
  const GaussianMechanism gaussian(L2Sensitivity(1), Epsilon(1), Delta(1e-6));
  for (const double value : {0.0, 0.1, 1.0 / 3, 1e-300, -12345.678, 5e-324}) {
    const double steps = laplace(value, generator).value() / laplace.granularity();
    EXPECT_EQ(steps, std::rint(steps)) << value;
    const double more = gaussian(value, generator).value() / gaussian.granularity();
    EXPECT_EQ(more, std::rint(more)) << value;
  }
}

TEST(AdditiveMechanisms, TakeNanAndInfinityWithoutATrace) {
  InsecureSeededGenerator generator(2);
  const LaplaceMechanism mechanism(L1Sensitivity(1), Epsilon(1));
  EXPECT_LT(std::abs(mechanism(kNan, generator).value()), 60);
  EXPECT_TRUE(std::isfinite(mechanism(kInfinity, generator).value()));
  EXPECT_TRUE(std::isfinite(mechanism(-kInfinity, generator).value()));
  EXPECT_LT(mechanism(-1e300, generator).value(), -1e6);
}

TEST(AdditiveMechanisms, EnlargeTheSensitivityByTheRounding) {
  // A query that jumps by exactly the sensitivity between two values that round apart: in steps
  // the distance is L1 / g + 1, and the noise must cover it.
  const LaplaceMechanism mechanism(L1Sensitivity(1), Epsilon(1));
  EXPECT_GE(mechanism.noise_scale() * 1.0, 1 + mechanism.granularity());
  const LaplaceMechanism wide(L1Sensitivity(1), Epsilon(1), 1000);
  EXPECT_GE(wide.noise_scale(), 1 + 1000 * wide.granularity());
}

TEST(AdditiveMechanisms, RefuseASensitivityOfZeroAndTheWrongLength) {
  EXPECT_THROW(LaplaceMechanism(L1Sensitivity(0), Epsilon(1)), Error);
  EXPECT_THROW(LaplaceMechanism(L1Sensitivity(1), Epsilon(0)), Error);
  EXPECT_THROW(LaplaceMechanism(L1Sensitivity(1), Epsilon(1), 0), Error);
  EXPECT_THROW(GaussianMechanism(L2Sensitivity(1), Epsilon(1), Delta(0)), Error);
  EXPECT_THROW(GaussianMechanism(L2Sensitivity(1), Epsilon(1), Delta(1e-60)), Error);
  InsecureSeededGenerator generator(3);
  const LaplaceMechanism mechanism(L1Sensitivity(1), Epsilon(1), 2);
  EXPECT_THROW(mechanism(1.0, generator), Error);
  EXPECT_THROW(mechanism(std::vector{1.0, 2.0}, generator, 1.5), Error);
}

TEST(AdditiveMechanisms, SayWhatTheyCost) {
  InsecureSeededGenerator generator(4);
  const Release laplace = LaplaceMechanism(L1Sensitivity(1), Epsilon(0.5))(1.0, generator);
  EXPECT_EQ(laplace.epsilon, Epsilon(0.5));
  EXPECT_EQ(laplace.delta, Delta(0));
  EXPECT_EQ(laplace.event, Event::Pure(Epsilon(0.5)));
  EXPECT_FALSE(laplace.is_private);
  const Release gaussian = GaussianMechanism(L2Sensitivity(4), Epsilon(0.5), Delta(1e-6), 1,
                                             Adjacency::kReplaceOne)(1.0, generator);
  EXPECT_EQ(gaussian.event.name(), "gaussian");
  EXPECT_EQ(gaussian.event.adjacency(), Adjacency::kReplaceOne);
  EXPECT_NEAR(gaussian.event.number("noise"), gaussian.noise_scale / 4, 1e-9);
  EXPECT_EQ(laplace.failure, 0);
  EXPECT_EQ(gaussian.failure, static_cast<double>(gaussian.values.size()) * 0x1p-70);
  // The promise covers the event together with what the grid adds to it.
  EXPECT_LE(SpentEpsilon(gaussian.event, gaussian.delta, gaussian.failure).upper,
            gaussian.epsilon.value());
  SecureGenerator secure;
  EXPECT_TRUE(LaplaceMechanism(L1Sensitivity(1), Epsilon(1))(0.0, secure).is_private);
}

// The mean absolute noise of a Laplace mechanism is its scale, measured from n draws with a
// standard error of scale / sqrt(n): 0.08% at n = 1.6e6, so 0.45% is 5.7 standard errors (false
// alarm 2e-8). Noise that is 1% too small lands outside whenever the true one lands inside.
TEST(AdditiveMechanisms, MeasuredLaplaceScaleNoticesNoiseOnePercentTooSmall) {
  InsecureSeededGenerator generator(5);
  const LaplaceMechanism mechanism(L1Sensitivity(2), Epsilon(1));
  constexpr int kDraws = 1'600'000;
  double total = 0;
  for (int i = 0; i < kDraws; ++i) total += std::abs(mechanism(7.0, generator).value() - 7);
  const double scale = total / kDraws;
  EXPECT_NEAR(scale / 2, 1, 0.0045);
  EXPECT_GT(std::abs(0.99 * scale / 2 - 1), 0.0045);
}

// The relative standard error of a measured variance of n normal values is sqrt(2 / n): 0.16% at
// n = 8e5, so 0.8% is 5 standard errors (6e-7); a sigma 1% too small shows as 2%.
TEST(AdditiveMechanisms, MeasuredGaussianVarianceNoticesNoiseOnePercentTooSmall) {
  InsecureSeededGenerator generator(6);
  const GaussianMechanism mechanism(L2Sensitivity(1), Epsilon(1), Delta(1e-5), 8);
  constexpr int kRounds = 100'000;
  double squares = 0;
  double sum = 0;
  const std::vector<double> zeros(8, 0.0);
  for (int i = 0; i < kRounds; ++i) {
    for (const double x : mechanism(zeros, generator).values) {
      squares += x * x;
      sum += x;
    }
  }
  const double n = 8.0 * kRounds;
  const double sigma = 3.730631634815942;
  const double relative = squares / n / (sigma * sigma);
  EXPECT_NEAR(relative, 1, 0.008);
  EXPECT_GT(std::abs(0.99 * 0.99 * relative - 1), 0.008);
  EXPECT_NEAR(sum / n, 0, 5 * sigma / std::sqrt(n));
}

// Coverage: the number of misses among n = 40,000 intervals at 90% is binomial with standard
// deviation 60; 5 of them on either side (false alarm 6e-7).
TEST(AdditiveMechanisms, IntervalsCoverAsOftenAsTheySay) {
  InsecureSeededGenerator generator(7);
  const LaplaceMechanism laplace(L1Sensitivity(1), Epsilon(0.3));
  const GaussianMechanism gaussian(L2Sensitivity(1), Epsilon(0.3), Delta(1e-6));
  int laplace_misses = 0;
  int gaussian_misses = 0;
  for (int i = 0; i < 40'000; ++i) {
    const Interval a = laplace(3.25, generator, 0.9).interval();
    laplace_misses += a.lower <= 3.25 && 3.25 <= a.upper ? 0 : 1;
    const Interval b = gaussian(3.25, generator, 0.9).interval();
    gaussian_misses += b.lower <= 3.25 && 3.25 <= b.upper ? 0 : 1;
  }
  EXPECT_NEAR(laplace_misses, 4000, 300);
  EXPECT_NEAR(gaussian_misses, 4000, 300);
}

TEST(AdditiveMechanisms, DrawIndependentNoiseForEachCoordinate) {
  InsecureSeededGenerator generator(8);
  const LaplaceMechanism mechanism(L1Sensitivity(1), Epsilon(1), 50);
  const Release release = mechanism(std::vector<double>(50, 0.0), generator);
  const std::set<double> distinct(release.values.begin(), release.values.end());
  EXPECT_EQ(distinct.size(), 50U);
}

}  // namespace
}  // namespace sordino
