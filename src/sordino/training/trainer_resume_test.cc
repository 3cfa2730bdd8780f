#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

// A small network with everything that a run can have.
struct ResumeCase {
  const char* name;
  std::function<void(PlanOptions&)> plan = {};
  OptimizerOptions optimizer = {};
  AugmentationOptions augmentation = {};
  bool is_private = true;
  bool without_noise = false;
  double dropout = 0.4;
};

void PrintTo(const ResumeCase& resumed, std::ostream* out) { *out << resumed.name; }

class ResumedRun {
 public:
  static constexpr std::int64_t kSteps = 12;
  static constexpr std::int64_t kRecords = 200;
  // So many that no mask of dropout comes twice in a row: then a gradient would look repeatable.
  static constexpr std::int64_t kHidden = 40;

  explicit ResumedRun(const ResumeCase& resumed, std::optional<std::uint64_t> seed = 21)
      : first_(at::linspace(-1, 1, 16 * kHidden).view({16, kHidden}).set_requires_grad(true)),
        second_(at::linspace(1, -1, kHidden).set_requires_grad(true)),
        frozen_(at::linspace(0, 1, kHidden)),
        trainer_(Make(resumed, seed)) {}

  Trainer& trainer() { return trainer_; }
  const at::Tensor& first() const { return first_; }
  void StepTo(std::int64_t last) {
    while (trainer_.steps_done() < last) trainer_.Step();
  }
  std::vector<at::Tensor> Weights() const {
    return {first_.detach().clone(), second_.detach().clone()};
  }
  std::vector<at::Tensor> Averages() {
    const Optimizer::AveragedWeights averaged(trainer_.optimizer());
    return Weights();
  }
  std::vector<std::int64_t> charged;

 private:
  static Dataset Images() {
    Dataset data;
    data.declaration.kind = InputKind::kImage;
    data.declaration.shape = {1, 4, 4};
    data.declaration.classes = 2;
    data.inputs = at::arange(kRecords * 16, at::kLong)
                      .square()
                      .remainder(251)
                      .to(at::kByte)
                      .view({kRecords, 1, 4, 4});
    data.labels = at::arange(kRecords, at::kLong).remainder(2);
    return data;
  }

  Trainer Make(const ResumeCase& resumed, std::optional<std::uint64_t> seed) {
    PlanOptions options = FullBatch(kRecords, kSteps);
    options.sampling = "poisson";
    options.batch = 50;
    if (resumed.plan) resumed.plan(options);
    const PrivacyPlan plan(options, NoiseMultiplier(1), Delta(1e-5));
    const LossFunction losses = [a = first_, b = second_, c = frozen_,
                                 dropout = resumed.dropout](const Batch& batch) {
      const at::Tensor rows = batch[0].flatten(1);
      const at::Tensor hidden = at::dropout(at::tanh(at::matmul(rows, a)) + c, dropout, true);
      return (at::matmul(hidden, b) - batch[1].to(at::kFloat)).square();
    };
    TrainerOptions trainer_options;
    trainer_options.loader.augmentation = resumed.augmentation;
    trainer_options.insecure_seed = seed;
    trainer_options.charge = [this](std::int64_t step, const Event&) { charged.push_back(step); };
    const std::vector<NamedParameter> parameters = {
        {"first", first_}, {"frozen", frozen_}, {"second", second_}, {"tied", first_}};
    if (resumed.without_noise) {
      return Trainer::WithoutNoise(plan, parameters, losses, Images(), resumed.optimizer,
                                   trainer_options);
    }
    if (!resumed.is_private) {
      return Trainer::NonPrivate(plan, parameters, losses, Images(), resumed.optimizer,
                                 trainer_options);
    }
    return Trainer(plan, parameters, losses, Images(), resumed.optimizer, trainer_options);
  }

  at::Tensor first_;
  at::Tensor second_;
  at::Tensor frozen_;
  Trainer trainer_;
};

