#include "sordino/training/trainer.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/testing/forged_values.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/training/testing/trainer_cases.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// What a model cannot see: the tensor of all examples of a batch.
at::Tensor Unwrapped(const at::Tensor& tensor) {
  return at::functorch::maybeGetBatchedImpl(tensor)->value();
}

// Nothing but noised gradients reaches an optimizer, and no batch is handed to a trainer.
using OptimizerStep = decltype(&Optimizer::Step);
static_assert(std::is_invocable_v<OptimizerStep, Optimizer&, const NoisedGradients&>);
static_assert(!std::is_invocable_v<OptimizerStep, Optimizer&, const BoundedSum&>);
static_assert(!std::is_invocable_v<OptimizerStep, Optimizer&, const std::vector<at::Tensor>&>);
static_assert(std::is_invocable_v<decltype(&Trainer::Step), Trainer&>);
static_assert(!std::is_invocable_v<decltype(&Trainer::Step), Trainer&, const Batch&>);

TEST(Trainer, StepIsClippedSumPlusReplayedNoiseOverTheDeclaredBatch) {
  const Dataset data = RandomFeatures(40, 3, 1);
  PlanOptions options = FullBatch(data.size(), 1);
  options.batch = 25;  // declared, not counted
  const PrivacyPlan plan(options, NoiseMultiplier(0.7), Delta(1e-5));
  Weights weights(3);
  const at::Tensor before = weights.value.detach().clone();
  Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {.learning_rate = 2},
                  {.insecure_seed = 5});
  trainer.Run();

  at::Tensor sum = at::zeros({3}, at::kDouble);
  for (std::int64_t i = 0; i < data.size(); ++i) {
    const at::Tensor x = data.inputs[i].to(at::kDouble);
    const double error = x.dot(before.to(at::kDouble)).item<double>() -
                         static_cast<double>(data.labels[i].item<std::int64_t>());
    const at::Tensor gradient = x * 2 * error;
    sum += gradient * std::min(1.0, 1 / gradient.norm().item<double>());
  }
  RandomSource replay(5);
  const BoundedSum bounded =
      ForgedSum({.gradients = {at::zeros({3}, at::kDouble)}, .sensitivity = L2Sensitivity(1.01)});
  const NoisedGradients noise =
      AddNoise(bounded, {.multiplier = NoiseMultiplier(0.7), .divisor = 25, .step = 0}, replay);
  const at::Tensor wanted = before - 2 * (sum / 25 + noise.value()[0]);
  EXPECT_LT((weights.value - wanted).abs().max().item<double>(), 1e-5);
}

// What the noise of an update must be for each sampler and adjacency, in clipping norms.
struct UnitCase {
  const char* sampling;
  Adjacency adjacency;
  std::int64_t micro_batch;
  double unit;
};

void PrintTo(const UnitCase& unit, std::ostream* out) {
  *out << unit.sampling << ", " << AdjacencyName(unit.adjacency) << ", micro-batch "
       << unit.micro_batch;
}

class TrainerNoise : public testing::TestWithParam<UnitCase> {};

