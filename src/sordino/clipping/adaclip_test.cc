#include "sordino/clipping/adaclip.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <type_traits>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/private_value.h"
#include "sordino/gradients/testing/clipping_test_support.h"
#include "sordino/gradients/testing/forged_values.h"

namespace sordino {
namespace {

std::vector<NamedParameter> Model() {
  return {Parameter("a.weight", {3, 2}), Parameter("a.bias", {2})};
}

at::Tensor Normals(at::IntArrayRef sizes, std::mt19937_64& random, double deviation) {
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  at::Tensor tensor = at::empty(sizes);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    tensor.data_ptr<float>()[i] = normal(random);
  }
  return tensor;
}

NoisedGradients Mean(std::mt19937_64& random, double deviation) {
  return ForgedGradients({Normals({3, 2}, random, deviation), Normals({2}, random, deviation)},
                         0.1);
}

TEST(AdaClip, FactorTimesNormNeverExceedsTheBound) {
  EXPECT_EQ(Violations(AdaClip(Model(), ClipNorm(1)), AdversarialNorms(1)), 0);
  EXPECT_EQ(Violations(AdaClip(Model(), ClipNorm(2.5)), AdversarialNorms(2.5)), 0);
}

TEST(AdaClip, TheTransformIsUndoneByToGradients) {
  std::mt19937_64 random(1);
  AdaClip policy(Model(), ClipNorm(1));
  for (int step = 0; step < 5; ++step) {
    policy.Update(Mean(random, 1));
  }
  const CoordinateTransform& transform = *policy.transform();
  const std::vector<at::Tensor> gradients = {Normals({3, 2}, random, 3), Normals({2}, random, 3)};
  std::vector<at::Tensor> transformed;
  for (std::size_t i = 0; i < 2; ++i) {
    transformed.push_back((gradients[i] - transform.centre[i]) / transform.scale[i]);
  }
  const NoisedGradients noised = policy.ToGradients(ForgedGradients(transformed, 0.1));
  const std::vector<at::Tensor>& back = noised.value();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_TRUE(back[i].allclose(gradients[i], 1e-5, 1e-5));
  }
}

TEST(AdaClip, TheScaleGivesTransformedGradientsOfUnitNorm) {
  // sum_j s_j^2 / b_j^2 = 1 at every step: the constraint that the scale is optimal for.
  std::mt19937_64 random(2);
  AdaClip policy(Model(), ClipNorm(1), {{"clip-mean-decay", 0.5}, {"clip-variance-decay", 0.5}});
  std::vector<at::Tensor> variance = {at::full({3, 2}, 1e-6), at::full({2}, 1e-6)};
  for (int step = 0; step < 10; ++step) {
    double sum = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      const at::Tensor scale = policy.transform()->scale[i];
      sum += (variance[i] / (scale * scale)).sum().item<double>();
    }
    EXPECT_NEAR(sum, 1, 1e-4) << step;
    const NoisedGradients mean = Mean(random, 2);
    for (std::size_t i = 0; i < 2; ++i) {
      const at::Tensor scale = policy.transform()->scale[i];
      const at::Tensor v = ((mean.value()[i].square() - 0.01) * scale.square()).clamp(1e-12, 1);
      variance[i] = 0.5 * variance[i] + 0.5 * v;
    }
    policy.Update(mean);
  }
}

TEST(AdaClip, TracksTheMeanAndTheVarianceOfNoisedGradients) {
  // Gradients with mean 3 and deviation 0.2 in one coordinate, -1 and 0.02 in the other, seen only
  // through the transform with noise of deviation 0.05 on it.
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  const std::vector<double> means = {3, -1};
  const std::vector<double> deviations = {0.2, 0.02};
  AdaClip policy({Parameter("w", {2})}, ClipNorm(1),
                 {{"clip-mean-decay", 0.99}, {"clip-variance-decay", 0.99}});
  for (int step = 0; step < 3000; ++step) {
    at::Tensor y = at::zeros({2});
    for (std::int64_t j = 0; j < 2; ++j) {
      const auto index = static_cast<std::size_t>(j);
      const double gradient = means[index] + deviations[index] * normal(random);
      const double centre = policy.transform()->centre[0][j].item<double>();
      const double scale = policy.transform()->scale[0][j].item<double>();
      y[j] = (gradient - centre) / scale + 0.05 * normal(random);
    }
    policy.Update(ForgedGradients({y}, 0.05));
  }
  const at::Tensor centre = policy.transform()->centre[0];
  const at::Tensor scale = policy.transform()->scale[0];
  // An exponential mean has sqrt(0.01 / 1.99) = 0.07 of the deviation of a step: 6 of its
  // deviations, a false alarm below 1e-8.
  EXPECT_NEAR(centre[0].item<double>(), 3, 0.09);
  EXPECT_NEAR(centre[1].item<double>(), -1, 0.02);
  // b_0 / b_1 = sqrt(s_0 / s_1) = sqrt(10). The relative deviation of a variance is
  // sqrt(2 * 0.01 / 1.99) = 0.1, that of the ratio 0.035: again 6 of them.
  EXPECT_NEAR((scale[0] / scale[1]).item<double>(), std::sqrt(10.0), 0.7);
}

