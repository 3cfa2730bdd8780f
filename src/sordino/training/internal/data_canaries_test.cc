#include "sordino/training/internal/data_canaries.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <memory>
#include <vector>

#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/testing/forged_values.h"
#include "sordino/lower_bounds/canary_audit.h"
#include "sordino/random/random_source.h"
#include "sordino/training/internal/run_canaries.h"
#include "sordino/training/testing/resumed_canaries.h"
#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

void NoReseed() {}

// Canary i has the input `size` times the i-th unit vector.
CanaryRecords UnitVectors(std::int64_t count, double size) {
  CanaryRecords canaries;
  canaries.records = RandomFeatures(count, count, 1);
  canaries.records.inputs = at::eye(count, at::kFloat).mul(size);
  canaries.records.labels = at::ones({count}, at::kLong);
  canaries.other_labels = at::zeros({count}, at::kLong);
  return canaries;
}

std::unique_ptr<DataCanaries> Made(const CanaryRecords& records, const Weights& weights,
                                   const LossFunction& losses, Adjacency adjacency) {
  RandomSource random(1);
  return std::make_unique<DataCanaries>(
      records, weights.Named(), losses, DataCanaryOptions{.adjacency = adjacency},
      *random.Stream({.step = 0, .rank = 0, .tensor = kCanaryStream}));
}

TEST(DataCanaries, AreInABatchIfTheirCoinsSaySo) {
  const Weights weights(6);
  for (const Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplaceOne}) {
    const auto canaries = Made(UnitVectors(6, 1), weights, weights.Linear(), adjacency);
    const std::vector<char> is_in = canaries->Scores().is_in;
    std::vector<std::uint64_t> batch = {3, 7};
    std::vector<std::uint64_t> expected = batch;
    for (std::uint64_t i = 0; i < 6; ++i) {
      batch.push_back(10 + i);
      if (is_in[i] != 0) {
        expected.push_back(10 + i);
      } else if (adjacency == Adjacency::kReplaceOne) {
        expected.push_back(16 + i);
      }
    }
    canaries->Place(batch, 10);
    EXPECT_EQ(batch, expected);
    const Dataset joined =
        DataCanaries::Joined(RandomFeatures(10, 6, 2), UnitVectors(6, 1), adjacency);
    EXPECT_EQ(joined.size(), adjacency == Adjacency::kReplaceOne ? 22 : 16);
    if (joined.size() == 22) {
      EXPECT_TRUE(joined.inputs.slice(0, 10, 16).equal(joined.inputs.slice(0, 16, 22)));
      EXPECT_TRUE(
          joined.labels.slice(0, 10, 16).ne(joined.labels.slice(0, 16, 22)).all().item<bool>());
    }
  }
}

// By ordinary autograd, one canary at a time.
TEST(DataCanaries, AreScoredByTheInnerProductWithTheirGradient) {
  constexpr std::int64_t kFeatures = 5;
  constexpr std::int64_t kCanaries = 9;
  const Weights weights(kFeatures);
  weights.value.detach().copy_(RandomFeatures(1, kFeatures, 8).inputs[0]);
  CanaryRecords records;
  records.records = RandomFeatures(kCanaries, kFeatures, 3);
  records.other_labels = 1 - records.records.labels;
  const LossFunction losses = weights.SquaredError();
  const auto canaries = Made(records, weights, losses, Adjacency::kAddRemove);
  const at::Tensor released = RandomFeatures(1, kFeatures, 4).inputs[0];
  const double bound = 2;
  const double divisor = 7;
  const double deviation = 0.4;
  canaries->Observe(ForgedGradients({released}, deviation), divisor, SamplingRate(1),
                    ClipNorm(bound), NoReseed);
  std::vector<double> seen;
  std::vector<double> kept;
  for (std::int64_t i = 0; i < kCanaries; ++i) {
    const at::Tensor gradient =
        torch::autograd::grad({losses({records.records.inputs.narrow(0, i, 1),
                                       records.records.labels.narrow(0, i, 1)})
                                   .sum()},
                              {weights.value})[0]
            .to(at::kDouble);
    const double norm = gradient.norm().item<double>();
    seen.push_back(divisor * gradient.dot(released.to(at::kDouble)).item<double>() / norm);
    kept.push_back(std::min(norm, bound));
  }
  const double centre = at::tensor(seen, at::kDouble).median().item<double>();
  const double variance = deviation * deviation * divisor * divisor;
  std::vector<double> expected;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    expected.push_back((kept[i] * (seen[i] - centre) - kept[i] * kept[i] / 2) / variance);
  }
  const double middle = at::tensor(expected, at::kDouble).median().item<double>();
  const std::vector<double> scores = canaries->Scores().every_update;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    EXPECT_NEAR(scores[i], expected[i] - middle, 2e-3) << i;
  }
}