// Updates of a loss without gradients are noise alone. A deviation that is 1 % too small is ten
// deviations of the estimate away.
TEST_P(TrainerNoise, HasTheUnitOfTheEventToAFractionOfAPercent) {
  const UnitCase& unit = GetParam();
  const Dataset data = RandomFeatures(12, 1, 2);
  constexpr int kSteps = 20;
  PlanOptions options = FullBatch(data.size(), kSteps);
  options.sampling = unit.sampling;
  options.adjacency = unit.adjacency;
  options.micro_batch = unit.micro_batch;
  options.batch = 6;
  options.clip = ClipNorm(0.5);
  const PrivacyPlan plan(options, NoiseMultiplier(3), Delta(1e-5));
  Weights weights(20'000);
  Trainer trainer(plan, weights.Named(), weights.NoGradient(), data, {.learning_rate = 1},
                  {.insecure_seed = 6});
  double variance = 0;
  at::Tensor last = weights.value.detach().clone();
  trainer.Run([&](std::int64_t) {
    variance += (weights.value - last).to(at::kDouble).square().mean().item<double>() / kSteps;
    last = weights.value.detach().clone();
    return true;
  });
  const double deviation = std::sqrt(variance);
  // 1.01: the declared rounding
  const double wanted = 3 * unit.unit * 0.5 * 1.01 / (6.0 / static_cast<double>(unit.micro_batch));
  // The estimate of a deviation from 400,000 values is off by 1 / sqrt(2 n) = 0.11 %; five of
  // these, and the grid's share, which is never negative.
  EXPECT_GT(deviation / wanted, 1 - 0.0056);
  EXPECT_LT(deviation / wanted, 1 + 0.0056 + 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Units, TrainerNoise,
                         testing::Values(UnitCase{"poisson", Adjacency::kAddRemove, 1, 1},
                                         UnitCase{"poisson", Adjacency::kZeroOut, 1, 1},
                                         UnitCase{"poisson", Adjacency::kReplaceOne, 1, 1},
                                         UnitCase{"allocation", Adjacency::kAddRemove, 1, 1},
                                         UnitCase{"allocation", Adjacency::kZeroOut, 1, 1},
                                         UnitCase{"fixed", Adjacency::kReplaceOne, 1, 2},
                                         UnitCase{"fixed", Adjacency::kReplaceOne, 3, 2},
                                         UnitCase{"full", Adjacency::kAddRemove, 1, 1},
                                         UnitCase{"full", Adjacency::kZeroOut, 1, 1},
                                         UnitCase{"full", Adjacency::kReplaceOne, 1, 2},
                                         UnitCase{"full", Adjacency::kZeroOut, 2, 2}));

// The same with a sum that is float64 until it has noise: rounding adds 1 % as in a small batch.
TEST(Trainer, AFullBatchOfSixtyThousandHasTheNoiseOfASmallOne) {
  const Dataset data = RandomFeatures(60'000, 3, 4);
  const PrivacyPlan plan(FullBatch(data.size(), 1), NoiseMultiplier(0.7), Delta(1e-5));
  Weights weights(3);
  const at::Tensor before = weights.value.detach().to(at::kDouble);
  const double rate = plan.Divisor(0);
  Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {.learning_rate = rate},
                  {.insecure_seed = 5});
  trainer.Run();

  const at::Tensor x = data.inputs.to(at::kDouble);
  const at::Tensor gradients = 2 * x * (x.mv(before) - data.labels).unsqueeze(1);
  const at::Tensor factors = gradients.norm(2, {1}, /*keepdim=*/true).reciprocal().clamp_max(1);
  RandomSource replay(5);
  const NoisedGradients noise = AddNoise(
      ForgedSum({.gradients = {at::zeros({3}, at::kDouble)}, .sensitivity = L2Sensitivity(1.01)}),
      {.multiplier = NoiseMultiplier(0.7), .divisor = 1, .step = 0}, replay);
  const at::Tensor wanted = before - (gradients * factors).sum(0) - noise.value()[0];
  EXPECT_EQ(weights.value.scalar_type(), at::kFloat);
  // Float32 weights of a few thousand.
  EXPECT_LT((weights.value - wanted).abs().max().item<double>(), 5e-3);
}

TEST(Trainer, NoiseFollowsTheSchedulesOfNoiseAndClip) {
  const Dataset data = RandomFeatures(4, 1, 3);
  PlanOptions options = FullBatch(data.size(), 2);
  options.noise_schedule = Schedule::Parse("linear:0.5");
  options.clip_schedule = Schedule::Parse("linear:0.25");
  const PrivacyPlan plan(options, NoiseMultiplier(1), Delta(1e-5));
  Weights weights(20'000);
  Trainer trainer(plan, weights.Named(), weights.NoGradient(), data, {.learning_rate = 4},
                  {.insecure_seed = 7});
  double deviations[2];
  for (double& deviation : deviations) {
    const at::Tensor before = weights.value.detach().clone();
    trainer.Step();
    deviation = (weights.value - before).square().mean().sqrt().item<double>();
  }
  // Five deviations of an estimate from 20,000 values are 2.5 %.
  EXPECT_NEAR(deviations[0], 1.01, 0.026);
  EXPECT_NEAR(deviations[1], 1.01 / 8, 0.026 / 8);
}

TEST(Trainer, OneExampleMovesTheUpdateByNoMoreThanTheClip) {
  Dataset data = RandomFeatures(30, 5, 4);
  PlanOptions options = FullBatch(data.size(), 1);
  const PrivacyPlan plan(options, NoiseMultiplier(1), Delta(1e-5));
  const auto update = [&](const Dataset& records) {
    Weights weights(5);
    Trainer trainer(plan, weights.Named(), weights.SquaredError(), records, {.learning_rate = 30},
                    {.insecure_seed = 8});
    trainer.Run();
    return weights.value.detach().clone();
  };
  const at::Tensor all = update(data);
  for (const double size : {1e-3, 1.0, 1e4, 1e18}) {
    Dataset changed = data;
    changed.inputs = data.inputs.clone();
    changed.inputs[29] *= size;
    const at::Tensor with = update(changed);
    Dataset without = changed;
    without.inputs = changed.inputs.narrow(0, 0, 29);
    without.labels = changed.labels.narrow(0, 0, 29);
    EXPECT_LE((with - update(without)).norm().item<double>(), 1.01) << size;
    EXPECT_LE((with - all).norm().item<double>(), 2.02) << size;
  }
}

TEST(Trainer, ExampleThatIsNotFiniteLeavesNoTrace) {
  Dataset data = RandomFeatures(10, 4, 5);
  const PrivacyPlan plan(FullBatch(data.size(), 1), NoiseMultiplier(1), Delta(1e-5));
  const auto update = [&](const Dataset& records) {
    Weights weights(4);
    Trainer trainer(plan, weights.Named(), weights.SquaredError(), records, {.learning_rate = 1},
                    {.insecure_seed = 9});
    trainer.Run();
    return weights.value.detach().clone();
  };
  Dataset without = data;
  without.inputs = data.inputs.narrow(0, 0, 9);
  without.labels = data.labels.narrow(0, 0, 9);
  const at::Tensor wanted = update(without);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    Dataset poisoned = data;
    poisoned.inputs = data.inputs.clone();
    poisoned.inputs[9][2] = bad;
    EXPECT_TRUE(update(poisoned).allclose(wanted, 1e-5, 1e-6));
  }
}

TEST(Trainer, ChargesEveryStepOnceBeforeItsUpdate) {
  const Dataset data = RandomFeatures(20, 2, 6);
  PlanOptions options = FullBatch(data.size(), 7);
  options.sampling = "poisson";
  options.batch = 0.5;  // many batches are empty
  options.noise_schedule = Schedule::Parse("linear:0.5");
  const PrivacyPlan plan(options, NoiseMultiplier(1), Delta(1e-5));
  Weights weights(2);
  std::vector<Event> charged;
  at::Tensor last = weights.value.detach().clone();
  TrainerOptions trainer_options;
  trainer_options.charge = [&](std::int64_t step, const Event& event) {
    EXPECT_EQ(step, static_cast<std::int64_t>(charged.size()));
    EXPECT_TRUE(weights.value.equal(last)) << "the update came before the charge";
    charged.push_back(event);
  };
  Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {.learning_rate = 1},
                  trainer_options);
  trainer.Run([&](std::int64_t done) {
    EXPECT_EQ(static_cast<std::size_t>(done), charged.size());
    EXPECT_FALSE(weights.value.equal(last)) << "a step left no noise";
    last = weights.value.detach().clone();
    return true;
  });
  EXPECT_EQ(charged.size(), 7U);
  EXPECT_EQ(Event::Compose(charged).TotalCount(), plan.event().TotalCount());
  for (std::size_t i = 0; i < charged.size(); ++i) {
    EXPECT_EQ(charged[i], plan.StepEvent(static_cast<std::int64_t>(i)));
  }
}

TEST(Trainer, EmptyDatasetStillReleasesNoise) {
  Dataset data = RandomFeatures(1, 2, 7);
  data.inputs = data.inputs.narrow(0, 0, 0);
  data.labels = data.labels.narrow(0, 0, 0);
  PlanOptions options = FullBatch(100, 1);
  options.sampling = "poisson";
  options.batch = 10;
  const PrivacyPlan plan(options, NoiseMultiplier(1), Delta(1e-5));
  Weights weights(2);
  const at::Tensor before = weights.value.detach().clone();
  Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {.learning_rate = 1});
  trainer.Run();
  EXPECT_FALSE(weights.value.equal(before));
}