void ExpectSame(const std::vector<at::Tensor>& seen, const std::vector<at::Tensor>& wanted,
                const std::string& when) {
  ASSERT_EQ(seen.size(), wanted.size());
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_TRUE(seen[i].equal(wanted[i])) << when;
}

class TrainerResume : public testing::TestWithParam<ResumeCase> {};

// Dropout is in all that allow it, and batches that the clipper cuts by what it measured.
TEST_P(TrainerResume, SeededRunGoesOnBitForBit) {
  for (const std::int64_t saved_at : {0, 1, 5, 12}) {
    ResumedRun whole(GetParam());
    whole.StepTo(saved_at);
    const NamedTensors state = whole.trainer().SaveState();
    whole.StepTo(ResumedRun::kSteps);
    at::manual_seed(99);  // another process has another past
    ResumedRun resumed(GetParam());
    const void* where = resumed.first().data_ptr();
    resumed.trainer().RestoreState(state, saved_at);
    EXPECT_EQ(resumed.first().data_ptr(), where);
    EXPECT_EQ(resumed.trainer().steps_done(), saved_at);
    EXPECT_TRUE(resumed.charged.empty());
    resumed.StepTo(ResumedRun::kSteps);
    const std::string when = "saved at " + std::to_string(saved_at);
    ExpectSame(resumed.Weights(), whole.Weights(), when);
    ExpectSame(resumed.Averages(), whole.Averages(), when + ", the averages");
    if (GetParam().is_private) {
      std::vector<std::int64_t> left;
      for (std::int64_t step = saved_at; step < ResumedRun::kSteps; ++step) left.push_back(step);
      EXPECT_EQ(resumed.charged, left);
    }
  }
}

std::vector<ResumeCase> ResumeCases() {
  const Schedule cosine = Schedule::Parse("warmup:3,cosine:0");
  const auto fixed = [](PlanOptions& options) {
    options.sampling = "fixed";
    options.adjacency = Adjacency::kReplaceOne;
  };
  const auto allocation = [](PlanOptions& options) {  // 4 steps an epoch
    options.sampling = "allocation";
  };
  const auto correlated = [](const char* strategy) {  // from 3 or 4 groups in turn
    return [strategy](PlanOptions& options) {
      options.noise = {"gaussian", {{"noise-correlation", std::string(strategy)}}};
    };
  };
  const auto full = [](PlanOptions& options) {
    options.sampling = "full";
    options.batch = ResumedRun::kRecords;
  };
  return {
      {.name = "Sgd"},
      {.name = "Momentum",
       .optimizer = {.algorithm = {"sgd", {{"momentum", 0.9}}}, .schedule = cosine}},
      {.name = "Nesterov",
       .optimizer =
           {.algorithm = {"sgd", {{"momentum", 0.9}, {"nesterov", true}, {"weight-decay", 0.01}}}}},
      {.name = "AdaGrad", .optimizer = {.algorithm = "adagrad", .projection_radius = 2}},
      {.name = "Adam",
       .optimizer = {.algorithm = "adam", .learning_rate = 0.05, .schedule = cosine}},
      {.name = "AdamW",
       .optimizer = {.algorithm = {"adamw", {{"weight-decay", 0.1}}}, .average_decay = 0.9}},
      {.name = "FixedSize",
       .plan = fixed,
       .optimizer = {.algorithm = {"sgd", {{"momentum", 0.5}}}}},
      {.name = "Allocation",
       .plan = allocation,
       .optimizer = {.algorithm = {"sgd", {{"momentum", 0.5}}}}},
      {.name = "FullBatch", .plan = full, .optimizer = {.algorithm = {"sgd", {{"momentum", 0.5}}}}},
      {.name = "CorrelatedNoise", .plan = correlated("banded:3")},
      {.name = "CorrelatedDraws", .plan = correlated("bisr:3")},
      {.name = "CorrelatedBuffers", .plan = correlated("blt:2")},
      {.name = "CorrelatedTree",
       .plan =
           [](PlanOptions& options) {
             options.sampling = "ordered";
             options.adjacency = Adjacency::kZeroOut;
             options.clip_schedule = Schedule::Parse("cosine:0.1");
             options.noise = {"gaussian", {{"noise-correlation", "tree"}}};
           }},
      {.name = "AdaptiveClipping",
       .plan = [](PlanOptions& options) { options.clipping = "adaptive"; }},
      {.name = "Layerwise", .plan = [](PlanOptions& options) { options.clipping = "layerwise"; }},
      {.name = "AdaptiveLayerwise",
       .plan = [](PlanOptions& options) { options.clipping = "adaptive-layerwise"; }},
      {.name = "Preconditioned",
       .plan = [](PlanOptions& options) { options.clipping = "preconditioned"; }},
      {.name = "AdaClip", .plan = [](PlanOptions& options) { options.clipping = "adaclip"; }},
      {.name = "EstimatedNorms",
       .plan =
           [](PlanOptions& options) {
             options.norms = {"jl", {{"jl-directions", std::int64_t{16}}}};
           },
       .dropout = 0},
      {.name = "Augmentation",
       .optimizer = {.average_decay = 0.5},
       .augmentation = {.flip = true, .shift = 1}},
      {.name = "Schedules",
       .plan =
           [](PlanOptions& options) {
             options.noise_schedule = Schedule::Parse("linear:0.5");
             options.clip_schedule = Schedule::Parse("cosine:0.1");
           },
       .optimizer = {.schedule = cosine}},
      // Some batches are large enough to be measured and some are not, or are empty.
      {.name = "BatchesAroundTheMeasuredSize",
       .plan = [](PlanOptions& options) { options.batch = 30; }},
      {.name = "TinyBatches", .plan = [](PlanOptions& options) { options.batch = 1; }},
      {.name = "WithoutNoise",
       .optimizer = {.algorithm = {"sgd", {{"momentum", 0.9}}}},
       .is_private = false,
       .without_noise = true},
      {.name = "NonPrivate", .optimizer = {.algorithm = "adam"}, .is_private = false},
      {.name = "NonPrivateWithEmptyBatches",
       .plan = [](PlanOptions& options) { options.batch = 0.7; },
       .optimizer = {.algorithm = "adam", .schedule = cosine, .average_decay = 0.9},
       .is_private = false},
  };
}

