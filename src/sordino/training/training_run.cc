#include "sordino/training/training_run.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/stop.h"
#include "sordino/gradients/flat_clipping.h"
#include "sordino/report/run_picture.h"
#include "sordino/training/classification.h"
#include "sordino/training/run_folder.h"
#include "sordino/training/train_settings.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One clipped step of nothing but made-up records: a model that mixes examples, or a layer that
// cannot be differentiated by example, is refused before anything is spent.
void TryStep(const PreparedRun& run) {
  const std::int64_t copies = run.config.training.copies;
  const Batch batch =
      MadeUpBatch(run.declaration, *run.model,
                  std::max<std::int64_t>(3, run.plan.options().micro_batch), copies, run.device);
  const FeatureShape feature_shape = batch[0].sizes().slice(1).vec();
  run.model->Train(true);
  const at::Tensor rows = copies > 1 ? batch[0].flatten(0, 1) : batch[0];
  const at::Tensor logits = Logits(*run.model, rows, feature_shape);
  if (logits.dim() != 2 || logits.size(0) != rows.size(0) ||
      logits.size(1) != run.declaration.classes) {
    throw Error(
        fmt::format("the model '{}' does not fit the data: it must give {} numbers for an example, "
                    "one for each "
                    "class.",
                    run.config.ModelName(), run.declaration.classes));
  }
  if (run.privacy == RunPrivacy::kNonPrivate) return;
  // With the bounds of the plan: batches that are too large for the rounding are found here too.
  Clipper clipper(ParametersOf(*run.model), GradientOptionsOf(run.config), run.plan.Sum());
  static_cast<void>(clipper.ClippedSum(CrossEntropy(*run.model, copies, feature_shape), batch,
                                       FlatClipping(ClipNorm(run.config.privacy.clip))));
}

PrivacyPlan MakePlan(const TrainConfig& config, const DatasetDeclaration& declaration) {
  const PlanOptions options = PlanOptionsOf(config, declaration);
  const Delta delta(*config.privacy.delta);
  if (config.run.non_private) return {options, NoiseMultiplier(1), delta};
  if (config.privacy.noise) return {options, NoiseMultiplier(*config.privacy.noise), delta};
  std::optional<PrivacyPlan> plan =
      PrivacyPlan::ForBudget(options, Epsilon(*config.privacy.epsilon), delta);
  if (!plan) {
    throw Error(fmt::format(
        "no noise meets epsilon {:g} and delta {:g} with {} steps at batch {:g}; give a larger "
        "budget, fewer steps or a smaller batch.",
        *config.privacy.epsilon, *config.privacy.delta, options.steps, options.batch));
  }
  return *std::move(plan);
}

RunPrivacy PrivacyOf(const TrainConfig& config) {
  if (config.run.non_private) return RunPrivacy::kNonPrivate;
  return config.run.insecure_seed ? RunPrivacy::kSeeded : RunPrivacy::kPrivate;
}

Interval EpsilonOf(const PrivacyPlan& plan, RunPrivacy privacy, std::int64_t steps) {
  if (privacy == RunPrivacy::kNonPrivate) return {kInfinity, kInfinity};
  return steps == 0 ? Interval{0, 0} : plan.Epsilon(steps);
}

StatementFacts PlannedFacts(const PreparedRun& run) {
  const TrainConfig& config = run.config;
  StatementFacts facts;
  facts.privacy = run.privacy;
  facts.data = run.declaration.name;
  facts.model = run.model->Description();
  facts.records = run.declaration.records;
  facts.rows_per_user = run.declaration.rows_per_user;
  facts.adjacency = run.plan.options().adjacency;
  facts.steps = run.plan.steps();
  facts.planned_steps = run.plan.steps();
  facts.epsilon = EpsilonOf(run.plan, run.privacy, facts.steps);
  facts.delta = run.plan.delta().value();
  facts.sampling = config.privacy.sampling;
  if (run.privacy == RunPrivacy::kNonPrivate) {
    facts.plan = fmt::format("{} sampling, batch {:g}, {} steps, without clipping and noise",
                             config.privacy.sampling, *config.training.batch, facts.steps);
  } else {
    facts.plan = run.plan.Description();
    facts.event = run.plan.event().ToString();
  }
  facts.normalisation = run.declaration.normalisation.source;
  facts.pretrained = config.model.pretrained;
  const auto names = DatasetNames();
  facts.has_test = !config.data.test.empty() ||
                   std::find(names.begin(), names.end(), config.data.source) != names.end();
  return facts;
}

void CheckAugmentation(const PreparedRun& run) {
  if (!AugmentationOptionsOf(run.config).Changes()) return;
  if (run.declaration.kind != InputKind::kImage) {
    throw Error(
        "--flip, --shift and --copies change images, and the data are none; leave them out.");
  }
  if (run.model->HasFeatures()) {
    throw Error(
        fmt::format("the model '{}' computes its features once for each record, so records cannot "
                    "be changed at "
                    "random; leave out --flip, --shift and --copies.",
                    run.config.ModelName()));
  }
}

