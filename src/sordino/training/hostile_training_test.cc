// The hostile scripts of gradients/testdata, through the trainer.
//
// Two worlds train the same script with the same noise and differ in one record: it is another one,
// or it is not there. After each step the weights are put back to the same values in both, so the
// updates of a step differ by what the record did to the sum, in this step or through what was kept
// from an earlier one. A script is refused, or that distance is within the sensitivity that the
// noise is made for. Worlds of different size draw other random numbers for the same record, so a
// script that draws some is compared in worlds of the same size only.
//
// By default each script runs under one set of conditions that is drawn for it, and once more under
// those of its trigger. With SORDINO_HOSTILE_SWEEP=20 it runs under 20 seeds times batches of 1, 2,
// 7, 64 and 400, with and without dropout: hours.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/script_model.h"
#include "sordino/gradients/testing/hostile_models_test_support.h"
#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kCompared = 3;  // steps
// Noise so small that the weights keep the bits of the sum under it.
constexpr double kNoise = 1e-3;

struct Conditions {
  std::int64_t examples = 7;
  std::int64_t physical_batch = 0;
  std::uint64_t seed = 1;
  std::string sampling = "full";
  Adjacency adjacency = Adjacency::kReplaceOne;
  bool dropout = false;
  bool compare = true;
  std::int64_t warm_up = 0;  // steps before those that are compared
  double outlier = 6;
  bool leaks = false;  // the loss has a number in it that was computed from all records

  std::string Text(const Json& model) const {
    return fmt::format("{}: {} examples, parts of {}, seed {}, {} sampling, {}{}, outlier {}{}",
                       model["name"].get<std::string>(), examples, physical_batch, seed, sampling,
                       AdjacencyName(adjacency), dropout ? ", dropout" : "", outlier,
                       compare ? ", compared" : "");
  }
};

struct World {
  std::vector<std::vector<at::Tensor>> updates;  // of the compared steps, times the divisor
  bool draws = false;                            // random numbers
  double sensitivity = 0;
  std::int64_t steps_done = 0;
  std::int64_t charged = 0;
  std::vector<std::string> written;  // buffers that are not what they were
  std::string refusal;
};

Dataset Records(const Conditions& conditions, bool is_neighbour) {
  at::manual_seed(conditions.seed + 5000);
  Dataset data = RandomFeatures(conditions.examples, 6, conditions.seed);
  data.declaration.classes = 3;
  data.labels = at::randint(3, {conditions.examples});
  const std::int64_t last = conditions.examples - 1;
  if (is_neighbour && conditions.adjacency == Adjacency::kAddRemove) {
    data.inputs = data.inputs.narrow(0, 0, last);
    data.labels = data.labels.narrow(0, 0, last);
  } else if (is_neighbour || conditions.adjacency == Adjacency::kAddRemove) {
    data.inputs[last].fill_(conditions.outlier);
  }
  return data;
}

PrivacyPlan PlanOf(const Conditions& conditions) {
  PlanOptions options = FullBatch(conditions.examples, conditions.warm_up + kCompared);
  options.sampling = conditions.sampling;
  options.adjacency = conditions.adjacency;
  // Rates below 1/2 would leave the record out of most steps.
  if (options.sampling.name == "poisson") {
    options.batch = 0.7 * static_cast<double>(conditions.examples);
  }
  return {options, NoiseMultiplier(kNoise), Delta(1e-5)};
}

// Calls `model`; says whether it took anything from libtorch's generator.
at::Tensor ForwardAndWatch(const ScriptModel& model, const at::Tensor& inputs, bool& draws) {
  const auto position = [] {
    const at::Generator& generator = at::detail::getDefaultCPUGenerator();
    return at::Generator(generator).get_state();
  };
  const at::Tensor before = position();
  at::Tensor logits = model.Forward({inputs});
  draws = draws || !at::equal(before, position());
  return logits;
}

class Life {
 public:
  Life(const Json& json, const Conditions& conditions, bool is_neighbour)
      : json_(json),
        conditions_(conditions),
        module_(MakeHostileScript(json)),
        model_(module_),
        plan_(PlanOf(conditions)),
        data_(Records(conditions, is_neighbour)) {
    for (const NamedParameter& parameter : model_.Parameters()) {
      start_.push_back(parameter.value.detach().clone());
    }
    for (const auto& buffer : module_.named_buffers()) buffers_.push_back(buffer.value.clone());
  }

  World Live() {
    world_.sensitivity = plan_.StepClip(0).value() * (1 + plan_.Sum().rounding) *
                         (conditions_.adjacency == Adjacency::kReplaceOne ? 2 : 1);
    try {
      Train();
    } catch (const Error& error) {
      world_.refusal = error.what();
    }
    std::size_t i = 0;
    for (const auto& buffer : module_.named_buffers()) {
      if (!at::allclose(buffer.value.to(at::kDouble), buffers_[i++].to(at::kDouble), 0, 0, true)) {
        world_.written.push_back(buffer.name);
      }
    }
    return std::move(world_);
  }