INSTANTIATE_TEST_SUITE_P(Trainer, TrainerResume, testing::ValuesIn(ResumeCases()),
                         [](const auto& tested) { return std::string(tested.param.name); });

// Full batches without a gradient: an update is noise alone.
TEST(TrainerState, PrivateRunsFromOneStateDrawDifferentNoise) {
  const Dataset data = RandomFeatures(10, 1, 18);
  const PrivacyPlan plan(FullBatch(data.size(), 4), NoiseMultiplier(1), Delta(1e-5));
  NamedTensors state;
  const auto after_one_more_step = [&] {
    Weights weights(50);
    Trainer trainer(plan, weights.Named(), weights.NoGradient(), data, {.learning_rate = 1});
    if (state.empty()) {
      trainer.Step();
      state = trainer.SaveState();
    } else {
      trainer.RestoreState(state, 1);
    }
    EXPECT_TRUE(trainer.is_private());
    const at::Tensor before = weights.value.detach().clone();
    trainer.Step();
    return (weights.value.detach() - before).clone();
  };
  std::vector<at::Tensor> noises;
  noises.reserve(4);
  for (int run = 0; run < 4; ++run) noises.push_back(after_one_more_step());
  for (std::size_t i = 0; i < noises.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_EQ((noises[i] == noises[j]).sum().item<std::int64_t>(), 0) << i << " and " << j;
    }
  }
}