TEST(Trainer, RefusedChargeReleasesNothing) {
  const Dataset data = RandomFeatures(5, 2, 8);
  const PrivacyPlan plan(FullBatch(data.size(), 3), NoiseMultiplier(1), Delta(1e-5));
  Weights weights(2);
  const at::Tensor before = weights.value.detach().clone();
  TrainerOptions options;
  bool refuses = true;
  options.charge = [&](std::int64_t, const Event&) {
    if (refuses) throw Error("the budget is used up.");
  };
  Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {}, options);
  EXPECT_THROW(trainer.Step(), Error);
  EXPECT_TRUE(weights.value.equal(before));
  EXPECT_EQ(trainer.steps_done(), 0);
  refuses = false;
  EXPECT_THROW(trainer.Step(), Error) << "the lost batch must not be followed by a later one";
  EXPECT_TRUE(weights.value.equal(before));
}

TEST(Trainer, BatchesHaveTheRateOfThePlan) {
  const Dataset data = RandomFeatures(100, 1, 9);
  PlanOptions options = FullBatch(data.size(), 1500);
  options.sampling = "poisson";
  options.batch = 30;
  const PrivacyPlan plan(options, NoiseMultiplier(1), Delta(1e-5));
  Weights weights(1);
  std::vector<double> sizes;
  const LossFunction counting = [&](const Batch& batch) {
    sizes.push_back(static_cast<double>(Unwrapped(batch[0]).size(0)));
    return (batch[0] * weights.value).sum(1);
  };
  TrainerOptions trainer_options;
  trainer_options.gradients = {
      .physical_batch = 1000, .probe = false, .compare = false, .checked_examples = 0};
  trainer_options.insecure_seed = 10;
  Trainer trainer(plan, weights.Named(), counting, data, {.learning_rate = 0.001}, trainer_options);
  trainer.Run();
  // The first passes are looks at the model with made-up examples.
  ASSERT_EQ(sizes.size(), 1506U);
  EXPECT_LE(*std::max_element(sizes.begin(), sizes.begin() + 6), 6)
      << testing::PrintToString(std::vector<double>(sizes.begin(), sizes.begin() + 10));
  sizes.erase(sizes.begin(), sizes.begin() + 6);
  double mean = 0;
  double square = 0;
  for (const double size : sizes) {
    mean += size / 1500;
    square += size * size / 1500;
  }
  // Binomial(100, 0.3): deviation sqrt(21); five deviations of the mean and of the variance.
  EXPECT_NEAR(mean, 30, 5 * std::sqrt(21 / 1500.0));
  EXPECT_NEAR(square - mean * mean, 21, 5 * 21 * std::sqrt(2 / 1500.0));
}