 private:
  void Train() {
    const double mean = data_.inputs.mean().item<double>();
    const LossFunction loss = [this, mean](const Batch& batch) {
      const at::Tensor inputs =
          conditions_.dropout ? at::dropout(batch[0], 0.2, /*train=*/true) : batch[0];
      world_.draws = world_.draws || conditions_.dropout;
      at::Tensor logits = ForwardAndWatch(model_, inputs, world_.draws);
      if (conditions_.leaks) logits = logits + at::tensor({5.0F, 0.0F, 0.0F}) * mean;
      return at::cross_entropy_loss(logits, batch[1], {}, at::Reduction::None);
    };
    TrainerOptions options;
    // Nothing but isolation, where it is not compared.
    options.gradients = {.physical_batch = conditions_.physical_batch,
                         .compare = conditions_.compare,
                         .checked_examples = conditions_.compare ? 2 : 0};
    options.insecure_seed = conditions_.seed;
    options.charge = [this](std::int64_t, const Event&) { ++world_.charged; };
    // A learning rate of the divisor: an update is the sum with its noise.
    Trainer trainer(plan_, model_.Parameters(), loss, data_, {.learning_rate = plan_.Divisor(0)},
                    options);
    while (trainer.steps_done() < plan_.steps()) {
      world_.steps_done = trainer.steps_done();
      PutBack(trainer.steps_done());
      trainer.Step();
      if (trainer.steps_done() > conditions_.warm_up) world_.updates.push_back(Moved());
    }
    world_.steps_done = trainer.steps_done();
  }

  // The weights that both worlds have before a step.
  void PutBack(std::int64_t step) {
    const at::NoGradGuard no_grad;
    const Json trigger = json_.value("trigger", Json::object());
    const Json changed = trigger.value("parameters", Json::object());
    std::size_t i = 0;
    before_.clear();
    for (const NamedParameter& parameter : model_.Parameters()) {
      at::Tensor value = start_[i++] * (1 - 0.01 * static_cast<double>(step));
      if (step > 0 && changed.contains(parameter.name)) {
        value.fill_(changed[parameter.name].get<double>());
      }
      parameter.value.copy_(value);
      before_.push_back(value);
    }
  }

  std::vector<at::Tensor> Moved() const {
    std::vector<at::Tensor> moved;
    std::size_t i = 0;
    for (const NamedParameter& parameter : model_.Parameters()) {
      moved.push_back(
          (parameter.value.detach().to(at::kDouble) - before_[i++].to(at::kDouble)).clone());
    }
    return moved;
  }

  const Json& json_;
  const Conditions& conditions_;
  torch::jit::Module module_;
  ScriptModel model_;
  PrivacyPlan plan_;
  Dataset data_;
  std::vector<at::Tensor> start_;
  std::vector<at::Tensor> before_;
  std::vector<at::Tensor> buffers_;
  World world_;
};

World Live(const Json& model, const Conditions& conditions, bool is_neighbour) {
  try {
    return Life(model, conditions, is_neighbour).Live();
  } catch (const Error& error) {
    World world;  // refused before it was trained
    world.refusal = error.what();
    return world;
  }
}

double Distance(const std::vector<at::Tensor>& one, const std::vector<at::Tensor>& other) {
  double sum = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    sum += (one[i] - other[i]).square().sum().item<double>();
  }
  return std::sqrt(sum);
}

void ExpectRefusalSaysNothing(const World& world, const std::string& what) {
  if (world.refusal.empty()) return;
  EXPECT_GT(world.refusal.size(), 20U) << what;
  EXPECT_FALSE(HasNumber(world.refusal)) << what << ": " << world.refusal;
  // The step that was refused released nothing, and cost nothing.
  EXPECT_EQ(world.charged, world.steps_done) << what;
}

struct Outcome {
  bool refused = false;
  double ratio = 0;  // the largest distance over the sensitivity
};

Outcome ExpectSafe(const Json& model, Conditions conditions) {
  const World world = Live(model, conditions, false);
  if (world.draws) conditions.adjacency = Adjacency::kReplaceOne;
  const std::string what = conditions.Text(model);
  const World one = world.draws ? Live(model, conditions, false) : world;
  const World other = Live(model, conditions, true);
  for (const World* const each : {&one, &other}) {
    ExpectRefusalSaysNothing(*each, what);
    EXPECT_THAT(each->written, ::testing::IsEmpty()) << what;
  }
  Outcome outcome;
  outcome.refused = !one.refusal.empty() || !other.refusal.empty();
  for (std::size_t step = 0; step < std::min(one.updates.size(), other.updates.size()); ++step) {
    const double distance = Distance(one.updates[step], other.updates[step]);
    // Weights of size 1 are rounded to 2^-24 of it.
    EXPECT_LE(distance, one.sensitivity + 1e-5) << what << ", step " << step;
    outcome.ratio = std::max(outcome.ratio, distance / one.sensitivity);
  }
  return outcome;
}

