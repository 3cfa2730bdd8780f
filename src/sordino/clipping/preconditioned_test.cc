#include "sordino/clipping/preconditioned.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/not_a_number.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/clipping_test_support.h"
#include "sordino/gradients/testing/forged_values.h"

namespace sordino {
namespace {

std::vector<NamedParameter> PreconditionedModel() {
  return {Parameter("a.weight", {3, 2}), Parameter("b.weight", {2})};
}

NoisedGradients NormalMean(std::mt19937_64& random, double deviation) {
  std::normal_distribution<double> normal(0, deviation);
  std::vector<at::Tensor> mean = {at::zeros({3, 2}), at::zeros({2})};
  for (at::Tensor& tensor : mean) {
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      tensor.data_ptr<float>()[i] = static_cast<float>(normal(random));
    }
  }
  return ForgedGradients(mean, 0.1);
}

double MeanSquareOfTheScale(const PreconditionedClipping& policy) {
  double squares = 0;
  double coordinates = 0;
  for (const at::Tensor& scale : policy.transform()->scale) {
    squares += scale.to(at::kDouble).square().sum().item<double>();
    coordinates += static_cast<double>(scale.numel());
  }
  return squares / coordinates;
}

TEST(PreconditionedClipping, FactorTimesNormNeverExceedsTheBound) {
  PreconditionedClipping policy(PreconditionedModel(), ClipNorm(1));
  EXPECT_EQ(Violations(policy, AdversarialNorms(1)), 0);
  for (const double bound : {2.5, 0.4}) {
    policy.SetBound(ClipNorm(bound));
    EXPECT_EQ(Violations(policy, AdversarialNorms(bound)), 0);
    EXPECT_GT(FactorOf(policy, 100) * 100, 0.99 * bound);
  }
}

TEST(PreconditionedClipping, TheFirstStepsAreTheFormula) {
  PreconditionedClipping policy({Parameter("w", {2})}, ClipNorm(1),
                                {{"clip-moment-decay", 0.8}, {"clip-scale-floor", 0.5}});
  const auto scale = [&](int j) { return policy.transform()->scale[0][j].item<double>(); };
  EXPECT_EQ(scale(0), 1);
  EXPECT_EQ(scale(1), 1);
  std::vector<double> v;
  for (const auto& y : {std::vector<double>{3, -1}, {0.5, 2}, {-1, 0}}) {
    const NoisedGradients mean = ForgedGradients({at::tensor(y).to(at::kFloat)}, 0.25);
    const at::Tensor gradients = policy.ToGradients(mean).value()[0];
    const std::vector<double> squares = {std::pow(scale(0) * y[0], 2),
                                         std::pow(scale(1) * y[1], 2)};
    EXPECT_NEAR(gradients[0].item<double>(), scale(0) * y[0], 1e-6);
    EXPECT_NEAR(gradients[1].item<double>(), scale(1) * y[1], 1e-6);
    policy.Update(mean);
    if (v.empty()) v.assign(2, (squares[0] + squares[1]) / 2);
    for (int j = 0; j < 2; ++j) v[j] = 0.8 * v[j] + 0.2 * squares[j];
    const double r = std::sqrt((v[0] + v[1]) / 2);
    const std::vector<double> b = {std::sqrt(v[0]) + 0.5 * r, std::sqrt(v[1]) + 0.5 * r};
    const double n = std::sqrt((b[0] * b[0] + b[1] * b[1]) / 2);
    EXPECT_NEAR(scale(0), b[0] / n, 1e-6);
    EXPECT_NEAR(scale(1), b[1] / n, 1e-6);
  }
  EXPECT_GT(std::abs(scale(0) - scale(1)), 0.05);
}

// C keeps its meaning whatever the size of the gradients is: b has the mean square 1, and no entry
// is below eps / (1 + eps).
TEST(PreconditionedClipping, TheScaleHasMeanSquareOneAndAFloor) {
  for (const double size : {1e-12, 1e-3, 1.0, 1e12, 1e30}) {
    std::mt19937_64 random(4);
    PreconditionedClipping policy(PreconditionedModel(), ClipNorm(1),
                                  {{"clip-moment-decay", 0.0}, {"clip-scale-floor", 0.01}});
    for (int step = 0; step < 5; ++step) {
      policy.Update(NormalMean(random, size));
      EXPECT_NEAR(MeanSquareOfTheScale(policy), 1, 1e-6) << size;
      for (const at::Tensor& scale : policy.transform()->scale) {
        EXPECT_GE(scale.min().item<double>(), 0.01 / 1.01 * (1 - 1e-6)) << size;
      }
    }
  }
  // All of it in one coordinate.
  PreconditionedClipping policy({Parameter("w", {4})}, ClipNorm(1),
                                {{"clip-moment-decay", 0.0}, {"clip-scale-floor", 1e-3}});
  policy.Update(ForgedGradients({at::tensor({1.0F, 0.0F, 0.0F, 0.0F})}, 1));
  EXPECT_NEAR(policy.transform()->scale[0][0].item<double>(), 2, 2e-3);
  EXPECT_NEAR(policy.transform()->scale[0][3].item<double>(), 1e-3, 1e-5);
}

// Noise that is scaled with the gradients moves the scale of no coordinate for good: what is left
// is in proportion to the gradients.
TEST(PreconditionedClipping, TheScaleFollowsTheGradientsAndNotTheirNoise) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  const std::vector<double> gradient = {2, 0.5};
  PreconditionedClipping policy({Parameter("w", {2})}, ClipNorm(100),
                                {{"clip-moment-decay", 0.99}, {"clip-scale-floor", 1e-3}});
  double ratio = 0;
  constexpr int kFirst = 2000;
  constexpr int kSteps = 10'000;
  for (int step = 0; step < kFirst + kSteps; ++step) {
    const at::Tensor& scale = policy.transform()->scale[0];
    at::Tensor y = at::zeros({2});
    for (std::int64_t j = 0; j < 2; ++j) {
      y[j] = gradient[static_cast<std::size_t>(j)] / scale[j].item<double>() + normal(random);
    }
    policy.Update(ForgedGradients({y}, 1));
    if (step >= kFirst) ratio += (scale[0] / scale[1]).item<double>() / kSteps;
  }
  // The mean has a deviation of 0.033 over seeds: 6 of them.
  EXPECT_NEAR(ratio, 4, 0.2);
}

