#include "sordino/runs/training_run.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <exception>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/stop.h"
#include "sordino/gradients/flat_clipping.h"
#include "sordino/ledger/data_description.h"
#include "sordino/report/run_picture.h"
#include "sordino/runs/internal/training_loop.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/run_inputs.h"
#include "sordino/training/classification.h"

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

// What the run would only find after its first charge.
void CheckStart(const TrainConfig& config, const Model& model) {
  static_cast<void>(
      Optimizer(ParametersOf(model), OptimizerOptionsOf(config), *config.training.steps));
  const std::string name = internal::NonFiniteWeight(model);
  if (!name.empty()) {
    throw Error(fmt::format(
        "a weight of '{}' is not a finite number before the first step; give other weights to "
        "start from.",
        name));
  }
}

PrivacyPlan MakePlan(const TrainConfig& config, const DatasetDeclaration& declaration,
                     std::optional<double> noise) {
  const PlanOptions options = PlanOptionsOf(config, declaration);
  const Delta delta(*config.privacy.delta);
  if (noise) return {options, NoiseMultiplier(*noise), delta};
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
  facts.charges_epochs = run.plan.sampler().HasWholeEpochs();
  facts.has_secret_batches = run.plan.sampler().IsSecret();
  facts.sampling = run.plan.sampler().Statement();
  if (run.privacy == RunPrivacy::kNonPrivate) {
    facts.plan = fmt::format("{} sampling, batch {:g}, {} steps, without clipping and noise",
                             config.privacy.sampling.name, *config.training.batch, facts.steps);
  } else {
    facts.plan = run.plan.Description();
    facts.event = run.plan.event().ToString();
  }
  if (!config.run.ledger.empty()) {
    facts.ledger = config.run.ledger;
    facts.budget = Ledger::Open(config.run.ledger, {.read_only = true}).budget();
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
    throw Stopped("stopped before the first step; nothing was spent or written.");
  }
}

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

std::string EventFile(const PreparedRun& run, const Event& event) {
  if (run.privacy == RunPrivacy::kNonPrivate) return "NOT PRIVATE\n";
  return fmt::format("{}{}\n", run.privacy == RunPrivacy::kSeeded ? "NOT PRIVATE\n" : "",
                     event.ToString());
}

// The ledger that was asked for, or that the data's description names.
std::string LedgerFile(const TrainConfig& config) {
  std::vector<std::filesystem::path> files;
  for (const DataFile& file : FilesOf(config.data)) {
    if (!file.is_public) files.emplace_back(file.path);
  }
  const std::optional<std::filesystem::path> ledger = ChooseLedger(config.run.ledger, files);
  if (!ledger) return "";
  if (config.run.non_private) {
    throw Error(fmt::format(
        "a run without privacy cannot be charged to the ledger '{}'; leave out --non-private, or "
        "use data that have no ledger.",
        ledger->string()));
  }
  // A run that is gone on with may be so from another folder.
  return std::filesystem::absolute(*ledger).lexically_normal().string();
}

std::unique_ptr<RunLedger> MakeRunLedger(const PreparedRun& run) {
  if (run.privacy == RunPrivacy::kNonPrivate) return nullptr;
  return std::make_unique<RunLedger>(
      run.plan, fmt::format("train {} on {}", run.config.ModelName(), run.declaration.name),
      run.privacy == RunPrivacy::kPrivate);
}

// Before the data are read: what a ledger refuses is refused first.
void OpenLedger(RunLedger& ledger, const PreparedRun& run, RunObserver& observer) {
  const std::string& named = run.config.run.ledger;
  std::int64_t steps = run.plan.steps();
  if (run.resume) {
    const std::filesystem::path file =
        named.empty() ? run.resume->folder.path() / kLedgerFile : std::filesystem::path(named);
    ledger.Rejoin(file, named.empty(), run.resume->checkpoint.facts);
    steps -= run.resume->checkpoint.facts.step;
  } else if (!named.empty()) {
    ledger.OpenNamed(named);
  } else {
    return;
  }
  const std::string sentence =
      OutlookSentence(ledger.outlook(), steps, ledger.ledger().file().string());
  if (!sentence.empty()) observer.OnNotice(sentence);
}

void WriteLedgerFacts(StatementFacts& facts, RunLedger& ledger, std::int64_t steps) {
  facts.event = ledger.CountedEvent(steps).ToString();
  facts.lost_steps = ledger.lost_steps();
  if (ledger.is_own()) return;
  ledger.ledger().Refresh();
  facts.ledger_epsilon = ledger.ledger().ComposedEpsilon();
  facts.ledger_head = ledger.ledger().head().hash;
}

}  // namespace

PreparedRun PrepareRun(const TrainConfig& config) {
  return internal::PrepareWithNoise(config, std::nullopt);
}