TEST(AdaClip, TheCancellationCoversThePartsOfATransformedGradient) {
  std::mt19937_64 random(5);
  AdaClip policy(Model(), ClipNorm(1));
  EXPECT_EQ(TransformCancellation(*policy.transform(), 1, 1), 1);
  for (int step = 0; step < 20; ++step) {
    policy.Update(Mean(random, 1));
  }
  const CoordinateTransform& transform = *policy.transform();
  const double limit = TransformCancellation(transform, 1, 1);
  for (const double size : {1e-3, 1.0, 1e3}) {
    double norm = 0;
    double parts = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      const at::Tensor w = Normals(transform.scale[i].sizes(), random, size);
      const at::Tensor g = w * transform.scale[i] + transform.centre[i];
      norm += w.square().sum().item<double>();
      parts += ((g.abs() + transform.centre[i].abs()) / transform.scale[i])
                   .square()
                   .sum()
                   .item<double>();
    }
    const double factor = FactorOf(policy, std::sqrt(norm));
    EXPECT_LE(factor * std::sqrt(parts), limit) << size;
  }
}

TEST(AdaClip, KeepsTheVarianceWithinItsRange) {
  AdaClip policy(
      {Parameter("w", {1})}, ClipNorm(1),
      {{"clip-variance-decay", 0.0}, {"clip-variance-min", 0.01}, {"clip-variance-max", 4.0}});
  // One coordinate: b = s.
  policy.Update(ForgedGradients({at::full({1}, 1e10)}, 0.1));
  EXPECT_NEAR(policy.transform()->scale[0].item<double>(), 2, 1e-5);
  policy.Update(ForgedGradients({at::full({1}, 0.0)}, 0.1));
  EXPECT_NEAR(policy.transform()->scale[0].item<double>(), 0.1, 1e-6);
}

TEST(AdaClip, TheFirstStepIsTheFormulaOfThePaper) {
  AdaClip policy({Parameter("w", {1})}, ClipNorm(1),
                 {{"clip-mean-decay", 0.9},
                  {"clip-variance-decay", 0.8},
                  {"clip-variance-min", 0.01},
                  {"clip-variance-max", 4.0},
                  {"clip-variance-factor", 2.0}});
  // s^2 = sqrt(0.01 * 4) = 0.2 = b^2; y = 1.5 with noise 0.5.
  const double b = std::sqrt(0.2);
  const NoisedGradients mean = ForgedGradients({at::full({1}, 1.5)}, 0.5);
  EXPECT_NEAR(policy.ToGradients(mean).value()[0].item<double>(), 1.5 * b, 1e-6);
  policy.Update(mean);
  EXPECT_NEAR(policy.transform()->centre[0].item<double>(), 0.1 * 1.5 * b, 1e-6);
  const double v = 2 * (1.5 * 1.5 - 0.25) * 0.2;
  EXPECT_NEAR(policy.transform()->scale[0].item<double>(), std::sqrt(0.8 * 0.2 + 0.2 * v), 1e-6);
}

TEST(AdaClip, ToGradientsStatesTheLeastNoiseOfACoordinate) {
  std::mt19937_64 random(2);
  AdaClip policy(Model(), ClipNorm(1), {{"clip-variance-max", 100.0}});
  for (int step = 0; step < 5; ++step) policy.Update(Mean(random, 1));
  double least = 1e300;
  for (const at::Tensor& scale : policy.transform()->scale) {
    least = std::min(least, scale.min().item<double>());
  }
  EXPECT_DOUBLE_EQ(policy.ToGradients(Mean(random, 1)).standard_deviation(), 0.1 * least);
}