TEST(PreconditionedClipping, WithAScaleOfOneIsFlatClippingBitForBit) {
  const at::Tensor weights = at::full({7}, 0.3F).set_requires_grad(true);
  const at::Tensor bias = at::full({1}, 0.1F).set_requires_grad(true);
  const std::vector<NamedParameter> parameters = {{"l.weight", weights}, {"l.bias", bias}};
  const LossFunction loss = [&](const Batch& batch) {
    return (at::matmul(batch[0], weights) + bias - 1).square();
  };
  std::mt19937_64 random(6);
  std::normal_distribution<float> normal;
  at::Tensor inputs = at::zeros({20, 7});
  for (std::int64_t i = 0; i < inputs.numel(); ++i) inputs.data_ptr<float>()[i] = normal(random);
  // The second moment stays what it was first, the same for all coordinates.
  PreconditionedClipping policy(parameters, ClipNorm(0.5), {{"clip-moment-decay", 1.0}});
  for (int step = 0; step < 3; ++step) {
    Clipper scaled(parameters, {.norms = NormMethod::kMaterialise}, {});
    Clipper flat(parameters, {.norms = NormMethod::kMaterialise}, {});
    const BoundedSum one = scaled.ClippedSum(loss, {inputs}, policy);
    const BoundedSum other = flat.ClippedSum(loss, {inputs}, FlatClipping(ClipNorm(0.5)));
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(one.gradients[i].equal(other.gradients[i])) << step;
      EXPECT_GT(one.gradients[i].norm().item<double>(), 0.01);
    }
    const NoisedGradients mean = ForgedGradients(
        {at::tensor({1.F, 2.F, 3.F, 4.F, -5.F, 0.F, 1e-3F}), at::full({1}, 9.F)}, 1);
    policy.Update(mean);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(policy.ToGradients(mean).value()[i].equal(mean.value()[i]));
    }
  }
}

