// What the clipping policies and the ways to find norms do in a run: noise, sensitivity, memory.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/clipping/adaclip.h"
#include "sordino/clipping/clipping_component.h"
#include "sordino/clipping/norms_component.h"
#include "sordino/clipping/preconditioned.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/jl_clipping.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

constexpr std::int64_t kRecords = 30;

PlanOptions Options(Choice clipping, Choice norms = "automatic", std::int64_t steps = 1) {
  PlanOptions options = FullBatch(kRecords, steps);
  options.clipping = std::move(clipping);
  options.norms = std::move(norms);
  return options;
}

// b = 0.5 and m = 0, whatever is released.
Choice ConstantAdaClip() {
  return {"adaclip",
          {{"clip-mean-decay", 1.0},
           {"clip-variance-decay", 1.0},
           {"clip-variance-min", 0.25},
           {"clip-variance-max", 0.25}}};
}

Choice FewDirections() {
  return {"jl", {{"jl-directions", std::int64_t{8}}, {"jl-failure", 1e-3}}};
}

struct NoiseCase {
  PlanOptions options;
  double wanted;  // standard deviation of a step, for learning rate 1 and batches of kRecords
};

// Updates of a loss without gradients are noise alone. The estimate of a deviation from 400,000
// values is off by 0.11 %: a noise that is 1 % too small is nine of them away.
TEST(ClippingNoise, IsWhatThePlanSaysForEveryPolicy) {
  constexpr std::int64_t kWeights = 20'000;
  constexpr std::int64_t kSteps = 20;
  const double batch = kRecords;
  const double left = 3 / std::sqrt(1 - 9 * 0.25 / (5.0 * 5.0));
  // b = sqrt(s sum of s) = 0.5 sqrt(20,000).
  const double b = 0.5 * std::sqrt(static_cast<double>(kWeights));
  const double phi = JlSensitivityFactor(8, 1e-3);
  const double rho = 1e-4 + std::sqrt(static_cast<double>(kWeights)) * 0x1p-40;
  const double jl = phi / (1 - rho * phi) * (1 + rho) * (1 + rho) + 0.01;
  const std::vector<NoiseCase> cases = {
      {Options("flat", "automatic", kSteps), 3 * 1.01 / batch},
      {Options({"adaptive", {{"clip-rate", 1e-9}, {"count-noise", 5.0}}}, "automatic", kSteps),
       left * 1.01 / batch},
      {Options({"adaptive-layerwise", {{"clip-rate", 1e-9}, {"count-noise", 5.0}}}, "automatic",
               kSteps),
       left * 1.01 / batch},
      {Options(ConstantAdaClip(), "automatic", kSteps), b * 3 * 1.01 / batch},
      {Options({"preconditioned", {{"clip-moment-decay", 1.0}}}, "automatic", kSteps),
       3 * 1.01 / batch},
      // The squared norm of the noise is the same whatever the scale is.
      {Options({"preconditioned", {{"clip-moment-decay", 0.99}}}, "automatic", kSteps),
       3 * 1.01 / batch},
      {Options("flat", FewDirections(), kSteps), 3 * jl / batch},
  };
  for (const NoiseCase& noise : cases) {
    const Dataset data = RandomFeatures(kRecords, 1, 3);
    const PrivacyPlan plan(noise.options, NoiseMultiplier(3), Delta(1e-5));
    Weights weights(kWeights);
    Trainer trainer(plan, weights.Named(), weights.NoGradient(), data, {.learning_rate = 1},
                    {.insecure_seed = 6});
    double variance = 0;
    at::Tensor last = weights.value.detach().to(at::kDouble);
    trainer.Run([&](std::int64_t) {
      const at::Tensor now = weights.value.detach().to(at::kDouble);
      variance += (now - last).square().mean().item<double>() / kSteps;
      last = now;
      return true;
    });
    const std::string name = noise.options.clipping.name + ", norms " + noise.options.norms.name;
    EXPECT_GT(std::sqrt(variance) / noise.wanted, 1 - 0.0056) << name;
    EXPECT_LT(std::sqrt(variance) / noise.wanted, 1 + 0.0056 + 1e-4) << name;
  }
}