TEST(Trainer, LargeFullBatchesAreRoundedWithinWhatThePlanDeclares) {
  const Dataset data = RandomFeatures(20, 700, 17);
  for (const std::int64_t records : {20'000, 60'000, 1'000'000}) {
    const PrivacyPlan plan(FullBatch(records, 1), NoiseMultiplier(1), Delta(1e-5));
    Weights weights(700);
    Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {});
    EXPECT_NO_THROW(trainer.Run()) << records;
  }
}

TEST(Trainer, AdaptiveClipFollowsTheQuantile) {
  const Dataset data = RandomFeatures(400, 3, 11);
  PlanOptions options = FullBatch(data.size(), 40);
  options.clipping = {"adaptive", {{"clip-rate", 0.5}}};
  options.clip = ClipNorm(1e-3);
  const PrivacyPlan plan(options, NoiseMultiplier(0.5), Delta(1e-5));
  Weights weights(3);
  const at::Tensor start = weights.value.detach().clone();
  std::vector<double> moves;
  Trainer trainer(plan, weights.Named(), weights.Linear(), data, {.learning_rate = 1},
                  {.insecure_seed = 11});
  at::Tensor last = start;
  trainer.Run([&](std::int64_t) {
    moves.push_back((weights.value - last).norm().item<double>());
    last = weights.value.detach().clone();
    return true;
  });
  // The clip grows from 1e-3 towards the median norm, sqrt(3) or so, and the updates with it.
  EXPECT_LT(moves.front(), 0.01);
  EXPECT_GT(moves.back(), 10 * moves.front());
}