TEST(PreconditionedClipping, ToGradientsStatesTheLeastNoiseOfACoordinate) {
  std::mt19937_64 random(2);
  PreconditionedClipping policy(PreconditionedModel(), ClipNorm(1), {{"clip-moment-decay", 0.5}});
  for (int step = 0; step < 5; ++step) policy.Update(NormalMean(random, 1));
  double least = 1e300;
  for (const at::Tensor& scale : policy.transform()->scale) {
    least = std::min(least, scale.min().item<double>());
  }
  EXPECT_LT(least, 0.9);
  EXPECT_DOUBLE_EQ(policy.ToGradients(NormalMean(random, 1)).standard_deviation(), 0.1 * least);
}

TEST(PreconditionedClipping, ARestoredPolicyContinuesBitForBit) {
  for (const int steps : {0, 1, 5}) {
    std::mt19937_64 random(3);
    const OptionValues options = {{"clip-moment-decay", 0.9}};
    PreconditionedClipping policy(PreconditionedModel(), ClipNorm(1), options);
    for (int step = 0; step < steps; ++step) policy.Update(NormalMean(random, 1));
    PreconditionedClipping restored(PreconditionedModel(), ClipNorm(1), options);
    TestForgery::Restore<ScaledClipping>(restored, {*policy.tracked()[0].values});
    for (int step = 0; step < 3; ++step) {
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(restored.transform()->scale[i].equal(policy.transform()->scale[i])) << steps;
      }
      const NoisedGradients mean = NormalMean(random, 1);
      policy.Update(mean);
      restored.Update(mean);
    }
  }
}

TEST(PreconditionedClipping, RefusesASavedStateOfAnotherModelOrOutOfRange) {
  PreconditionedClipping policy(PreconditionedModel(), ClipNorm(1));
  const std::vector<at::Tensor> moment = {at::full({3, 2}, 0.1), at::full({2}, 0.1)};
  const auto restore = [&](std::vector<std::vector<at::Tensor>> saved) {
    TestForgery::Restore<ScaledClipping>(policy, saved);
  };
  EXPECT_NO_THROW(restore({moment}));
  EXPECT_THROW(restore({}), Error);
  EXPECT_THROW(restore({moment, moment}), Error);
  EXPECT_THROW(restore({{moment[0]}}), Error);
  EXPECT_THROW(restore({{moment[0], at::full({2}, 0.1, at::kDouble)}}), Error);
  for (const double wrong : {-1.0, 1e31, kNan, kInfinity}) {
    EXPECT_THROW(restore({{moment[0], at::full({2}, wrong)}}), Error) << wrong;
  }
}

TEST(PreconditionedClipping, RefusesWhatItWasNotMadeFor) {
  const ClipNorm clip(1);
  EXPECT_THROW(PreconditionedClipping({}, clip), Error);
  EXPECT_THROW(PreconditionedClipping(PreconditionedModel(), clip, {{"clip-moment-decay", 1.5}}),
               Error);
  EXPECT_THROW(PreconditionedClipping(PreconditionedModel(), clip, {{"clip-scale-floor", 0.0}}),
               Error);
  EXPECT_THROW(PreconditionedClipping(PreconditionedModel(), clip, {{"clip-scale-floor", 1e4}}),
               Error);
  PreconditionedClipping policy(PreconditionedModel(), clip);
  EXPECT_THROW(policy.Groups({Parameter("a.weight", {3, 2})}), Error);
  EXPECT_THROW(policy.Groups({Parameter("a.weight", {6}), Parameter("b.weight", {2})}), Error);
  EXPECT_EQ(policy.Groups(PreconditionedModel()), (std::vector<std::int64_t>{0, 0}));
  EXPECT_DEATH(policy.Update(ForgedGradients({at::zeros({1})}, 1)), "one tensor");
}

}  // namespace
}  // namespace sordino
