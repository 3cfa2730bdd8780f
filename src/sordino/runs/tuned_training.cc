#include "sordino/runs/tuned_training.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "sordino/accounting/failures.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/stop.h"
#include "sordino/data/batch_loader.h"
#include "sordino/ledger/ledger.h"
#include "sordino/random/random_source.h"
#include "sordino/runs/config_trainer.h"
#include "sordino/runs/internal/run_inputs.h"
#include "sordino/runs/internal/run_plan.h"
#include "sordino/runs/internal/run_record.h"
#include "sordino/runs/internal/test_predictions.h"
#include "sordino/runs/internal/training_loop.h"
#include "sordino/runs/run_folder.h"

namespace sordino {
namespace {

// The part of delta that pays for K above the number of tries: half of what the third of
// kFailureShares has. More of it would save few tries.
constexpr double kTailShare = kFailureShares[2] / 2;

// Steps of the streams of what is drawn beside the runs.
constexpr std::uint64_t kCountStep = 0;
constexpr std::uint64_t kValuesStep = 1;

std::unique_ptr<Generator> Draws(const TrainConfig& config, std::uint64_t step) {
  const std::optional<std::uint64_t>& seed = config.run.insecure_seed;
  RandomSource source = seed ? RandomSource(*seed) : RandomSource();
  return source.Stream({.step = step, .tensor = kModelStream});
}

void CheckTuned(const TrainConfig& config) {
  const auto refuse = [](const std::string& what, const std::string& why) {
    throw Error(fmt::format("{} cannot be tuned: {}.", what, why));
  };
  if (config.run.non_private || config.privacy.noise) {
    refuse(config.run.non_private ? "a run without privacy (--non-private)"
                                  : "a run whose noise is given (--noise)",
           "the noise of the tries follows from the budget of all of them; give --epsilon instead");
  }
  if (!config.privacy.epsilon) {
    throw Error("the budget is missing; give --epsilon, such as --epsilon 3.");
  }
  if (config.HasAdaptiveNoise()) {
    refuse("a run with adaptive noise", "its event is not fixed in advance; use another schedule");
  }
  if (config.run.canaries > 0) {
    refuse("a run with --canaries",
           "they audit one run, and of the tries only the best one is seen; leave them out");
  }
  if (config.data.test.empty() && !IsDatasetName(config.data.source)) {
    throw Error(
        "tries are scored on a public test set, and there is none; give --test with records that "
        "may be shown to everybody.");
  }
}

// "poisson", or "tnb:ETA" with the gamma of the mean.
RunCount CountOf(const TuneSettings& settings) {
  if (!(settings.expected > 1 && settings.expected <= kMaxPoissonRuns)) {
    throw Error(
        fmt::format("--tries is {:g}; give the expected number of tries, above 1 and at "
                    "most {:g}.",
                    settings.expected, kMaxPoissonRuns));
  }
  const std::string_view text = settings.distribution;
  if (text == "poisson") return RunCount::Poisson(settings.expected);
  constexpr std::string_view kTnb = "tnb:";
  double eta = 0;
  const char* const end = text.data() + text.size();
  if (text.starts_with(kTnb)) {
    const auto [stop, error] = std::from_chars(text.data() + kTnb.size(), end, eta);
    if (error == std::errc() && stop == end && eta > -1 && eta <= 10) {
      const RunCount count = RunCount::NegativeBinomialOfMean(eta, settings.expected);
      if (count.Mean() > 0.999 * settings.expected) return count;
      throw Error(fmt::format(
          "--select {} has a mean of at most {:.3g}, and --tries is {:g}; give fewer, or a larger "
          "ETA.",
          text, count.Mean(), settings.expected));
    }
  }
  throw Error(fmt::format(
      "--select is '{}'; give poisson, or tnb:ETA with ETA above -1 and at most 10: tnb:0 is "
      "logarithmic, tnb:1 geometric.",
      text));
}

Event BestOf(const RunCount& count, Event run) {
  return count.IsPoisson() ? Event::BestPoisson(count.Mean(), std::move(run))
                           : Event::BestTnb(count.eta(), count.gamma(), std::move(run));
}

SecretRuns TriesOf(const RunCount& count, double epsilon, double delta) {
  const double paid = delta * kTailShare / (1 + std::exp(std::min(epsilon, kLargeEpsilon)));
  if (!(paid > 0)) {
    throw Error(
        fmt::format("--delta is {:g}, which does not pay for the number of tries; give a "
                    "larger one, such as 1e-6.",
                    delta));
  }
  SecretRuns tries = SecretRuns::Within(count, paid);
  if (tries.most() <= kMaxTries) return tries;
  throw Error(fmt::format(
      "{} tries would be made, so that their time does not tell how many count, and {} are the "
      "most; give fewer --tries, or --select poisson.",
      tries.most(), kMaxTries));
}

std::string SettingsText(const std::vector<TriedSetting>& tried, const TryValues& values) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    texts.push_back(fmt::format("{} {}", tried[i].name(), values[i]));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

// `values` are empty before the tries.
std::string TuningText(const PreparedTuning& tuning, const TryValues& values) {
  std::vector<std::string> spaces;
  for (const TriedSetting& one : tuning.tried) spaces.push_back(one.Text());
  const RunCount& count = tuning.tries.count();
  return fmt::format(
      "This is the best of several tries. Each drew settings of its own ({}), was trained by this "
      "plan, and was scored on the public test set. {} tries are made. How many of them count was "
      "drawn in secret from the {} distribution, {:g} on average; the others were dropped.{}",
      fmt::join(spaces, "; "), tuning.tries.most(),
      count.IsPoisson() ? std::string("Poisson")
                        : fmt::format("truncated negative binomial (eta {:g})", count.eta()),
      tuning.expected,
      values.empty() ? std::string(" The plan above has the first of the values.")
                     : fmt::format(" The best of those that count is released, with {}.",
                                   SettingsText(tuning.tried, values)));
}

StatementFacts FactsOf(const PreparedTuning& tuning) {
  const PreparedRun& run = tuning.run;
  StatementFacts facts =
      internal::PlannedFacts(run.config, run.declaration, run.plan, run.model->Description());
  facts.event = tuning.event.ToString();
  facts.epsilon = SpentEpsilon(tuning.event, run.plan.delta(), tuning.failure);
  facts.steps_epsilon = facts.epsilon;
  facts.largest_epsilon = facts.epsilon;
  facts.tuning = TuningText(tuning, {});
  return facts;
}

RunDeclaration DeclarationOf(const PreparedTuning& tuning) {
  const PreparedRun& run = tuning.run;
  return {.what = fmt::format("tune {} on {}", run.config.ModelName(), run.declaration.name),
          .plan = tuning.event,
          .failure = tuning.failure,
          .unit = run.declaration.rows_per_user > 0 ? ProtectedUnit::kUser : ProtectedUnit::kRecord,
          .is_private = run.privacy == RunPrivacy::kPrivate,
          .may_count_whole = run.config.run.whole};
}

[[noreturn]] void RefuseTuning(const PreparedTuning& tuning, const Verdict& verdict) {
  throw Error(fmt::format("nothing was released: the ledger '{}' refuses the tuning, because {}{}.",
                          tuning.run.config.run.ledger, verdict.reason,
                          verdict.needs_whole ? "; give --whole if that is meant" : ""));
}

TrainConfig ConfigOfTry(const PreparedTuning& tuning, const TryValues& values, std::uint64_t i) {
  TrainConfig config = WithValues(tuning.run.config, tuning.tried, values);
  // The seed itself is that of what is drawn beside the tries.
  if (config.run.insecure_seed) *config.run.insecure_seed += 1 + i;
  return config;
}

// Throws Error where a try with these values cannot be made, or costs something else.
void CheckTry(const PreparedTuning& tuning, const TryValues& values) {
  const PrivacyPlan& plan = tuning.run.plan;
  const PreparedRun run = internal::PrepareUntold(ConfigOfTry(tuning, values, 0),
                                                  plan.noise().value(), /*local_rank=*/0);
  if (run.plan.event() == plan.event() &&
      run.plan.Failure(plan.steps()) <= plan.Failure(plan.steps())) {
    return;
  }
  throw Error(fmt::format(
      "the privacy of a try with {} is not that of one with {}, and all tries must "
      "cost the same; leave such values out of --try.",
      SettingsText(tuning.tried, values), SettingsText(tuning.tried, FirstValues(tuning.tried))));
}

// Each value by itself, so that a mistake is refused whatever is drawn.
void CheckTriedValues(const PreparedTuning& tuning) {
  TryValues values = FirstValues(tuning.tried);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string first = values[i];
    for (const std::string& value : tuning.tried[i].Extremes()) {
      if (value == first) continue;
      values[i] = value;
      CheckTry(tuning, values);
    }
    values[i] = first;
  }
}

// The values of all tries, those that do not count among them. What was drawn is looked at before
// the charge: it was drawn without the data, and may be refused.
std::vector<TryValues> DrawTries(const PreparedTuning& tuning) {
  const std::unique_ptr<Generator> generator = Draws(tuning.run.config, kValuesStep);
  std::vector<TryValues> all;
  std::set<TryValues> checked;
  for (std::int64_t i = 0; i < tuning.tries.most(); ++i) {
    all.push_back(DrawValues(tuning.tried, *generator));
    if (checked.insert(all.back()).second) CheckTry(tuning, all.back());
  }
  return all;
}

// With the averaged weights, where there are some, as those of the model.
void TakeAverages(Trainer& trainer, const Model& model) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> values;
  {
    const Optimizer::AveragedWeights averaged(trainer.optimizer());
    for (const auto& [name, value] : model.Parameters()) values.push_back(value.clone());
  }
  std::size_t k = 0;
  for (const auto& [name, value] : model.Parameters()) value.copy_(values[k++]);
}