PreparedRun internal::PrepareWithNoise(const TrainConfig& config, std::optional<double> noise) {
  // What needs no data comes first, so that a misspelt name is not hidden by a missing file.
  const c10::Device device = ParseDevice(config.training.device);
  // A seed is for the same bits again, and cuDNN's fastest convolutions do not give them.
  if (config.run.insecure_seed) at::globalContext().setDeterministicCuDNN(true);
  if (config.data.source.empty()) Completed(config, {});  // says what is missing
  DatasetDeclaration declaration = Declare(config.data);
  TrainConfig completed = Completed(config, declaration);
  if (config.training.threads > 0) at::set_num_threads(static_cast<int>(config.training.threads));
  completed.run.ledger = LedgerFile(completed);
  std::unique_ptr<Model> model = MakeConfiguredModel(completed, ModelShapeOf(declaration), device);
  CheckStart(completed, *model);
  PrivacyPlan plan = MakePlan(completed, declaration, noise);
  PreparedRun run{.config = std::move(completed),
                  .declaration = std::move(declaration),
                  .device = device,
                  .model = std::move(model),
                  .plan = std::move(plan),
                  .privacy = PrivacyOf(config),
                  .facts = {},
                  .resume = std::nullopt};
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

std::optional<LedgerOutlook> LookAtLedger(const PreparedRun& run) {
  const std::unique_ptr<RunLedger> ledger = MakeRunLedger(run);
  if (ledger == nullptr || run.config.run.ledger.empty()) return std::nullopt;
  ledger->OpenNamed(run.config.run.ledger);
  return ledger->outlook();
}

std::string OutlookSentence(const LedgerOutlook& outlook, std::int64_t steps,
                            const std::string& ledger) {
  if (outlook.admitted_steps < steps) {
    return fmt::format("the ledger '{}' admits {} of the {} steps, and the run ends there: {}.",
                       ledger, outlook.admitted_steps, steps, outlook.reason);
  }
  if (outlook.counts_whole) {
    return fmt::format(
        "this run takes all that the ledger '{}' has: its plan counts whole, also where it is "
        "stopped early.",
        ledger);
  }
  return "";
}

RunResult RunTraining(PreparedRun& run, RunObserver& observer) {
  const Clock::time_point start = Clock::now();
  const StopGuard guard;
  const std::filesystem::path place =
      run.resume ? run.resume->folder.path() : ChooseRunFolder(run.config, std::time(nullptr));
  const std::unique_ptr<RunLedger> ledger = MakeRunLedger(run);
  if (ledger) OpenLedger(*ledger, run, observer);
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
  internal::TrainingLoop loop(run, observer, std::move(data.train), std::move(data.test),
                              std::move(feature_shape), ledger.get());
  if (run.resume) loop.GoOnFrom(run.resume->checkpoint, ReadMetrics(place));
  CheckStop();

  std::optional<RunFolder> made;
  std::string inputs;
  if (run.resume) {
    inputs = CheckInputs(place);
  } else {
    made.emplace(place);
    inputs = KeepInputs(place, run.config);
    made->Write("event.txt", EventFile(run, run.plan.event()));
    if (ledger && run.config.run.ledger.empty()) {
      const std::optional<double>& target = run.config.privacy.epsilon;
      ledger->CreateOwn(place / kLedgerFile,
                        target ? std::optional<Epsilon>(*target) : std::nullopt);
    }
  }
  RunFolder& folder = run.resume ? run.resume->folder : *made;
  if (run.resume && ledger) {
    // What a crash would leave to be read counts what earlier ones took.
    run.facts.epsilon = ledger->EpsilonAfter(run.plan.steps());
    run.facts.event = ledger->EventAfter(run.plan.steps()).ToString();
    run.facts.lost_steps = ledger->lost_steps();
    folder.Write("event.txt", EventFile(run, ledger->EventAfter(run.plan.steps())));
  }
  folder.Write("statement.txt", Statement(run.facts));
  observer.OnStart();
  loop.Go(folder);
  if (ledger && ledger->run().empty() && loop.failure() == nullptr) {
    // Another run took what was left since it was looked at. Nothing was made, so nothing stays.
    made.reset();
    std::filesystem::remove_all(place);
    throw Error(fmt::format(
        "the ledger '{}' does not admit a single step of this run: {}; nothing was released.",
        run.config.run.ledger, loop.refusal()));
  }

  RunResult result = PlannedResult(run);
  result.folder = folder.path();
  result.steps = loop.steps_done();
  result.interrupted = result.steps < run.plan.steps();
  result.stopped_by_ledger = !loop.refusal().empty();
  result.epsilon = ledger ? ledger->CountedEpsilon(result.steps) : loop.Epsilon(result.steps);
  result.test_accuracy = loop.accuracy();
  StatementFacts& facts = result.facts;
  facts.state = result.interrupted ? RunState::kInterrupted : RunState::kFinished;
  facts.steps = result.steps;
  facts.epsilon = result.epsilon;
  facts.steps_epsilon = loop.Epsilon(result.steps);
  facts.largest_epsilon = loop.Epsilon(run.plan.steps());
  facts.counts_whole = ledger && ledger->CountsWhole();
  facts.stopped_by = loop.refusal();
  if (ledger && loop.failure() == nullptr) {
    try {
      WriteLedgerFacts(facts, *ledger, result.steps);
    } catch (const std::exception& error) {
      // All steps were paid for. What the ledger holds beside them is not known now.
      observer.OnNotice(error.what());
    }
  }
  const std::string statement = Statement(facts);
  folder.Write("event.txt",
               EventFile(run, ledger ? ledger->CountedEvent(result.steps) : run.plan.event()));
  folder.Write("accuracy-and-epsilon.svg", RunSvg(loop.points(), PictureText(run, facts)));
  folder.Write("statement.txt", statement);
  // Last: a model of all steps is what says that the run has ended.
  loop.Save(folder.path() / "model.safetensors", {.name = run.config.ModelName(),
                                                  .data = run.declaration,
                                                  .privacy = run.privacy,
                                                  .epsilon = result.epsilon,
                                                  .delta = result.delta,
                                                  .steps = result.steps,
                                                  .statement = statement,
                                                  .inputs = inputs});
  if (!result.interrupted) RemoveCheckpoints(folder.path() / kCheckpointFolder);
  result.seconds = SecondsSince(start);
  if (loop.failure() != nullptr) {
    observer.OnNotice(fmt::format("the model of the {} steps that were made is in '{}'.",
                                  result.steps, folder.path().string()));
    std::rethrow_exception(loop.failure());
  }
  return result;
}

}  // namespace sordino