// The noise of a count moves the logarithm of a bound by rate * noise / batch. 400 layers and 25
// steps: the estimate of a deviation from 10,000 values is off by 0.71 %, and six of these fail
// with probability 2e-9.
TEST(ClippingNoise, OnTheCountOfEveryLayerIsWhatWasDeclared) {
  constexpr std::int64_t kLayers = 400;
  constexpr std::int64_t kSteps = 25;
  constexpr double kCountNoise = 90;
  PlanOptions options = FullBatch(1, kSteps);
  options.sampling = "poisson";
  options.batch = 1;
  options.records = 0;
  options.rate = SamplingRate(0.5);
  options.clipping = {"adaptive-layerwise", {{"clip-rate", 1e-3}, {"count-noise", kCountNoise}}};
  const PrivacyPlan plan(options, NoiseMultiplier(1), Delta(1e-5));
  std::vector<NamedParameter> parameters;
  for (std::int64_t i = 0; i < kLayers; ++i) {
    parameters.push_back({"l" + std::to_string(i) + ".w", at::zeros({1}).set_requires_grad(true)});
  }
  const LossFunction loss = [&](const Batch& batch) {
    at::Tensor sum = batch[0].sum(1) * 0;
    for (const NamedParameter& parameter : parameters) sum = sum + parameter.value * 0;
    return sum;
  };
  Dataset data = RandomFeatures(1, 1, 1);
  data.inputs = data.inputs.narrow(0, 0, 0);
  data.labels = data.labels.narrow(0, 0, 0);
  Trainer trainer(plan, parameters, loss, data, {.learning_rate = 1}, {.insecure_seed = 4});
  const auto bounds = [&] {
    for (const auto& [name, tensor] : trainer.SaveState()) {
      if (name == "clip.bounds") return tensor.log();
    }
    return at::Tensor();
  };
  at::Tensor last = bounds();
  ASSERT_EQ(last.numel(), kLayers);
  EXPECT_NEAR(last[0].item<double>(), std::log(1 / 20.0), 1e-12);  // 1 / sqrt(400)
  double variance = 0;
  trainer.Run([&](std::int64_t) {
    const at::Tensor now = bounds();
    variance += (now - last).square().mean().item<double>() / kSteps;
    last = now;
    return true;
  });
  EXPECT_NEAR(std::sqrt(variance) / (1e-3 * kCountNoise / 1), 1, 0.043);
}

// With the same seed the noise is the same, and the updates of neighbours differ by what one record
// moved.
TEST(ClippingSensitivity, OneRecordMovesAnUpdateByAtMostTheUnitOfTheNoise) {
  const double phi = JlSensitivityFactor(8, 1e-3);
  struct Case {
    PlanOptions options;
    double unit;
  };
  std::vector<Case> cases = {{Options("flat", FewDirections()), phi * 1.02}};
  for (const std::string_view name : ClippingPolicies().names()) {
    Choice clipping{std::string(name)};
    if (name.starts_with("global")) clipping.options = {{"clip-threshold", 2.0}};
    if (name == "adaclip") clipping = ConstantAdaClip();
    // b = 0.5 sqrt(5)
    cases.push_back({Options(clipping), 1.01 * (name == "adaclip" ? 0.5 * std::sqrt(5.0) : 1)});
  }
  for (const Case& tested : cases) {
    Dataset data = RandomFeatures(kRecords, 5, 4);
    data.labels[kRecords - 1] = 1;  // a gradient that is not zero
    const PrivacyPlan plan(tested.options, NoiseMultiplier(1), Delta(1e-5));
    const auto update = [&](const Dataset& records) {
      Weights weights(5);
      Trainer trainer(plan, weights.Named(), weights.SquaredError(), records,
                      {.learning_rate = static_cast<double>(kRecords)}, {.insecure_seed = 8});
      trainer.Run();
      return weights.value.detach().to(at::kDouble);
    };
    Dataset fewer = data;
    fewer.inputs = data.inputs.narrow(0, 0, kRecords - 1);
    fewer.labels = data.labels.narrow(0, 0, kRecords - 1);
    const at::Tensor without = update(fewer);
    double largest = 0;
    for (const double size : {1e-3, 0.4, 1.0, 1e4, 1e18}) {
      data.inputs = data.inputs.clone();
      data.inputs[kRecords - 1].fill_(size);
      largest = std::max(largest, (update(data) - without).norm().item<double>());
    }
    const std::string name = tested.options.clipping.name + ", norms " + tested.options.norms.name;
    EXPECT_LT(largest, tested.unit) << name;
    EXPECT_GT(largest, tested.unit / 4) << name;
  }
}