double ScoreOf(const Model& model, const Dataset& test, c10::Device device,
               const FeatureShape& features) {
  const TestMetrics metrics = Evaluate(model, test, device, features);
  const double score = metrics.accuracy ? *metrics.accuracy : -metrics.error->mean_squared;
  const bool is_finite = internal::NonFiniteWeight(model).empty() && !std::isnan(score);
  return is_finite ? score : -kInfinity;
}

struct Best {
  std::size_t index = 0;  // of the first try where none counts
  double score = -kInfinity;
  std::unique_ptr<Model> model;  // null: the initial weights
};

class Tries {
 public:
  Tries(const PreparedTuning& tuning, std::vector<TryValues> values, internal::RunData data)
      : tuning_(tuning),
        values_(std::move(values)),
        data_(std::move(data)),
        test_on_device_(KeptOnDevice(*data_.splits.test, tuning.run.device)) {}

  const TryValues& values(std::size_t i) const { return values_[i]; }
  TrainConfig Config(std::size_t i) const { return ConfigOfTry(tuning_, values_[i], i); }
  const internal::RunData& data() const { return data_; }

  // What the first step finds out about the data and the model, before anything is charged.
  void Look() const {
    PreparedRun run = Prepared(0);
    run.model->Train(true);
    TrainerOf(run).Look();
  }