// Stops that were asked for before the first step.
void CheckStop() {
  if (StopGuard::Requested()) {
    throw std::runtime_error("stopped before the first step; nothing was spent or written.");
  }
}

// The part of a run in which something is spent.
class Loop {
 public:
  Loop(PreparedRun& run, RunObserver& observer, Dataset train, std::optional<Dataset> test,
       FeatureShape feature_shape)
      : run_(run),
        observer_(observer),
        train_(std::move(train)),
        test_(std::move(test)),
        feature_shape_(std::move(feature_shape)),
        trainer_(MakeTrainer()) {}

  void Go(RunFolder& folder) {
    folder_ = &folder;
    start_ = Clock::now();
    run_.model->Train(true);
    trainer_.Run([this](std::int64_t steps) { return AfterStep(steps); });
    // An end that was not asked to wait for a look at the test set.
    if (points_.empty() || points_.back().step != trainer_.steps_done()) Look();
  }

  std::int64_t steps_done() const { return trainer_.steps_done(); }
  const std::vector<RunPoint>& points() const { return points_; }
  std::optional<double> accuracy() const { return accuracy_; }

  void Save(const std::filesystem::path& file, const ModelRecord& record) {
    const Optimizer::AveragedWeights averaged(trainer_.optimizer());
    SaveModel(file, *run_.model, record);
  }

 private:
  Trainer MakeTrainer() {
    TrainerOptions options;
    options.gradients = GradientOptionsOf(run_.config);
    options.loader.augmentation = AugmentationOptionsOf(run_.config);
    options.loader.device = run_.device;
    options.insecure_seed = run_.config.run.insecure_seed;
    const auto make = [&](auto&& constructor) {
      return constructor(run_.plan, ParametersOf(*run_.model),
                         CrossEntropy(*run_.model, run_.config.training.copies, feature_shape_),
                         train_, OptimizerOptionsOf(run_.config), std::move(options));
    };
    if (run_.privacy == RunPrivacy::kNonPrivate) return make(Trainer::NonPrivate);
    return make([](auto&&... arguments) {
      return Trainer(std::forward<decltype(arguments)>(arguments)...);
    });
  }

  bool AfterStep(std::int64_t steps) {
    const bool last = steps == run_.plan.steps();
    const bool stop = StopGuard::Requested();
    if (stop || last || steps % run_.config.run.evaluate_every == 0) Look();
    Tell(steps);
    return !stop;
  }

  void Look() {
    MetricsRow row;
    row.is_private = run_.privacy == RunPrivacy::kPrivate;
    row.step = trainer_.steps_done();
    if (run_.privacy != RunPrivacy::kNonPrivate) {
      row.epsilon = EpsilonOf(run_.plan, run_.privacy, row.step);
      epsilon_ = row.epsilon->upper;
      epsilon_time_ = Clock::now();
    }
    if (test_) {
      const Optimizer::AveragedWeights averaged(trainer_.optimizer());
      run_.model->Train(false);
      const TestMetrics metrics = Evaluate(*run_.model, *test_, run_.device, feature_shape_);
      run_.model->Train(true);
      row.test_accuracy = metrics.accuracy;
      row.test_loss = metrics.loss;
      accuracy_ = metrics.accuracy;
    }
    row.seconds = SecondsSince(start_);
    folder_->AppendMetrics(row);
    RunPoint point;
    point.step = row.step;
    if (row.epsilon) point.epsilon = row.epsilon->upper;
    point.accuracy = row.test_accuracy;
    points_.push_back(point);
  }

  void Tell(std::int64_t steps) {
    // Accounting takes its time, more for schedules: at most a twentieth of the run, and at most
    // every two seconds.
    const Clock::time_point now = Clock::now();
    if (run_.privacy != RunPrivacy::kNonPrivate && now - epsilon_time_ > epsilon_pause_) {
      epsilon_ = EpsilonOf(run_.plan, run_.privacy, steps).upper;
      epsilon_time_ = Clock::now();
      epsilon_pause_ =
          std::max<Clock::duration>(std::chrono::seconds(2), 20 * (epsilon_time_ - now));
    }
    StepReport report;
    report.step = steps;
    report.steps = run_.plan.steps();
    report.epsilon = epsilon_;
    report.test_accuracy = accuracy_;
    report.examples_per_second =
        run_.plan.options().batch * static_cast<double>(steps) / SecondsSince(start_);
    observer_.OnStep(report);
  }

  PreparedRun& run_;
  RunObserver& observer_;
  Dataset train_;
  std::optional<Dataset> test_;
  FeatureShape feature_shape_;
  Trainer trainer_;
  RunFolder* folder_ = nullptr;
  Clock::time_point start_;
  Clock::time_point epsilon_time_;
  Clock::duration epsilon_pause_ = std::chrono::seconds(2);
  std::optional<double> epsilon_;
  std::optional<double> accuracy_;
  std::vector<RunPoint> points_;
};