// Step by step by hand, with the noise of the same seed.
TEST(AdaClipRun, IsClippedNoisedMappedBackAndTracked) {
  const Dataset data = RandomFeatures(kRecords, 4, 5);
  PlanOptions options = Options({"adaclip",
                                 {{"clip-mean-decay", 0.9},
                                  {"clip-variance-decay", 0.8},
                                  {"clip-variance-min", 1e-4},
                                  {"clip-variance-max", 10.0},
                                  {"clip-variance-factor", 3.0}}},
                                "automatic", 5);
  options.clip = ClipNorm(0.7);
  const PrivacyPlan plan(options, NoiseMultiplier(0.4), Delta(1e-5));
  Weights trained(4);
  Trainer trainer(plan, trained.Named(), trained.SquaredError(), data, {.learning_rate = 0.3},
                  {.insecure_seed = 9});
  Weights own(4);
  Clipper clipper(own.Named(), {}, plan.Sum());
  AdaClip policy(own.Named(), options.clip, options.clipping.options);
  RandomSource random(9);
  for (std::int64_t step = 0; step < 5; ++step) {
    trainer.Step();
    const BoundedSum sum =
        clipper.ClippedSum(own.SquaredError(), {data.inputs, data.labels}, policy);
    const NoisedGradients mean = AddNoise(sum,
                                          {.multiplier = NoiseMultiplier(0.4),
                                           .divisor = static_cast<double>(kRecords),
                                           .step = step},
                                          random);
    const NoisedGradients gradients = policy.ToGradients(mean);
    policy.Update(mean);
    const at::NoGradGuard no_grad;
    own.value.sub_(0.3 * gradients.value()[0]);
    EXPECT_LT((own.value - trained.value).abs().max().item<double>(), 1e-6) << step;
  }
  EXPECT_GT(trained.value.detach().norm().item<double>(), 0.01);
}

TEST(AdaClipRun, SavesWhatItTracksAndRefusesAnotherState) {
  const Dataset data = RandomFeatures(kRecords, 4, 5);
  const PrivacyPlan plan(Options("adaclip", "automatic", 4), NoiseMultiplier(1), Delta(1e-5));
  Weights weights(4);
  const auto make = [&] {
    return Trainer(plan, weights.Named(), weights.SquaredError(), data, {.learning_rate = 0.1},
                   {.insecure_seed = 1});
  };
  Trainer trainer = make();
  trainer.Step();
  const NamedTensors state = trainer.SaveState();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("parameter.weights", "updates",
                                                   "clip.mean.weights", "clip.variance.weights"));
  make().RestoreState(state, 1);
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (!state[i].first.starts_with("clip.")) continue;
    NamedTensors wrong = state;
    wrong[i].second = at::full_like(state[i].second, std::nan(""));
    EXPECT_THROW(make().RestoreState(wrong, 1), Error) << state[i].first;
    wrong[i].second = at::ones({5});
    EXPECT_THROW(make().RestoreState(wrong, 1), Error) << state[i].first;
    wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_THROW(make().RestoreState(wrong, 1), Error) << state[i].first;
  }
}

// Step by step by hand, with the noise of the same seed and a clipping norm that falls.
TEST(PreconditionedRun, IsClippedNoisedMappedBackAndTracked) {
  const Dataset data = RandomFeatures(kRecords, 4, 5);
  PlanOptions options = Options(
      {"preconditioned", {{"clip-moment-decay", 0.5}, {"clip-scale-floor", 0.01}}}, "automatic", 6);
  options.clip = ClipNorm(0.7);
  options.clip_schedule = Schedule::Parse("linear:0.5");
  const PrivacyPlan plan(options, NoiseMultiplier(0.4), Delta(1e-5));
  Weights trained(4);
  Trainer trainer(plan, trained.Named(), trained.SquaredError(), data, {.learning_rate = 0.3},
                  {.insecure_seed = 9});
  Weights own(4);
  Clipper clipper(own.Named(), {}, plan.Sum());
  PreconditionedClipping policy(own.Named(), options.clip, options.clipping.options);
  RandomSource random(9);
  for (std::int64_t step = 0; step < 6; ++step) {
    trainer.Step();
    policy.SetBound(plan.StepClip(step));
    const BoundedSum sum =
        clipper.ClippedSum(own.SquaredError(), {data.inputs, data.labels}, policy);
    const NoisedGradients mean = AddNoise(sum,
                                          {.multiplier = NoiseMultiplier(0.4),
                                           .divisor = static_cast<double>(kRecords),
                                           .step = step},
                                          random);
    const NoisedGradients gradients = policy.ToGradients(mean);
    policy.Update(mean);
    const at::NoGradGuard no_grad;
    own.value.sub_(0.3 * gradients.value()[0]);
    EXPECT_LT((own.value - trained.value).abs().max().item<double>(), 1e-6) << step;
  }
  EXPECT_GT(trained.value.detach().norm().item<double>(), 0.01);
}