TEST(Trainer, EveryClippingPolicyAndEveryWayToFindNormsTrains) {
  const Dataset data = RandomFeatures(50, 3, 12);
  std::vector<std::pair<std::string_view, std::string_view>> kinds;
  for (const std::string_view name : ClippingPolicies().names())
    kinds.emplace_back(name, "automatic");
  for (const std::string_view name : NormMethods().names()) kinds.emplace_back("flat", name);
  for (const auto& [clipping, norms] : kinds) {
    PlanOptions options = FullBatch(data.size(), 60);
    options.clipping = std::string(clipping);
    options.norms = std::string(norms);
    if (clipping.starts_with("global")) options.clipping.options.Set("clip-threshold", 50.0);
    if (clipping == "adaclip") {
      options.clipping.options.Set("clip-variance-min", 1e-2);
      options.clipping.options.Set("clip-variance-max", 10.0);
    }
    const PrivacyPlan plan(options, NoiseMultiplier(0.05), Delta(1e-5));
    Weights weights(3);
    const double before = weights.MeanSquaredError(data);
    Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {.learning_rate = 0.2},
                    {.insecure_seed = 12});
    trainer.Run();
    EXPECT_LT(weights.MeanSquaredError(data), 0.95 * before) << clipping << ", " << norms;
  }
}

TEST(Trainer, RefusesDataThatWereReadUnderAnotherDeclaration) {
  const auto make = [](const PlanOptions& options, const Dataset& data) {
    Weights weights(2);
    Trainer(PrivacyPlan(options, NoiseMultiplier(1), Delta(1e-5)), weights.Named(),
            weights.SquaredError(), data, {});
  };
  Dataset users = RandomFeatures(20, 2, 1);
  users.declaration.rows_per_user = 3;
  EXPECT_THROW(make(FullBatch(20, 1), users), Error);
  PlanOptions two = FullBatch(20, 1);
  two.rows_per_user = 2;
  EXPECT_THROW(make(two, users), Error);
}

// How many there are is compared with nothing: neighbours would be told apart by a refusal.
TEST(Trainer, CoversAnyNumberOfRecords) {
  constexpr std::int64_t kDeclared = 20;
  const auto charges = [&](const PlanOptions& options, std::int64_t records) {
    std::vector<std::string> events;
    Weights weights(2);
    Trainer trainer(
        PrivacyPlan(options, NoiseMultiplier(1), Delta(1e-5)), weights.Named(),
        weights.SquaredError(), FirstRecords(RandomFeatures(400, 2, 1), records), {},
        {.charge = [&](std::int64_t, const Event& event) { events.push_back(event.ToString()); }});
    trainer.Run();
    EXPECT_TRUE(weights.value.isfinite().all().item<bool>());
    return events;
  };
  for (const char* sampling : {"poisson", "full", "allocation", "fixed"}) {
    for (const Adjacency adjacency :
         {Adjacency::kAddRemove, Adjacency::kZeroOut, Adjacency::kReplaceOne}) {
      const std::string name = sampling;
      const bool replaces = adjacency == Adjacency::kReplaceOne;
      if ((name == "fixed" && !replaces) || (name == "allocation" && replaces)) continue;
      PlanOptions options = FullBatch(kDeclared, 4);
      options.sampling = name;
      options.adjacency = adjacency;
      if (name != "full") options.batch = 5;
      const std::vector<std::string> wanted = charges(options, kDeclared);
      for (const std::int64_t records : {0, 1, 4, 5, 19, 21, 400}) {
        EXPECT_EQ(charges(options, records), wanted) << name << ", " << records;
      }
    }
  }
}

TEST(Trainer, OneOfMoreRecordsThanDeclaredMovesTheUpdateByNoMoreThanTheClip) {
  const PrivacyPlan plan(FullBatch(20, 1), NoiseMultiplier(1), Delta(1e-5));
  const Dataset all = RandomFeatures(300, 5, 4);
  all.inputs.mul_(100);  // every gradient is clipped
  all.labels.fill_(1);
  const auto update = [&](std::int64_t first, std::int64_t end) {
    Dataset data = all;
    data.inputs = all.inputs.slice(0, first, end);
    data.labels = all.labels.slice(0, first, end);
    Weights weights(5);
    Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {.learning_rate = 20},
                    {.insecure_seed = 8});
    trainer.Run();
    return weights.value.detach().clone();
  };
  double largest = 0;
  for (const std::int64_t records : {19, 20, 21, 22, 300}) {
    // Without the first of them all others move to other places.
    const double moved = (update(0, records) - update(1, records)).norm().item<double>();
    EXPECT_LE(moved, 1.01) << records;
    largest = std::max(largest, moved);
  }
  EXPECT_GT(largest, 0.98);
}