TEST(AdaClip, ARestoredPolicyContinuesBitForBit) {
  std::mt19937_64 random(3);
  const OptionValues options = {{"clip-mean-decay", 0.9}, {"clip-variance-max", 100.0}};
  AdaClip policy(Model(), ClipNorm(1), options);
  for (int step = 0; step < 5; ++step) policy.Update(Mean(random, 1));
  AdaClip restored(Model(), ClipNorm(1), options);
  TestForgery::Restore<ScaledClipping>(restored, {policy.mean(), policy.variance()});
  for (int step = 0; step < 3; ++step) {
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(restored.transform()->centre[i].equal(policy.transform()->centre[i]));
      EXPECT_TRUE(restored.transform()->scale[i].equal(policy.transform()->scale[i]));
    }
    const NoisedGradients mean = Mean(random, 1);
    policy.Update(mean);
    restored.Update(mean);
  }
}

TEST(AdaClip, RefusesASavedStateOfAnotherModelOrOutOfRange) {
  AdaClip policy(Model(), ClipNorm(1));
  const std::vector<at::Tensor> mean = {at::zeros({3, 2}), at::zeros({2})};
  const std::vector<at::Tensor> variance = {at::full({3, 2}, 0.1), at::full({2}, 0.1)};
  EXPECT_NO_THROW(TestForgery::Restore<ScaledClipping>(policy, {mean, variance}));
  EXPECT_THROW(TestForgery::Restore<ScaledClipping>(policy, {{mean[0]}, variance}), Error);
  EXPECT_THROW(TestForgery::Restore<ScaledClipping>(policy, {mean, {variance[0], variance[0]}}),
               Error);
  EXPECT_THROW(TestForgery::Restore<ScaledClipping>(
                   policy, {{mean[0], at::zeros({2}, at::kDouble)}, variance}),
               Error);
  EXPECT_THROW(TestForgery::Restore<ScaledClipping>(policy, {mean}), Error);
  for (const double wrong : {0.0, 1e-13, 2.0, std::nan("")}) {
    EXPECT_THROW(
        TestForgery::Restore<ScaledClipping>(policy, {mean, {variance[0], at::full({2}, wrong)}}),
        Error);
  }
  EXPECT_THROW(TestForgery::Restore<ScaledClipping>(
                   policy, {{mean[0], at::full({2}, std::nan(""))}, variance}),
               Error);
}

TEST(AdaClip, CannotBeUpdatedFromPrivateSums) {
  static_assert(
      !std::is_constructible_v<NoisedGradients, PrivateValue<std::vector<at::Tensor>>, double>);
  static_assert(!std::is_convertible_v<std::vector<at::Tensor>, NoisedGradients>);
  EXPECT_THROW(ForgedGradients({}, 0), Error);
}

TEST(AdaClip, RefusesWhatItWasNotMadeFor) {
  EXPECT_THROW(AdaClip({}, ClipNorm(1)), Error);
  EXPECT_THROW(AdaClip(Model(), ClipNorm(1), {{"clip-mean-decay", 1.5}}), Error);
  EXPECT_THROW(AdaClip(Model(), ClipNorm(1), {{"clip-variance-decay", -0.1}}), Error);
  EXPECT_THROW(AdaClip(Model(), ClipNorm(1), {{"clip-variance-min", 0.0}}), Error);
  EXPECT_THROW(
      AdaClip(Model(), ClipNorm(1), {{"clip-variance-min", 1.0}, {"clip-variance-max", 0.5}}),
      Error);
  AdaClip policy(Model(), ClipNorm(1));
  EXPECT_THROW(policy.Groups({Parameter("a.weight", {3, 2})}), Error);
  EXPECT_THROW(policy.Groups({Parameter("a.weight", {6}), Parameter("a.bias", {2})}), Error);
  EXPECT_EQ(policy.Groups(Model()), (std::vector<std::int64_t>{0, 0}));
  std::vector<NamedParameter> partly_frozen = Model();
  partly_frozen.push_back(Parameter("frozen.weight", {9}));
  partly_frozen.back().value.set_requires_grad(false);
  EXPECT_NO_THROW(AdaClip(partly_frozen, ClipNorm(1)).Groups(Model()));
  EXPECT_DEATH(policy.Update(ForgedGradients({at::zeros({1})}, 1)), "one tensor");
}

}  // namespace
}  // namespace sordino