TEST(DataCanaries, LeaveTheModelWhereItIs) {
  const Weights weights(8);
  weights.value.detach().copy_(RandomFeatures(1, 8, 8).inputs[0]);
  const at::Tensor before = weights.value.detach().clone();
  const auto canaries =
      Made(UnitVectors(8, 3), weights, weights.SquaredError(), Adjacency::kReplaceOne);
  canaries->Observe(ForgedGradients({RandomFeatures(1, 8, 4).inputs[0]}, 1), 5, SamplingRate(0.5),
                    ClipNorm(1), NoReseed);
  EXPECT_TRUE(weights.value.detach().equal(before));
  EXPECT_EQ(weights.value.grad().defined(), false);
}

// The losses on both sides of the model are compared: a model with dropout drops the same in both.
TEST(DataCanaries, AreSeenWithTheSameRandomNumbersInAPrivateRun) {
  const Weights weights(8);
  std::vector<double> drawn;
  const LossFunction losses = [&](const Batch& batch) {
    // The weights are zero but where the model is moved.
    const bool is_moved = weights.value.detach().const_data_ptr<float>()[0] != 0;
    if (is_moved) drawn.push_back(at::rand({1}).item<double>());
    return weights.Linear()(batch);
  };
  TrainerOptions options;
  options.canary_records = UnitVectors(8, 3);
  const PrivacyPlan plan(FullBatch(20, 1), NoiseMultiplier(1), Delta(1e-5));
  RandomSource random;
  const auto stream = [&] { return random.Stream({.tensor = kCanaryStream}); };
  RunCanaries canaries(options, plan, weights.Named(), losses, *stream());
  const NoisedGradients gradient = ForgedGradients({RandomFeatures(1, 8, 4).inputs[0]}, 1);
  canaries.ObserveSum(gradient, 5, SamplingRate(1), FlatClipping(ClipNorm(1)));
  std::vector<double> first;
  for (int step = 0; step < 3; ++step) {
    drawn.clear();
    canaries.ObserveGradients(gradient, 5, SamplingRate(1), *stream());
    ASSERT_EQ(drawn.size(), 2U);
    EXPECT_EQ(drawn[0], drawn[1]);
    first.push_back(drawn[0]);
  }
  EXPECT_NE(first[0], first[1]);  // others in each step
}

struct RunWithCanaries {
  std::int64_t records = 4;
  std::int64_t canaries = 400;
  std::int64_t steps = 40;
  std::uint64_t seed = 3;
  double claim = 8;
  double too_little = 1;  // the noise that is added over the noise that is claimed
  std::function<void(PlanOptions&)> change = {};
  CanaryRecords made_up = UnitVectors(400, 5);

  double claimed = 0;
  CanaryScores scores = {};
  CanaryAudit every_update = {};
  CanaryAudit last_model = {};
  at::Tensor model = {};

  // Losses are x w, so the gradient of a canary is its input, clipped from 5 to 1.
  void Run() {
    PlanOptions options = FullBatch(records + canaries, steps);
    if (change) change(options);
    const PrivacyPlan plan = *PrivacyPlan::ForBudget(options, Epsilon(claim), Delta(1e-5));
    claimed = plan.Epsilon(steps).upper;
    const PrivacyPlan used(options, NoiseMultiplier(plan.noise().value() * too_little),
                           Delta(1e-5));
    Weights weights(canaries);
    TrainerOptions trainer_options;
    trainer_options.insecure_seed = seed;
    trainer_options.canary_records = made_up;
    Trainer trainer(used, weights.Named(), Loss(weights), RandomFeatures(records, canaries, 1),
                    {.learning_rate = 0.1}, trainer_options);
    trainer.Run();
    model = weights.value.detach().clone();
    scores = trainer.canary_scores();
    every_update = AuditCanaries({scores.is_in, scores.every_update}, Delta(1e-5), 0.05);
    last_model = AuditCanaries({scores.is_in, scores.last_model}, Delta(1e-5), 0.05);
  }