  // The best of the first `counted` ones. All are made and scored, in the same way.
  Best Make(std::int64_t counted, const TuningObserver& observer) const {
    Best best;
    const std::int64_t steps = tuning_.run.plan.steps();
    const auto tries = static_cast<std::int64_t>(values_.size());
    for (std::int64_t i = 0; i < tries; ++i) {
      std::unique_ptr<Model> model = Train(static_cast<std::size_t>(i), [&](std::int64_t made) {
        observer(i * steps + made, tries * steps);
      });
      const double score =
          ScoreOf(*model, test_on_device_, tuning_.run.device, data_.feature_shape);
      // A try whose weights are not finite is one with initial weights and the least score.
      if (i < counted && score > best.score) {
        best = {.index = static_cast<std::size_t>(i), .score = score, .model = std::move(model)};
      }
    }
    return best;
  }

  // Of the released try: with its plan, which is the same but for what was tried.
  PreparedRun Prepared(std::size_t i) const {
    return internal::PrepareServing(Config(i), tuning_.run.plan.noise().value(), /*local_rank=*/0);
  }

 private:
  Trainer TrainerOf(PreparedRun& run) const {
    TrainerOptions options;
    options.loader.device = run.device;
    options.insecure_seed = run.config.run.insecure_seed;
    return MakeTrainer(run.config, run.plan, *run.model, data_.feature_shape, data_.splits.train,
                       std::move(options));
  }