TEST(Trainer, RefusesALossThatMixesExamplesBeforeAnythingIsCharged) {
  const Dataset data = RandomFeatures(20, 2, 13);
  const PrivacyPlan plan(FullBatch(20, 1), NoiseMultiplier(1), Delta(1e-5));
  Weights weights(2);
  {
    const at::NoGradGuard no_grad;
    weights.value.fill_(0.5);  // at zero there is no gradient that could be mixed
  }
  int charges = 0;
  TrainerOptions options;
  options.charge = [&](std::int64_t, const Event&) { ++charges; };
  const LossFunction mixing = [&](const Batch& batch) {
    const at::Tensor scores = (batch[0] * weights.value).sum(1);
    return (scores - scores.mean()).square();
  };
  Trainer trainer(plan, weights.Named(), mixing, data, {}, options);
  EXPECT_THROW(trainer.Step(), Error);
  EXPECT_EQ(charges, 0);
}

TEST(Trainer, WithoutPrivacyIsOrdinaryGradientDescentAndSaysSo) {
  const Dataset data = RandomFeatures(30, 3, 14);
  const PrivacyPlan plan(FullBatch(data.size(), 5), NoiseMultiplier(1), Delta(1e-5));
  Weights weights(3);
  at::Tensor wanted = weights.value.detach().clone();
  Trainer trainer = Trainer::NonPrivate(plan, weights.Named(), weights.SquaredError(), data,
                                        {.learning_rate = 0.1});
  EXPECT_FALSE(trainer.is_private());
  trainer.Run();
  for (int step = 0; step < 5; ++step) {
    const at::Tensor error = data.inputs.matmul(wanted) - data.labels.to(at::kFloat);
    wanted = wanted - 0.1 * 2 * data.inputs.t().matmul(error) / 30;
  }
  EXPECT_TRUE(weights.value.allclose(wanted, 1e-4, 1e-5));
}

// Each record's gradient, clipped by hand.
TEST(Trainer, WithoutNoiseItsStepsAreTheClippedSumsOverTheDeclaredBatch) {
  const Dataset data = RandomFeatures(40, 3, 21);
  PlanOptions options = FullBatch(data.size(), 6);
  options.batch = 25;
  options.clip = ClipNorm(0.7);
  const PrivacyPlan plan(options, NoiseMultiplier(1), Delta(1e-5));
  Weights weights(3);
  at::Tensor wanted = weights.value.detach().to(at::kDouble);
  TrainerOptions uncharged;
  uncharged.charge = [](std::int64_t, const Event&) { ADD_FAILURE() << "a step was charged"; };
  Trainer trainer = Trainer::WithoutNoise(plan, weights.Named(), weights.SquaredError(), data,
                                          {.learning_rate = 2}, uncharged);
  EXPECT_FALSE(trainer.is_private());
  trainer.Run();
  bool clipped = false;
  for (int step = 0; step < 6; ++step) {
    const at::Tensor inputs = data.inputs.to(at::kDouble);
    const at::Tensor error = inputs.matmul(wanted) - data.labels.to(at::kDouble);
    const at::Tensor gradients = inputs * (2 * error).unsqueeze(1);
    const at::Tensor factors = (0.7 / gradients.norm(2, 1, true)).clamp_max(1);
    clipped = clipped || factors.min().item<double>() < 0.9;
    wanted = wanted - 2 * (gradients * factors).sum(0) / 25;
  }
  EXPECT_TRUE(clipped);
  EXPECT_LT((weights.value - wanted).abs().max().item<double>(), 1e-5);
}

TEST(Trainer, WithoutNoiseRefusesClippingThatLearnsFromIt) {
  const Dataset data = RandomFeatures(200, 2, 22);
  for (const std::string_view name : ClippingPolicies().names()) {
    PlanOptions options = FullBatch(data.size(), 1);
    options.clipping = std::string(name);
    if (name.starts_with("global")) options.clipping.options.Set("clip-threshold", 50.0);
    const PrivacyPlan plan(options, NoiseMultiplier(1), Delta(1e-5));
    Weights weights(2);
    const auto train = [&] {
      Trainer::WithoutNoise(plan, weights.Named(), weights.SquaredError(), data, {}).Run();
    };
    if (name.starts_with("ada") || name == "preconditioned") {
      EXPECT_THAT(train, ThrowsMessage<Error>(HasSubstr("learns from noised values"))) << name;
    } else {
      EXPECT_NO_THROW(train()) << name;
    }
  }
}