// With a scale that stays 1 the sums, their noise and the weights are those of flat clipping.
TEST(PreconditionedRun, WithAScaleOfOneIsFlatClippingBitForBit) {
  const Dataset data = RandomFeatures(kRecords, 4, 5);
  const auto trained = [&](const Choice& clipping) {
    const PrivacyPlan plan(Options(clipping, "materialise", 4), NoiseMultiplier(0.4), Delta(1e-5));
    Weights weights(4);
    Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {.learning_rate = 0.3},
                    {.insecure_seed = 9});
    trainer.Run();
    return weights.value.detach().clone();
  };
  const at::Tensor flat = trained("flat");
  EXPECT_TRUE(trained({"preconditioned", {{"clip-moment-decay", 1.0}}}).equal(flat));
  EXPECT_FALSE(trained({"preconditioned", {{"clip-moment-decay", 0.5}}}).equal(flat));
}

TEST(PreconditionedRun, ChargesWhatFlatClippingChargesAndRefusesEstimatedNorms) {
  const auto event = [](const Choice& clipping) {
    return PrivacyPlan(Options(clipping, "automatic", 7), NoiseMultiplier(0.9), Delta(1e-5))
        .event()
        .ToString();
  };
  EXPECT_EQ(event("preconditioned"), event("flat"));
  EXPECT_THAT([] { PrivacyPlan(Options("preconditioned", "jl"), NoiseMultiplier(1), Delta(1e-5)); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("use exact norms")));
}

TEST(PreconditionedRun, SavesTheSecondMomentAndRefusesAnother) {
  const Dataset data = RandomFeatures(kRecords, 4, 5);
  const PrivacyPlan plan(Options("preconditioned", "automatic", 4), NoiseMultiplier(1),
                         Delta(1e-5));
  Weights weights(4);
  const auto make = [&] {
    return Trainer(plan, weights.Named(), weights.SquaredError(), data, {.learning_rate = 0.1},
                   {.insecure_seed = 1});
  };
  Trainer trainer = make();
  trainer.Step();
  const NamedTensors state = trainer.SaveState();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state) names.push_back(name);
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("parameter.weights", "updates", "clip.moment.weights"));
  make().RestoreState(state, 1);
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (!state[i].first.starts_with("clip.")) continue;
    NamedTensors wrong = state;
    wrong[i].second = at::full_like(state[i].second, -1);
    EXPECT_THROW(make().RestoreState(wrong, 1), Error);
    wrong[i].second = at::ones({5});
    EXPECT_THROW(make().RestoreState(wrong, 1), Error);
    wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_THROW(make().RestoreState(wrong, 1), Error);
  }
}

TEST(AdaptiveLayerwiseRun, RefusesCountsOfSoManyLayersBeforeTheFirstCharge) {
  // Enough for one group of an unknown model, not for the 100 layers of this one.
  const Dataset data = RandomFeatures(kRecords, 1, 5);
  const PrivacyPlan plan(Options({"adaptive-layerwise", {{"count-noise", 4.0}}}),
                         NoiseMultiplier(1), Delta(1e-5));
  std::vector<NamedParameter> parameters;
  parameters.reserve(100);
  for (int i = 0; i < 100; ++i) {
    parameters.push_back({"l" + std::to_string(i) + ".w", at::zeros({1}).set_requires_grad(true)});
  }
  const LossFunction loss = [&](const Batch& batch) {
    return at::matmul(batch[0], parameters[0].value);
  };
  bool charged = false;
  EXPECT_THAT(
      [&] {
        Trainer(plan, parameters, loss, data, {.learning_rate = 1},
                {.charge = [&](std::int64_t, const Event&) { charged = true; }});
      },
      testing::ThrowsMessage<Error>(testing::HasSubstr("leaves nothing")));
  EXPECT_FALSE(charged);
}