  std::unique_ptr<Model> Train(std::size_t i,
                               const std::function<void(std::int64_t made)>& progress) const {
    PreparedRun run = Prepared(i);
    run.model->Train(true);
    Trainer trainer = TrainerOf(run);
    trainer.Run([&](std::int64_t made) {
      progress(made);
      if (!StopGuard::Requested()) return true;
      throw Stopped(
          "stopped inside the tuning; nothing was released, and what was charged stays charged.");
    });
    TakeAverages(trainer, *run.model);
    run.model->Train(false);
    return std::move(run.model);
  }

  const PreparedTuning& tuning_;
  std::vector<TryValues> values_;
  internal::RunData data_;
  Dataset test_on_device_;
};

std::string EventFile(const PreparedTuning& tuning) {
  return fmt::format("{}{}\n", tuning.run.privacy == RunPrivacy::kSeeded ? "NOT PRIVATE\n" : "",
                     tuning.event.ToString());
}

// Before the charge as after the tries.
void WriteStatement(const PreparedTuning& tuning, const RunFolder& folder,
                    const StatementFacts& facts) {
  folder.Write("event.txt", EventFile(tuning));
  folder.Write("statement.txt", Statement(facts));
  folder.Write("record.json", internal::RunRecord(facts, {.device = tuning.run.device.str(),
                                                          .failure = tuning.failure,
                                                          .time = std::time(nullptr)}));
}

// Durable when it returns. Throws Error where the ledger refuses.
void Charge(const PreparedTuning& tuning, Ledger& ledger) {
  const RunDeclaration declaration = DeclarationOf(tuning);
  const Begun begun = ledger.BeginRun(
      declaration,
      {.event = declaration.plan, .failure = declaration.failure, .words = "all tries"});
  if (!begun.verdict.admitted) RefuseTuning(tuning, begun.verdict);
}

void WriteRun(const PreparedTuning& tuning, const Tries& tries, PreparedRun& released,
              RunFolder& folder, RunResult& result) {
  const Dataset& test = *tries.data().splits.test;
  const FeatureShape& features = tries.data().feature_shape;
  released.model->Train(false);
  const TestMetrics metrics = Evaluate(*released.model, test, released.device, features);
  result.test_accuracy = metrics.accuracy;
  result.test_error = metrics.error;
  WriteStatement(tuning, folder, result.facts);
  folder.AppendMetrics({.is_private = result.is_private,
                        .step = result.steps,
                        .epsilon = result.epsilon,
                        .test_accuracy = metrics.accuracy,
                        .test_loss = metrics.loss,
                        .test_error = metrics.error});
  if (const auto answers = internal::TestPredictions(*released.model, test, features,
                                                     tries.data().test_records, released.device)) {
    folder.Write("predictions.json", answers->file);
    result.test_quality = answers->quality;
  }
  // The seed of a try is that of the tuning and its number.
  released.config.run.insecure_seed = tuning.run.config.run.insecure_seed;
  const std::string inputs = KeepInputs(folder.path(), released.config);
  // Last: it is what says that the tuning has ended.
  SaveModel(folder.path() / "model.safetensors", *released.model,
            {.name = released.config.ModelName(),
             .data = released.declaration,
             .privacy = tuning.run.privacy,
             .epsilon = result.epsilon,
             .delta = result.delta,
             .steps = result.steps,
             .statement = Statement(result.facts),
             .inputs = inputs});
}

}  // namespace