// The conditions of the trigger.
Conditions OwnConditions(const Json& model) {
  Conditions conditions;
  const HostileTrigger trigger = TriggerOf(model);
  conditions.warm_up = trigger.warm_up;
  conditions.examples = trigger.examples.value_or(conditions.examples);
  return conditions;
}

Conditions Drawn(const Json& model, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](const auto& values) { return values[random() % values.size()]; };
  Conditions conditions = OwnConditions(model);
  conditions.seed = seed;
  conditions.examples = one_of(std::vector<std::int64_t>{1, 2, 7, 13, 64, 400});
  conditions.physical_batch = one_of(std::vector<std::int64_t>{0, 0, 5, 64});
  conditions.sampling = one_of(std::vector<std::string>{"full", "poisson"});
  conditions.adjacency =
      one_of(std::vector<Adjacency>{Adjacency::kAddRemove, Adjacency::kReplaceOne});
  conditions.dropout = random() % 3 == 0;
  // The comparison refuses most of them at once.
  conditions.compare = random() % 8 == 0;
  conditions.outlier =
      one_of(std::vector<double>{6, -40, 0.5, std::numeric_limits<double>::quiet_NaN()});
  return conditions;
}

// What the other tests measure is seen where it is there: a number that never went through the
// model cannot be kept apart by examples.
TEST(HostileTraining, ALeakPastTheModelIsSeenInTheDistance) {
  const Json plain = {
      {"name", "plain"},
      {"parameters", {{"w", {6, 3}}}},
      {"source", "def forward(self, x: Tensor) -> Tensor:\n    return x @ self.w\n"}};
  for (const Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplaceOne}) {
    Conditions conditions;
    conditions.examples = 64;
    conditions.adjacency = adjacency;
    conditions.outlier = -40;
    EXPECT_LE(ExpectSafe(plain, conditions).ratio, 1);
    conditions.leaks = true;
    const World one = Live(plain, conditions, false);
    const World other = Live(plain, conditions, true);
    EXPECT_GT(Distance(one.updates[0], other.updates[0]), 2 * one.sensitivity);
  }
}

std::uint64_t SweptSeeds() {
  const char* const seeds = std::getenv("SORDINO_HOSTILE_SWEEP");
  return seeds == nullptr ? 0 : std::stoull(seeds);
}

TEST(HostileTraining, IsRefusedOrWithinTheSensitivityAndHonestModelsAreTrained) {
  std::int64_t refused = 0;
  std::int64_t hostile = 0;
  for (const Json& model : HostileModels()) {
    const std::string name = model["name"].get<std::string>();
    const bool is_hostile = model["hostile"].get<bool>();
    for (const Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplaceOne}) {
      Conditions conditions = OwnConditions(model);
      conditions.adjacency = adjacency;
      const Outcome outcome = ExpectSafe(model, conditions);
      // Its tensors have sizes that depend on values.
      EXPECT_TRUE(is_hostile || outcome.refused == (name == "ok_expert_rows")) << name;
      if (is_hostile && adjacency == Adjacency::kAddRemove) {
        ++hostile;
        if (outcome.refused) ++refused;
      }
    }
  }
  // What is not refused here runs isolated, and means for an example what it means for a batch.
  EXPECT_GT(refused, hostile / 2);
  RecordProperty("refused", static_cast<int>(refused));
}

TEST(HostileTraining, IsWithinTheSensitivityInEveryBatchSizeAndCut) {
  double largest = 0;
  std::uint64_t seed = 1000;
  for (const Json& model : HostileModels()) {
    largest = std::max(largest, ExpectSafe(model, Drawn(model, ++seed)).ratio);
  }
  // The worlds do differ, by nearly all that they may.
  EXPECT_GT(largest, 0.5);
}

TEST(HostileTraining, IsWithinTheSensitivityInTheWholeSweep) {
  if (SweptSeeds() == 0) {
    GTEST_SKIP() << "set SORDINO_HOSTILE_SWEEP=20 to run all models under 20 seeds and all sizes";
  }
  for (const Json& model : HostileModels()) {
    for (std::uint64_t seed = 1; seed <= SweptSeeds(); ++seed) {
      for (const std::int64_t examples : {1, 2, 7, 64, 400}) {
        for (const bool dropout : {false, true}) {
          Conditions conditions = Drawn(model, 10'000 * seed + 10 * examples + (dropout ? 1 : 0));
          conditions.examples = examples;
          conditions.dropout = dropout;
          ExpectSafe(model, conditions);
        }
      }
    }
  }
}

}  // namespace
}  // namespace sordino