RunPictureText PictureText(const PreparedRun& run, const StatementFacts& facts) {
  RunPictureText text;
  text.title = fmt::format("{} on {}", run.config.ModelName(), run.declaration.name);
  text.caption = run.privacy == RunPrivacy::kNonPrivate
                     ? fmt::format("{} steps without privacy", facts.steps)
                     : fmt::format("epsilon at delta {:g}; {} steps, {} adjacency", facts.delta,
                                   facts.steps, AdjacencyName(facts.adjacency));
  if (run.privacy != RunPrivacy::kPrivate) text.warning = "NOT PRIVATE";
  return text;
}

std::string EventFile(const PreparedRun& run, std::int64_t steps) {
  if (run.privacy == RunPrivacy::kNonPrivate) return "NOT PRIVATE\n";
  return fmt::format("{}{}\n", run.privacy == RunPrivacy::kSeeded ? "NOT PRIVATE\n" : "",
                     run.plan.EventOf(steps).ToString());
}

}  // namespace

PreparedRun PrepareRun(const TrainConfig& config) {
  // What needs no data comes first, so that a misspelt name is not hidden by a missing file.
  const c10::Device device = ParseDevice(config.training.device);
  if (config.training.threads > 0) at::set_num_threads(static_cast<int>(config.training.threads));
  if (config.data.source.empty()) Completed(config, {});  // says what is missing
  DatasetDeclaration declaration = Declare(config.data);
  TrainConfig completed = Completed(config, declaration);
  std::unique_ptr<Model> model = MakeConfiguredModel(completed, ModelShapeOf(declaration), device);
  OptimizerOptionsOf(completed);
  PrivacyPlan plan = MakePlan(completed, declaration);
  PreparedRun run{.config = std::move(completed),
                  .declaration = std::move(declaration),
                  .device = device,
                  .model = std::move(model),
                  .plan = std::move(plan),
                  .privacy = PrivacyOf(config),
                  .facts = {}};
  CheckAugmentation(run);
  TryStep(run);
  run.facts = PlannedFacts(run);
  return run;
}

RunResult PlannedResult(const PreparedRun& run) {
  RunResult result;
  result.epsilon = run.facts.epsilon;
  result.delta = run.facts.delta;
  result.noise_multiplier = run.privacy == RunPrivacy::kNonPrivate ? 0 : run.plan.noise().value();
  result.sampling_rate = run.plan.StepRate(0).value();
  result.steps = run.facts.steps;
  result.is_private = run.privacy == RunPrivacy::kPrivate;
  result.facts = run.facts;
  return result;
}

RunResult RunTraining(PreparedRun& run, RunObserver& observer) {
  const Clock::time_point start = Clock::now();
  const StopGuard guard;
  const std::filesystem::path place = ChooseRunFolder(run.config, std::time(nullptr));
  DataSplits data = OpenData(run.config.data);
  CheckStop();
  run.facts.has_test = data.test.has_value();

  FeatureShape feature_shape;
  if (run.model->HasFeatures()) {
    run.model->Train(false);
    const double train_share = data.test ? 0.8 : 1;
    data.train = WithFeatures(data.train, *run.model, run.device, &feature_shape, [&](double done) {
      CheckStop();
      observer.OnFeatures(static_cast<int>(100 * train_share * done));
    });
    if (data.test) {
      data.test =
          WithFeatures(*data.test, *run.model, run.device, &feature_shape, [&](double done) {
            observer.OnFeatures(static_cast<int>(100 * (train_share + (1 - train_share) * done)));
          });
    }
  }
  Loop loop(run, observer, std::move(data.train), std::move(data.test), std::move(feature_shape));
  CheckStop();

  RunFolder folder(place);
  folder.Write("config.toml", WriteTrainConfig(run.config));
  folder.Write("statement.txt", Statement(run.facts));
  folder.Write("event.txt", EventFile(run, run.plan.steps()));
  observer.OnStart();
  loop.Go(folder);

  RunResult result = PlannedResult(run);
  result.folder = folder.path();
  result.steps = loop.steps_done();
  result.interrupted = result.steps < run.plan.steps();
  result.epsilon = EpsilonOf(run.plan, run.privacy, result.steps);
  result.test_accuracy = loop.accuracy();
  StatementFacts& facts = result.facts;
  facts.state = result.interrupted ? RunState::kInterrupted : RunState::kFinished;
  facts.steps = result.steps;
  facts.epsilon = result.epsilon;
  if (!facts.event.empty()) facts.event = run.plan.EventOf(result.steps).ToString();
  const std::string statement = Statement(facts);
  loop.Save(folder.path() / "model.safetensors", {.name = run.config.ModelName(),
                                                  .data = run.declaration,
                                                  .privacy = run.privacy,
                                                  .epsilon = result.epsilon,
                                                  .delta = result.delta,
                                                  .steps = result.steps,
                                                  .statement = statement});
  folder.Write("event.txt", EventFile(run, result.steps));
  folder.Write("accuracy-and-epsilon.svg", RunSvg(loop.points(), PictureText(run, facts)));
  folder.Write("statement.txt", statement);
  result.seconds = SecondsSince(start);
  return result;
}

}  // namespace sordino