PreparedTuning PrepareTuning(const TuneSettings& settings) {
  std::vector<TriedSetting> tried = ParseTriedSettings(settings.tries);
  const RunCount count = CountOf(settings);
  CheckTuned(settings.config);
  const TrainConfig config = WithValues(settings.config, tried, FirstValues(tried));
  const DatasetDeclaration declaration = Declare(config.data);
  const TrainConfig completed = Completed(config, declaration);
  const Epsilon epsilon(*completed.privacy.epsilon);
  const Delta delta(*completed.privacy.delta);
  const SecretRuns tries = TriesOf(count, epsilon.value(), delta.value());
  const ReleaseOfRuns released = {.event = [&](Event run) { return BestOf(count, std::move(run)); },
                                  .runs = settings.expected,
                                  .failure = tries.Failure()};
  const std::optional<PrivacyPlan> plan =
      PrivacyPlan::ForBudget(PlanOptionsOf(completed, declaration), epsilon, delta, released);
  if (!plan) {
    throw Error(fmt::format(
        "no noise meets epsilon {:g} and delta {:g} with {} steps in each of {:g} tries; give a "
        "larger budget, fewer steps, fewer tries or a smaller batch.",
        epsilon.value(), delta.value(), *completed.training.steps, settings.expected));
  }
  PreparedTuning tuning{
      .run = internal::PrepareUntold(config, plan->noise().value(), /*local_rank=*/0),
      .tried = std::move(tried),
      .expected = settings.expected,
      .tries = tries,
      .event = released.EventOf(plan->event()),
      .failure = released.Failure(plan->Failure(plan->steps()))};
  CheckTriedValues(tuning);
  tuning.run.facts = FactsOf(tuning);
  return tuning;
}

std::optional<BudgetFilter> CheckLedger(const PreparedTuning& tuning) {
  const std::string& file = tuning.run.config.run.ledger;
  if (file.empty()) return std::nullopt;
  Ledger ledger = Ledger::Open(file);
  const RunDeclaration declaration = DeclarationOf(tuning);
  const Begun begun = ledger.Preview(declaration);
  if (!begun.verdict.admitted) RefuseTuning(tuning, begun.verdict);
  return ledger.filter().After(declaration.plan, declaration.failure, begun.terms);
}

TunedResult PlannedResult(const PreparedTuning& tuning) {
  TunedResult result;
  result.run = PlannedResult(tuning.run);
  result.run.renyi_epsilon.reset();  // that of one try
  return result;
}

TunedResult RunTuning(PreparedTuning& tuning, const TuningObserver& observer) {
  const std::unique_ptr<Generator> generator = Draws(tuning.run.config, kCountStep);
  return internal::RunTuningWith(tuning, tuning.tries.Draw(*generator), observer);
}

TunedResult internal::RunTuningWith(PreparedTuning& tuning, std::int64_t counted,
                                    const TuningObserver& observer) {
  const auto start = std::chrono::steady_clock::now();
  const StopGuard guard;
  PreparedRun& run = tuning.run;
  const std::filesystem::path place = ChooseRunFolder(run.config, std::time(nullptr));
  CheckLedger(tuning);
  std::vector<TryValues> values = DrawTries(tuning);
  RunObserver nobody;
  const Tries tries(tuning, std::move(values), internal::ReadData(run, nobody));
  tries.Look();
  if (StopGuard::Requested()) {
    throw Stopped("stopped before the first try; nothing was spent or written.");
  }

  RunFolder folder(place);
  WriteStatement(tuning, folder, run.facts);
  std::optional<Ledger> ledger;
  if (!run.config.run.ledger.empty()) {
    ledger.emplace(Ledger::Open(run.config.run.ledger));
    Charge(tuning, *ledger);
  }
  Best best = tries.Make(counted, observer);

  PreparedRun released = tries.Prepared(best.index);
  if (best.model != nullptr) released.model = std::move(best.model);
  TunedResult result = PlannedResult(tuning);
  result.chosen = tries.values(best.index);
  result.run.folder = place;
  StatementFacts& facts = result.run.facts;
  facts.state = RunState::kFinished;
  facts.plan = released.plan.Description();
  facts.tuning = TuningText(tuning, result.chosen);
  if (ledger) {
    ledger->Refresh();
    facts.ledger_epsilon = ledger->ComposedEpsilon();
    facts.ledger_head = ledger->head().hash;
    facts.ledger_seeded = ledger->SeededRuns();
  }
  WriteRun(tuning, tries, released, folder, result.run);
  result.run.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace sordino
