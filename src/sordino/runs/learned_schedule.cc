#include "sordino/runs/learned_schedule.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/runs/config_trainer.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/training_run.h"

namespace sordino {
namespace {

constexpr std::int64_t kMaxLearnSeeds = 10'000;
constexpr std::int64_t kMaxLearnBlocks = 1000;
constexpr double kMaxLearnFactor = 100;

// `factor` times the noise in the steps of the block.
Schedule Raised(const BlockInfluence& block, double factor) {
  return Schedule::Parse(
      fmt::format("block:{}:{}:{}", block.first + 1, block.first + block.steps, factor));
}

// Data of the auxiliary problem, as the model is trained on them.
struct AuxiliaryProblem {
  TrainConfig config;
  DatasetDeclaration declaration;
  c10::Device device = c10::kCPU;
  PlanOptions plan;
  NoiseMultiplier noise{1};
  Delta delta{0.5};
  Dataset train;
  FeatureShape features;
};

AuxiliaryProblem OpenAuxiliary(const TrainConfig& config) {
  PreparedRun run = PrepareRun(config);
  AuxiliaryProblem problem{.config = run.config,
                           .declaration = run.declaration,
                           .device = run.device,
                           .plan = run.plan.options(),
                           .noise = run.plan.noise(),
                           .delta = run.plan.delta(),
                           .train = OpenData(run.config.data).train,
                           .features = {}};
  if (run.model->HasFeatures()) {
    run.model->Train(false);
    problem.train =
        WithFeatures(problem.train, *run.model, run.device, &problem.features, [](double) {});
  }
  return problem;
}

// The loss on the auxiliary records after a run.
double FinalLoss(const AuxiliaryProblem& problem, const Schedule& schedule, std::uint64_t seed) {
  TrainConfig config = problem.config;
  config.model.seed = seed;
  const std::unique_ptr<Model> model =
      MakeConfiguredModel(config, ModelShapeOf(problem.declaration), problem.device);
  PlanOptions options = problem.plan;
  options.noise_schedule = schedule;
  const PrivacyPlan plan(options, problem.noise, problem.delta);
  TrainerOptions seeded;
  seeded.loader.device = problem.device;
  seeded.insecure_seed = seed;
  Trainer trainer =
      MakeTrainer(config, plan, *model, problem.features, problem.train, std::move(seeded));
  model->Train(true);
  trainer.Run();
  const Optimizer::AveragedWeights averaged(trainer.optimizer());
  model->Train(false);
  return Evaluate(*model, problem.train, problem.device, problem.features).loss;
}

void CheckLearnOptions(const LearnOptions& options) {
  const auto whole = [](const char* what, std::int64_t value, std::int64_t most) {
    if (value < 2 || value > most) {
      throw Error(fmt::format("{} is {}; give a number from 2 to {}.", what, value, most));
    }
  };
  whole("the number of seeds", options.seeds, kMaxLearnSeeds);
  whole("the number of blocks", options.blocks, kMaxLearnBlocks);
  if (!(options.factor > 1 && options.factor <= kMaxLearnFactor)) {
    throw Error(fmt::format("the factor of the noise is {:g}; give one above 1 and at most {:g}.",
                            options.factor, kMaxLearnFactor));
  }
}

void CheckLearnable(const TrainConfig& config) {
  if (!config.AddsNoise()) {
    throw Error(fmt::format("a schedule is learned from runs with noise; leave out {}.",
                            config.run.non_private ? "--non-private" : "--noise 0"));
  }
  if (config.privacy.noise_schedule != "constant") {
    throw Error(
        "a schedule is learned from runs with equal noise, and the settings have a noise schedule; "
        "leave it out.");
  }
}

std::vector<BlockInfluence> EmptyBlocks(std::int64_t steps, std::int64_t count) {
  if (steps < count) {
    throw Error(
        fmt::format("the run has {} steps and {} blocks are asked for; give fewer.", steps, count));
  }
  std::vector<BlockInfluence> blocks;
  blocks.reserve(static_cast<std::size_t>(count));
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t first = k * steps / count;
    blocks.push_back({.first = first, .steps = (k + 1) * steps / count - first});
  }
  return blocks;
}

// Mean and standard error of the influence of a block.
void Average(BlockInfluence& block, const std::vector<double>& influences) {
  const auto count = static_cast<double>(influences.size());
  double mean = 0;
  for (const double influence : influences) mean += influence / count;
  double squares = 0;
  for (const double influence : influences) squares += (influence - mean) * (influence - mean);
  block.weight = mean;
  block.error = std::sqrt(squares / (count - 1) / count);
}

}  // namespace

LearnedSchedule LearnSchedule(const TrainConfig& config, const LearnOptions& options) {
  CheckLearnOptions(options);
  CheckLearnable(config);
  const AuxiliaryProblem problem = OpenAuxiliary(config);
  const std::int64_t steps = problem.plan.steps;
  LearnedSchedule learned;
  learned.blocks = EmptyBlocks(steps, options.blocks);
  const double z = problem.noise.value();
  const double added = (options.factor * options.factor - 1) * z * z;
  std::vector<std::vector<double>> measured(learned.blocks.size());
  // Other first seeds have no seed in common.
  const std::uint64_t before = problem.config.model.seed * kMaxLearnSeeds;
  const auto total = static_cast<double>(options.seeds * (options.blocks + 1));
  const auto loss = [&](const Schedule& schedule, std::int64_t seed) {
    const double final_loss =
        FinalLoss(problem, schedule, before + static_cast<std::uint64_t>(seed));
    ++learned.runs;
    if (options.progress) options.progress(static_cast<double>(learned.runs) / total);
    return final_loss;
  };
  for (std::int64_t seed = 1; seed <= options.seeds; ++seed) {
    const double equal = loss(Schedule(), seed);
    for (std::size_t k = 0; k < learned.blocks.size(); ++k) {
      const Schedule raised = Raised(learned.blocks[k], options.factor);
      measured[k].push_back((loss(raised, seed) - equal) /
                            (added * static_cast<double>(learned.blocks[k].steps)));
    }
  }
  for (std::size_t k = 0; k < learned.blocks.size(); ++k) Average(learned.blocks[k], measured[k]);
  learned.test = TestDecay(learned.blocks, measured, steps);
  learned.schedule = ScheduleOf(learned.blocks, learned.test, steps);
  return learned;
}

}  // namespace sordino