  // Records with the other label pull the other way.
  static LossFunction Loss(const Weights& weights) {
    return [w = weights.value](const Batch& batch) {
      return at::matmul(batch[0], w) * (2 * batch[1] - 1).to(at::kFloat);
    };
  }
};

TEST(DataCanaryRun, ShowsAPartOfEpsilonAndNeverMore) {
  RunWithCanaries run;
  run.Run();
  for (const CanaryAudit* audit : {&run.every_update, &run.last_model}) {
    EXPECT_GT(audit->epsilon, 1.5);
    EXPECT_GT(audit->signs.epsilon, 4);
    EXPECT_LT(audit->epsilon, run.claimed);
    EXPECT_LT(audit->signs.epsilon, run.claimed);
  }
}

TEST(DataCanaryRun, ContradictsAClaimOfHalfTheNoise) {
  RunWithCanaries run{.too_little = 0.5};
  run.Run();
  EXPECT_GT(run.every_update.signs.epsilon, run.claimed);
}

TEST(DataCanaryRun, HoldsForEverySampler) {
  const std::vector<std::function<void(PlanOptions&)>> changes = {
      [](PlanOptions& options) {
        options.sampling = "poisson";
        options.batch = 100;
      },
      [](PlanOptions& options) {
        options.sampling = "fixed";
        options.batch = 200;
        options.adjacency = Adjacency::kReplaceOne;
      },
      [](PlanOptions& options) { options.adjacency = Adjacency::kReplaceOne; },
      [](PlanOptions& options) { options.adjacency = Adjacency::kZeroOut; }};
  for (const auto& change : changes) {
    RunWithCanaries run{.change = change};
    run.Run();
    EXPECT_LT(run.every_update.epsilon, run.claimed);
    EXPECT_LT(run.every_update.signs.epsilon, run.claimed);
    EXPECT_GT(run.every_update.signs.epsilon, 0.5);
  }
}

TEST(DataCanaryRun, IsARunOnDataThatHoldThoseThatAreIn) {
  RunWithCanaries run;
  run.Run();
  std::vector<std::int64_t> in;
  for (std::size_t i = 0; i < run.scores.is_in.size(); ++i) {
    if (run.scores.is_in[i] != 0) in.push_back(static_cast<std::int64_t>(i));
  }
  const at::Tensor places = at::tensor(in, at::kLong);
  Dataset data = RandomFeatures(run.records, run.canaries, 1);
  data.inputs = at::cat({data.inputs, run.made_up.records.inputs.index_select(0, places)});
  data.labels = at::cat({data.labels, run.made_up.records.labels.index_select(0, places)});
  const PrivacyPlan plan = *PrivacyPlan::ForBudget(FullBatch(run.records + run.canaries, run.steps),
                                                   Epsilon(run.claim), Delta(1e-5));
  Weights weights(run.canaries);
  Trainer trainer(plan, weights.Named(), RunWithCanaries::Loss(weights), data,
                  {.learning_rate = 0.1}, {.insecure_seed = run.seed});
  trainer.Run();
  EXPECT_TRUE(run.model.equal(weights.value.detach()));
}

TEST(DataCanaryRun, DoesNotDependOnThoseThatAreOut) {
  RunWithCanaries run;
  run.Run();
  RunWithCanaries other;
  at::Tensor inputs = other.made_up.records.inputs.clone();
  for (std::size_t i = 0; i < run.scores.is_in.size(); ++i) {
    if (run.scores.is_in[i] == 0) inputs[static_cast<std::int64_t>(i)].fill_(-3);
  }
  other.made_up.records.inputs = inputs;
  other.Run();
  EXPECT_EQ(run.scores.is_in, other.scores.is_in);
  EXPECT_TRUE(run.model.equal(other.model));
}

TEST(DataCanaryRun, IsResumedWithItsCoinsAndScores) {
  const PrivacyPlan plan(FullBatch(54, 6), NoiseMultiplier(2), Delta(1e-5));
  const Dataset data = RandomFeatures(4, 50, 1);
  ExpectCanariesAreResumed(50, [&](Weights& weights) {
    TrainerOptions options;
    options.insecure_seed = 5;
    options.canary_records = UnitVectors(50, 2);
    return Trainer(plan, weights.Named(), weights.Linear(), data, {.learning_rate = 0.1}, options);
  });
}

}  // namespace
}  // namespace sordino