// With the quantile 0 a bound falls in every step, to a thousandth of where it began; the policy
// that is tried before the first step has that bound.
TEST(AdaptiveRun, BoundsFallToTheTightestPolicyAndNoFurther) {
  const Dataset data = RandomFeatures(kRecords, 3, 5);
  for (const char* name : {"adaptive", "adaptive-layerwise"}) {
    const PrivacyPlan plan(
        Options({name, {{"quantile", 0.0}, {"clip-rate", 5.0}, {"count-noise", 5.0}}}, "automatic",
                60),
        NoiseMultiplier(1), Delta(1e-5));
    Weights weights(3);
    const auto tried = plan.StartClipping(weights.Named());
    EXPECT_THAT(tried->TightestPolicy(plan.SmallestClip()).Bounds(),
                testing::ElementsAre(testing::DoubleEq(1e-3)));
    EXPECT_THAT(tried->StepPolicy(plan.StepClip(0)).Bounds(), testing::ElementsAre(1.0));
    Trainer trainer(plan, weights.Named(), weights.NoGradient(), data, {.learning_rate = 1},
                    {.insecure_seed = 2});
    trainer.Run();
    for (const auto& [key, tensor] : trainer.SaveState()) {
      if (key != "clip.bounds") continue;
      EXPECT_DOUBLE_EQ(tensor.item<double>(), 1e-3) << name;
    }
  }
}

TEST(EstimatedNormsRun, DirectionsAreSecretAndOfTheStep) {
  const Dataset data = RandomFeatures(kRecords, 5, 4);
  const PrivacyPlan plan(Options("flat", FewDirections(), 3), NoiseMultiplier(1), Delta(1e-5));
  const auto sum_of = [&](RandomSource& random, std::int64_t step) {
    Weights weights(5);
    const auto sums = plan.StartSums(weights.Named(), {});
    const auto clipping = plan.StartClipping(sums->parameters());
    return sums
        ->Sum(weights.SquaredError(), {data.inputs, data.labels},
              clipping->StepPolicy(plan.StepClip(step)), step, random)
        .gradients[0];
  };
  RandomSource seeded(3);
  RandomSource same(3);
  EXPECT_TRUE(sum_of(seeded, 0).equal(sum_of(same, 0)));
  EXPECT_FALSE(sum_of(seeded, 0).equal(sum_of(seeded, 1)));
  RandomSource one;
  RandomSource other;
  EXPECT_FALSE(sum_of(one, 0).equal(sum_of(other, 0)));
}

// Every example has one coordinate as its gradient, so its estimate is of that coordinate. The mean
// square of 500 estimates from 100 directions has the deviation sqrt(2 / 50,000) = 0.63 %, and 5.5
// of these fail with probability 4e-8; directions that are 5 % too long are 16 of them away. The
// squares themselves have the variance 2 / 100, known to 6.5 %; of one direction alone it is 2.
TEST(EstimatedNormsRun, DirectionsAreStandardNormal) {
  constexpr std::int64_t kExamples = 500;
  PlanOptions options = FullBatch(kExamples, 1);
  options.norms = {"jl", {{"jl-directions", std::int64_t{100}}}};
  const PrivacyPlan plan(options, NoiseMultiplier(1), Delta(1e-5));
  at::Tensor weights = at::zeros({kExamples}, at::kDouble).set_requires_grad(true);
  const auto sums = plan.StartSums({{"w", weights}}, {});
  RandomSource random(12);
  // Clipped to 1e-3 by its estimate E, a gradient of 1 comes out as 1e-3 / E.
  const LossFunction loss = [&](const Batch& batch) { return at::matmul(batch[0], weights); };
  const FlatClipping policy(ClipNorm(1e-3));
  const BoundedSum sum = sums->Sum(loss, {at::eye(kExamples, at::kDouble)}, policy, 0, random);
  const at::Tensor estimates = 1e-3 / sum.gradients[0];
  EXPECT_NEAR(estimates.square().mean().item<double>(), 1,
              5.5 * std::sqrt(2.0 / (100 * kExamples)));
  EXPECT_NEAR(estimates.square().var().item<double>(), 0.02, 5.5 * 0.065 * 0.02);
}

}  // namespace
}  // namespace sordino