// What is saved is as private as the model: nothing of it comes from a generator.
TEST(TrainerState, SavesWhatWasNoisedAndNothingElse) {
  for (const std::optional<std::uint64_t> seed : {std::optional<std::uint64_t>(), {21}}) {
    ResumedRun run({.name = "",
                    .plan = [](PlanOptions& o) { o.clipping = "adaptive"; },
                    .optimizer = {.algorithm = {"sgd", {{"momentum", 0.9}}}, .average_decay = 0.9}},
                   seed);
    run.StepTo(3);
    std::vector<std::string> names;
    for (const auto& [name, tensor] : run.trainer().SaveState()) {
      names.push_back(name);
      EXPECT_TRUE(tensor.is_cpu() && tensor.is_contiguous() && !tensor.requires_grad()) << name;
    }
    EXPECT_THAT(names, testing::UnorderedElementsAre("parameter.first", "parameter.second",
                                                     "optimizer.first.momentum",
                                                     "optimizer.second.momentum", "average.first",
                                                     "average.second", "updates", "clip.bounds"));
  }
}

TEST(TrainerState, RefusesAStateThatIsNotItsOwn) {
  const ResumeCase adaptive = {.name = "",
                               .plan = [](PlanOptions& options) { options.clipping = "adaptive"; },
                               .optimizer = {.algorithm = {"sgd", {{"momentum", 0.9}}}}};
  ResumedRun saved(adaptive);
  saved.StepTo(3);
  const NamedTensors state = saved.trainer().SaveState();
  const auto refuses = [&](const NamedTensors& wrong, std::int64_t steps) {
    ResumedRun run(adaptive);
    EXPECT_THROW(run.trainer().RestoreState(wrong, steps), Error);
    EXPECT_THROW(run.trainer().RestoreState(state, 3), Error);
  };
  for (const std::int64_t steps : {2, 4}) refuses(state, steps);
  for (std::size_t i = 0; i < state.size(); ++i) {
    NamedTensors wrong = state;
    wrong.erase(wrong.begin() + static_cast<std::ptrdiff_t>(i));
    refuses(wrong, 3);
    wrong = state;
    wrong[i].second = at::full({3, 3}, 1, state[i].second.options());
    refuses(wrong, 3);
    wrong = state;
    wrong[i].second = state[i].second.to(at::kHalf);
    refuses(wrong, 3);
    wrong = state;
    wrong.push_back(state[i]);
    refuses(wrong, 3);
    wrong = state;
    wrong.emplace_back(state[i].first + "x", state[i].second);
    refuses(wrong, 3);
  }
  for (auto [name, tensor] : state) {
    if (name != "clip.bounds") continue;
    for (const double bound : {0.0, -1.0, 1e9, std::nan("")}) {
      NamedTensors wrong = state;
      for (auto& entry : wrong) {
        if (entry.first == name) entry.second = at::full_like(tensor, bound);
      }
      refuses(wrong, 3);
    }
  }
  for (const std::int64_t steps : {-1, 13}) {
    ResumedRun run(adaptive);
    EXPECT_THROW(run.trainer().RestoreState(state, steps), Error);
  }
  EXPECT_THROW(saved.trainer().RestoreState(state, 3), Error) << "it has begun";
}

TEST(TrainerState, NothingIsSavedOfATrainerThatFailedOrLendsItsWeights) {
  const Dataset data = RandomFeatures(5, 2, 19);
  const PrivacyPlan plan(FullBatch(data.size(), 3), NoiseMultiplier(1), Delta(1e-5));
  Weights weights(2);
  TrainerOptions options;
  bool refuses = false;
  options.charge = [&](std::int64_t, const Event&) {
    if (refuses) throw Error("the budget is used up.");
  };
  Trainer trainer(plan, weights.Named(), weights.SquaredError(), data, {.average_decay = 0.5},
                  options);
  trainer.Step();
  {
    const Optimizer::AveragedWeights averaged(trainer.optimizer());
    EXPECT_THROW(trainer.SaveState(), Error);
  }
  EXPECT_NO_THROW(trainer.SaveState());
  refuses = true;
  EXPECT_THROW(trainer.Step(), Error);
  EXPECT_THROW(trainer.SaveState(), Error);
}

}  // namespace
}  // namespace sordino
