#include "sordino/clipping/adaptive.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/testing/clipping_test_support.h"
#include "sordino/gradients/testing/forged_values.h"

namespace sordino {
namespace {

AdaptiveClippingOptions Options() {
  AdaptiveClippingOptions options;
  options.expected_batch = 200;
  options.count_noise = 10;
  return options;
}

std::vector<NamedParameter> TwoLayers() {
  return {Parameter("a.weight", {2}), Parameter("b.weight", {2})};
}

TEST(AdaptiveClipping, FactorTimesNormNeverExceedsTheBoundAlsoAfterAnUpdate) {
  AdaptiveClipping policy(ClippingGroups::Flat(), {ClipNorm(1)}, Options());
  EXPECT_EQ(Violations(policy, AdversarialNorms(1)), 0);
  policy.Update(ForgedCounts({37.25}, 10));
  const double moved = policy.Bounds()[0];
  EXPECT_NE(moved, 1);
  EXPECT_EQ(Violations(policy, AdversarialNorms(moved)), 0);
}

TEST(AdaptiveClipping, CountsExamplesWithinTheBoundCentredAtAHalf) {
  const AdaptiveClipping policy(ClippingGroups::ByLayer(TwoLayers()), {ClipNorm(1), ClipNorm(5)},
                                Options());
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor norms =
      at::cat({Row({0, 1, std::nextafter(1.0, 2.0), 3}), Row({infinity, std::nan(""), 5, 6})});
  const at::Tensor counts = policy.Counts(norms);
  EXPECT_EQ(counts.sizes(), std::vector<std::int64_t>{2});
  EXPECT_EQ(counts[0].item<double>(), 0);
  EXPECT_EQ(counts[1].item<double>(), -1);
  EXPECT_EQ(policy.Counts(at::empty({2, 0}, at::kDouble)).abs().sum().item<double>(), 0);
}

TEST(AdaptiveClipping, OneExampleChangesTheCountsByNoMoreThanTheirBound) {
  const AdaptiveClipping policy(ClippingGroups::ByLayer(TwoLayers()), {ClipNorm(1), ClipNorm(5)},
                                Options());
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor batch = at::cat({Row({0.1, 2, 7}), Row({4, 5, 6})});
  const at::Tensor before = policy.Counts(batch);
  for (const double first : {0.0, 1.0, 1e300, infinity, std::nan("")}) {
    for (const double second : {0.0, 5.0, 6.0, infinity, std::nan("")}) {
      const at::Tensor added = at::cat({batch, at::cat({Row({first}), Row({second})})}, 1);
      EXPECT_DOUBLE_EQ((policy.Counts(added) - before).norm().item<double>(), policy.CountBound());
    }
  }
  EXPECT_EQ(AdaptiveClipping(ClippingGroups::Flat(), {ClipNorm(1)}, Options()).CountBound(), 0.5);
}

TEST(AdaptiveClipping, GradientsAndCountsShareOneNoiseMultiplier) {
  // Theorem 1 of the paper: z_g = (z^-2 - (2 sigma_b)^-2)^(-1/2).
  for (const double z : {0.5, 1.0, 3.0}) {
    for (const double sigma_b : {2.0, 10.0, 100.0}) {
      const double flat = std::pow(std::pow(z, -2) - std::pow(2 * sigma_b, -2), -0.5);
      const double shared =
          GradientNoiseMultiplier(NoiseMultiplier(z), L2Sensitivity(0.5), sigma_b).value();
      EXPECT_NEAR(shared, flat, 1e-10 * flat);
      EXPECT_GE(shared, flat * (1 - 1e-13));
      EXPECT_GT(shared, z);
    }
  }
}

TEST(AdaptiveClipping, ManyCountsAreOneGaussianReleaseWithTheGradients) {
  // Independent Gaussians compose as the sum of squared shift over standard deviation: the
  // gradients once, each of m counts with a shift of a half.
  constexpr std::size_t kGroups = 7;
  std::vector<NamedParameter> parameters;
  for (std::size_t i = 0; i < kGroups; ++i) {
    parameters.push_back(Parameter(std::to_string(i) + ".weight", {1}));
  }
  const AdaptiveClipping policy(ClippingGroups::ByLayer(parameters),
                                std::vector<ClipNorm>(kGroups, ClipNorm(1)), Options());
  const L2Sensitivity counts(policy.CountBound());
  const double z = 1.3;
  const double z_g = GradientNoiseMultiplier(NoiseMultiplier(z), counts, 10).value();
  double squared = 1 / (z_g * z_g);
  for (std::size_t i = 0; i < kGroups; ++i) {
    squared += 0.5 * 0.5 / (10.0 * 10.0);
  }
  EXPECT_NEAR(squared, 1 / (z * z), 1e-10);
}

TEST(AdaptiveClipping, RefusesACountNoiseThatLeavesNothingForTheGradients) {
  EXPECT_THROW(GradientNoiseMultiplier(NoiseMultiplier(1), L2Sensitivity(0.5), 0.5), Error);
  EXPECT_THROW(GradientNoiseMultiplier(NoiseMultiplier(1), L2Sensitivity(0.5), 0.5001), Error);
  EXPECT_THROW(GradientNoiseMultiplier(NoiseMultiplier(1), L2Sensitivity(0.5), 0), Error);
  EXPECT_THROW(GradientNoiseMultiplier(NoiseMultiplier(1), L2Sensitivity(0.5), std::nan("")),
               Error);
  EXPECT_NO_THROW(GradientNoiseMultiplier(NoiseMultiplier(1), L2Sensitivity(0.5), 0.51));
}

TEST(AdaptiveClipping, UpdateIsTheGeometricStepOfThePaper) {
  AdaptiveClippingOptions options = Options();
  options.target_quantile = 0.7;
  options.learning_rate = 0.3;
  AdaptiveClipping policy(ClippingGroups::Flat(), {ClipNorm(2)}, options);
  policy.Update(ForgedCounts({-30}, 10));
  EXPECT_NEAR(policy.Bounds()[0], 2 * std::exp(-0.3 * (-30.0 / 200 + 0.5 - 0.7)), 1e-14);
}

TEST(AdaptiveClipping, KeepsTheBoundWithinItsRange) {
  AdaptiveClippingOptions options = Options();
  options.smallest = ClipNorm(0.5);
  options.largest = ClipNorm(4);
  AdaptiveClipping policy(ClippingGroups::Flat(), {ClipNorm(2)}, options);
  policy.Update(ForgedCounts({1e9}, 10));
  EXPECT_EQ(policy.Bounds()[0], 0.5);
  policy.Update(ForgedCounts({-1e9}, 10));
  EXPECT_EQ(policy.Bounds()[0], 4);
}

// Norms are log-normal; the bound must end up near the quantile, flat and for each layer.
TEST(AdaptiveClipping, TracksTheQuantileFromNoisedCounts) {
  std::mt19937_64 random(23);
  std::poisson_distribution<int> batch_size(200);
  std::lognormal_distribution<double> first(1, 0.5);
  std::lognormal_distribution<double> second(-3, 1);
  std::normal_distribution<double> noise(0, 10);
  AdaptiveClippingOptions options = Options();
  options.target_quantile = 0.8;
  AdaptiveClipping policy(ClippingGroups::ByLayer(TwoLayers()), {ClipNorm(20), ClipNorm(5)},
                          options);
  std::vector<double> average(2, 0.0);
  constexpr int kSteps = 400;
  constexpr int kLast = 200;
  for (int step = 0; step < kSteps; ++step) {
    const auto examples = static_cast<std::size_t>(batch_size(random));
    std::vector<double> a(examples);
    std::vector<double> b(examples);
    std::generate(a.begin(), a.end(), [&] { return first(random); });
    std::generate(b.begin(), b.end(), [&] { return second(random); });
    const at::Tensor counts = policy.Counts(at::cat({Row(a), Row(b)}));
    policy.Update(ForgedCounts(
        {counts[0].item<double>() + noise(random), counts[1].item<double>() + noise(random)}, 10));
    for (std::size_t group = 0; group < 2 && step >= kSteps - kLast; ++group) {
      average[group] += std::log(policy.Bounds()[group]) / kLast;
    }
  }
  // The 0.8 quantile of a standard normal is 0.8416. A step moves log C by 0.2 times the deviation
  // 0.06 of the fraction, and pulls it back at the rates 0.2 * 0.28 / 0.5 and 0.2 * 0.28: the mean
  // of 200 steps has deviations 0.0076 and 0.015. The tolerances are 6 of them, a false alarm
  // below 1e-8.
  EXPECT_NEAR(average[0], 1 + 0.5 * 0.8416, 0.05);
  EXPECT_NEAR(average[1], -3 + 0.8416, 0.1);
}

TEST(AdaptiveClipping, CannotBeUpdatedFromPrivateCounts) {
  static_assert(!std::is_convertible_v<PrivateValue<at::Tensor>, NoisedCounts>);
  static_assert(!std::is_constructible_v<NoisedCounts, PrivateValue<at::Tensor>>);
  static_assert(!std::is_constructible_v<NoisedCounts, PrivateValue<at::Tensor>, double>);
  static_assert(!std::is_constructible_v<NoisedCounts, at::Tensor, double>);
  static_assert(!std::is_convertible_v<std::vector<double>, NoisedCounts>);
  static_assert(!std::is_constructible_v<NoisedCounts, std::vector<double>>);
  EXPECT_THROW(ForgedCounts({1}, 0), Error);
  EXPECT_THROW(ForgedCounts({1}, std::nan("")), Error);
}

TEST(AdaptiveClipping, StopsOnCountsWithLessNoiseThanWasCharged) {
  AdaptiveClipping policy(ClippingGroups::Flat(), {ClipNorm(1)}, Options());
  EXPECT_DEATH(policy.Update(ForgedCounts({1}, 9.99)), "less noise than was charged");
  EXPECT_DEATH(policy.Update(ForgedCounts({1, 2}, 10)), "one count for each");
  EXPECT_DEATH(policy.Update(ForgedCounts({std::nan("")}, 10)), "finite");
}

TEST(AdaptiveClipping, GoesOnFromRestoredBoundsToTheLastBit) {
  AdaptiveClipping first(ClippingGroups::ByLayer(TwoLayers()), {ClipNorm(1), ClipNorm(5)},
                         Options());
  first.Update(ForgedCounts({37.25, -11.5}, 10));
  AdaptiveClipping second(ClippingGroups::ByLayer(TwoLayers()), {ClipNorm(1), ClipNorm(5)},
                          Options());
  second.Restore(first.Bounds());
  const at::Tensor norms = at::cat({Row({0.1, 1, 3}), Row({4, 5, 600})});
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(second.Bounds(), first.Bounds());
    EXPECT_TRUE(second.Factors(norms).equal(first.Factors(norms)));
    EXPECT_TRUE(second.Counts(norms).equal(first.Counts(norms)));
    first.Update(ForgedCounts({3.5, 8}, 10));
    second.Update(ForgedCounts({3.5, 8}, 10));
  }
  EXPECT_EQ(Violations(second, AdversarialNorms(second.Bounds()[0])), 0);
}

TEST(AdaptiveClipping, RefusesSavedBoundsThatAreNotItsOwn) {
  AdaptiveClippingOptions options = Options();
  options.smallest = ClipNorm(0.5);
  options.largest = ClipNorm(4);
  AdaptiveClipping policy(ClippingGroups::ByLayer(TwoLayers()), {ClipNorm(1), ClipNorm(2)},
                          options);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& wrong : std::vector<std::vector<double>>{{},
                                                                           {1},
                                                                           {1, 1, 1},
                                                                           {1, 0.4},
                                                                           {4.1, 1},
                                                                           {1, 0},
                                                                           {1, -1},
                                                                           {1, infinity},
                                                                           {std::nan(""), 1}}) {
    EXPECT_THROW(policy.Restore(wrong), Error);
    EXPECT_EQ(policy.Bounds(), (std::vector<double>{1, 2}));
  }
  EXPECT_NO_THROW(policy.Restore({0.5, 4}));
}

TEST(AdaptiveClipping, RefusesOptionsOutOfRange) {
  const auto refuses = [](auto change) {
    AdaptiveClippingOptions options = Options();
    change(options);
    EXPECT_THROW(AdaptiveClipping(ClippingGroups::Flat(), {ClipNorm(1)}, options), Error);
  };
  refuses([](AdaptiveClippingOptions& o) { o.expected_batch = 0; });
  refuses([](AdaptiveClippingOptions& o) { o.count_noise = 0; });
  refuses([](AdaptiveClippingOptions& o) { o.target_quantile = 1.1; });
  refuses([](AdaptiveClippingOptions& o) { o.learning_rate = 0; });
  refuses([](AdaptiveClippingOptions& o) { o.smallest = ClipNorm(2); });
  EXPECT_THROW(AdaptiveClipping(ClippingGroups::ByLayer(TwoLayers()), {ClipNorm(1)}, Options()),
               Error);
}

}  // namespace
}  // namespace sordino