// The sum of a batch is up to 40 clipping norms, and the noise a billionth of one.
TEST(Trainer, TinyNoiseLeavesTheStepsOfARunWithoutNoise) {
  const Dataset data = RandomFeatures(40, 3, 23);
  PlanOptions options = FullBatch(data.size(), 3);
  options.clip = ClipNorm(1000);  // clips nothing
  const PrivacyPlan plan(options, NoiseMultiplier(1e-9), Delta(1e-5));
  Weights noised(3);
  Weights plain(3);
  Trainer(plan, noised.Named(), noised.SquaredError(), data, {.learning_rate = 0.1},
          {.insecure_seed = 3})
      .Run();
  Trainer::NonPrivate(plan, plain.Named(), plain.SquaredError(), data, {.learning_rate = 0.1})
      .Run();
  EXPECT_GT(plain.value.norm().item<double>(), 0.05);
  EXPECT_LT((noised.value - plain.value).abs().max().item<double>(), 1e-5);
}

TEST(Trainer, SeededRunRepeatsItselfAndIsNotPrivate) {
  const Dataset data = RandomFeatures(60, 3, 15);
  PlanOptions options = FullBatch(data.size(), 20);
  options.sampling = "poisson";
  options.batch = 10;
  const PrivacyPlan plan(options, NoiseMultiplier(1), Delta(1e-5));
  const auto run = [&](std::optional<std::uint64_t> seed) {
    Weights weights(3);
    Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {.learning_rate = 0.1},
                    {.insecure_seed = seed});
    EXPECT_EQ(trainer.is_private(), !seed.has_value());
    trainer.Run();
    return weights.value.detach().clone();
  };
  EXPECT_TRUE(run(1).equal(run(1)));
  EXPECT_FALSE(run(1).equal(run(2)));
  EXPECT_FALSE(run({}).equal(run({})));
}

// Copies of an example are drawn by its place in the batch. If they could be computed from anything
// public, a record that is missing would change the gradients of all that come after it.
TEST(Trainer, AugmentationAndDropoutAreDrawnAnewInEveryRun) {
  Dataset data;
  data.declaration.kind = InputKind::kImage;
  data.declaration.shape = {1, 6, 6};
  data.declaration.classes = 2;
  data.inputs = at::arange(16 * 36, at::kLong).remainder(251).to(at::kByte).view({16, 1, 6, 6});
  data.labels = at::zeros({16}, at::kLong);
  const PrivacyPlan plan(FullBatch(16, 1), NoiseMultiplier(1), Delta(1e-5));
  const auto seen = [&](std::optional<std::uint64_t> seed) {
    Weights weights(36);
    at::Tensor images;
    at::Tensor dropped;
    const LossFunction losses = [&](const Batch& batch) {
      // A first look takes a few of the images.
      if (!images.defined() && Unwrapped(batch[0]).size(0) == 16) {
        images = Unwrapped(batch[0]).clone();
        dropped = Unwrapped(at::rand({4}));
      }
      return at::matmul(batch[0].flatten(1), weights.value);
    };
    TrainerOptions options;
    options.loader.augmentation = {.flip = true, .shift = 2};
    options.gradients = {.physical_batch = 16, .checked_examples = 0};
    options.insecure_seed = seed;
    Trainer trainer(plan, weights.Named(), losses, data, {}, options);
    trainer.Run();
    return at::cat({images.flatten(), dropped.flatten()});
  };
  constexpr std::int64_t kImages = std::int64_t{16} * 36;
  const auto part = [](const at::Tensor& all, bool images) {
    return images ? all.narrow(0, 0, kImages) : all.narrow(0, kImages, 64);
  };
  const at::Tensor one = seen({});
  const at::Tensor two = seen({});
  for (const bool images : {true, false}) {
    EXPECT_FALSE(part(one, images).equal(part(two, images))) << images;
  }
  EXPECT_TRUE(seen(1).equal(seen(1)));
  EXPECT_FALSE(seen(1).equal(seen(2)));
}

TEST(TrainerDeath, StopsAStepThatThePlanDoesNotHave) {
  const Dataset data = RandomFeatures(5, 2, 16);
  const PrivacyPlan plan(FullBatch(data.size(), 1), NoiseMultiplier(1), Delta(1e-5));
  Weights weights(2);
  Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {});
  trainer.Run();
  EXPECT_DEATH(trainer.Step(), "does not have");
}

}  // namespace
}  // namespace sordino
