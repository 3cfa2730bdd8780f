#include "sordino/runs/training_run.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <exception>
#include <utility>
#include <vector>

#include "sordino/accounting/renyi.h"
#include "sordino/base/error.h"
#include "sordino/base/stop.h"
#include "sordino/distributed/agreement.h"
#include "sordino/report/run_picture.h"
#include "sordino/runs/config_trainer.h"
#include "sordino/runs/distributed_run.h"
#include "sordino/runs/internal/audit_file.h"
#include "sordino/runs/internal/run_inputs.h"
#include "sordino/runs/internal/run_record.h"
#include "sordino/runs/internal/training_loop.h"
#include "sordino/runs/run_folder.h"
#include "sordino/training/canary_records.h"
#include "sordino/training/classification.h"

namespace sordino {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kNotRemembered =
    "this machine cannot remember how far the run's own ledger is spent, so two copies of its "
    "folder could both be resumed; set SORDINO_STATE to a folder that can be written to.";

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Stops that were asked for before the first step, on any rank.
void CheckStop(Communicator* communicator = nullptr) {
  const bool stop = communicator != nullptr ? AgreeToStop(*communicator) : StopGuard::Requested();
  if (stop) {
    throw Stopped("stopped before the first step; nothing was spent or written.");
  }
}

RunPictureText PictureText(const PreparedRun& run, const StatementFacts& facts) {
  RunPictureText text;
  text.title = fmt::format("{} on {}", run.config.ModelName(), run.declaration.name);
  text.caption = !HasNoise(run.privacy)
                     ? fmt::format("{} steps without privacy", facts.steps)
                     : fmt::format("epsilon at delta {:g}; {} steps, {} adjacency", facts.delta,
                                   facts.steps, AdjacencyName(facts.adjacency));
  if (run.privacy != RunPrivacy::kPrivate) text.warning = "NOT PRIVATE";
  return text;
}

std::string EventFile(const PreparedRun& run, const Event& event) {
  if (!HasNoise(run.privacy)) return "NOT PRIVATE\n";
  return fmt::format("{}{}\n", run.privacy == RunPrivacy::kSeeded ? "NOT PRIVATE\n" : "",
                     event.ToString());
}

std::string RecordFile(const PreparedRun& run, const StatementFacts& facts) {
  return internal::RunRecord(
      facts,
      {.device = run.device.str(),
       .failure = HasNoise(run.privacy) ? run.plan.Failure(run.plan.steps() + facts.lost_steps) : 0,
       .time = std::time(nullptr)});
}

std::unique_ptr<RunLedger> MakeRunLedger(const PreparedRun& run) {
  if (!HasNoise(run.privacy)) return nullptr;
  auto ledger = std::make_unique<RunLedger>(
      run.plan, fmt::format("train {} on {}", run.config.ModelName(), run.declaration.name),
      run.privacy == RunPrivacy::kPrivate);
  if (run.config.run.whole) ledger->AllowWhole();
  if (run.config.HasAdaptiveNoise()) ledger->UseFilter(Epsilon(*run.config.privacy.epsilon));
  return ledger;
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
  facts.ledger_seeded = ledger.ledger().SeededRuns();
}

// All records with what the fixed part of the model makes of them.
void ComputeFeatures(PreparedRun& run, internal::RunData& data, RunObserver& observer) {
  run.model->Train(false);
  double begin = 0;
  const auto replace = [&](Dataset& records, double share) {
    records = WithFeatures(records, *run.model, run.device, &data.feature_shape, [&](double done) {
      CheckStop();
      observer.OnFeatures(static_cast<int>(100 * (begin + share * done)));
    });
    begin += share;
  };
  if (data.canaries) replace(data.canaries->records, 0);
  replace(data.splits.train, data.splits.test ? 0.8 : 1);
  if (data.splits.test) replace(*data.splits.test, 0.2);
}

void RequireSameRecords(Communicator& communicator, const internal::RunData& data) {
  RequireSameData(communicator, data.splits.train);
  if (data.canaries) RequireSameCanaries(communicator, *data.canaries);
}

// What a crash would leave to be read: what the plan will have cost, with what earlier parts of the
// run took.
void WritePlanned(PreparedRun& run, const RunFolder& folder, RunLedger* ledger) {
  Event event = run.plan.event();
  if (run.resume && ledger != nullptr && run.facts.adaptive) {
    run.facts.lost_steps = ledger->lost_steps();
  } else if (run.resume && ledger != nullptr) {
    event = ledger->EventAfter(run.plan.steps());
    run.facts.epsilon = ledger->EpsilonAfter(run.plan.steps());
    run.facts.event = event.ToString();
    run.facts.lost_steps = ledger->lost_steps();
  }
  if (!run.resume || ledger != nullptr) folder.Write("event.txt", EventFile(run, event));
  folder.Write("statement.txt", Statement(run.facts));
  folder.Write("record.json", RecordFile(run, run.facts));
}

void CreateOwnLedger(const PreparedRun& run, const std::filesystem::path& place,
                     RunLedger& ledger) {
  const std::optional<double>& target = run.config.privacy.epsilon;
  ledger.CreateOwn(place / kLedgerFile, target ? std::optional<Epsilon>(*target) : std::nullopt);
}

std::optional<double> RenyiEpsilon(const PreparedRun& run, std::int64_t steps) {
  if (!HasNoise(run.privacy) || steps == 0) return std::nullopt;
  const Event event = run.plan.EventOf(steps);
  if (!RenyiInapplicable(event).empty()) return std::nullopt;
  return RenyiCurve(event).ToEpsilon(std::log(run.plan.delta().value())).epsilon;
}

RunResult ResultOf(const PreparedRun& run, const internal::TrainingLoop& loop, RunLedger* ledger,
                   RunObserver& observer, const std::optional<CanaryScores>& canaries) {
  RunResult result = PlannedResult(run);
  result.steps = loop.steps_done();
  result.interrupted = !loop.is_complete();
  result.stopped_by_ledger = !loop.refusal().empty();
  result.epsilon =
      ledger != nullptr ? ledger->CountedEpsilon(result.steps) : loop.Epsilon(result.steps);
  result.test_accuracy = loop.accuracy();
  result.test_error = loop.error();
  result.renyi_epsilon = RenyiEpsilon(run, result.steps);
  StatementFacts& facts = result.facts;
  facts.state = result.interrupted ? RunState::kInterrupted : RunState::kFinished;
  facts.steps = result.steps;
  facts.epsilon = result.epsilon;
  facts.steps_epsilon = loop.Epsilon(result.steps);
  facts.largest_epsilon = loop.Epsilon(run.plan.steps());
  facts.counts_whole = ledger != nullptr && ledger->CountsWhole();
  facts.stopped_by = loop.refusal();
  if (facts.adaptive) {
    for (const HeldOutMeasurement& one : loop.measurements()) {
      facts.adaptive->levels.push_back({.step = one.step, .count = one.count, .noise = one.noise});
    }
  }
  if (canaries) {
    result.audit = AuditRun(*canaries, run.config.run.canary_kind, Epsilon(result.epsilon.upper),
                            Delta(result.delta));
    facts.audit = AuditSentence(*result.audit);
  }
  if (ledger == nullptr || loop.failure() != nullptr) return result;
  try {
    WriteLedgerFacts(facts, *ledger, result.steps);
  } catch (const std::exception& error) {
    // All steps were paid for. What the ledger holds beside them is not known now.
    observer.OnNotice(error.what());
  }
  return result;
}

void WriteResult(const PreparedRun& run, const RunFolder& folder, internal::TrainingLoop& loop,
                 RunLedger* ledger, RunResult& result, const std::string& inputs,
                 const std::optional<CanaryScores>& canaries) {
  const std::string statement = Statement(result.facts);
  folder.Write("event.txt", EventFile(run, ledger != nullptr ? ledger->CountedEvent(result.steps)
                                                             : run.plan.event()));
  folder.Write("accuracy-and-epsilon.svg", RunSvg(loop.points(), PictureText(run, result.facts)));
  folder.Write("statement.txt", statement);
  folder.Write("record.json", RecordFile(run, result.facts));
  if (const auto answers = loop.Predictions()) {
    folder.Write("predictions.json", answers->file);
    result.test_quality = answers->quality;
  }
  if (result.audit) {
    folder.Write("audit.json", internal::AuditFile(*result.audit, *canaries));
  }
  // A model of all steps is what says that the run has ended.
  loop.Save(folder.path() / "model.safetensors", {.name = run.config.ModelName(),
                                                  .data = run.declaration,
                                                  .privacy = run.privacy,
                                                  .epsilon = result.epsilon,
                                                  .delta = result.delta,
                                                  .steps = result.steps,
                                                  .statement = statement,
                                                  .inputs = inputs});
  if (!result.interrupted) RemoveCheckpoints(folder.path() / kCheckpointFolder);
  // The limit that it shows is asked of the accountant anew, and the model does not wait for that.
  if (result.audit) {
    folder.Write("audit.svg", AuditSvg(*result.audit, *canaries, run.plan.event()));
  }
}

}  // namespace

internal::RunData internal::ReadData(PreparedRun& run, RunObserver& observer) {
  RunData data{.splits = OpenData(run.config.data)};
  data.test_records = TestRecordsOf(run.config.data, data.splits);
  CheckStop();
  const RunSettings& settings = run.config.run;
  if (settings.canaries > 0 && AreRecords(settings.canary_kind)) {
    data.canaries = MakeCanaryRecords(settings.canary_kind, settings.canaries, run.declaration,
                                      data.splits.test);
  }
  run.facts.has_test = data.splits.test.has_value();
  if (run.model->HasFeatures()) ComputeFeatures(run, data, observer);
  return data;
}

RunResult PlannedResult(const PreparedRun& run) {
  RunResult result;
  result.epsilon = run.facts.epsilon;
  result.delta = run.facts.delta;
  result.renyi_epsilon = RenyiEpsilon(run, run.plan.steps());
  result.noise_multiplier = HasNoise(run.privacy) ? run.plan.noise().value() : 0;
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
  internal::RunData data = internal::ReadData(run, observer);
  if (run.communicator != nullptr) {
    RequireSameRecords(*run.communicator, data);
    CheckStop(run.communicator);
  }
  internal::TrainingLoop loop(run, observer, std::move(data), ledger.get());
  if (run.resume) loop.ResumeFrom(run.resume->checkpoint, ReadMetrics(place));
  CheckStop();

  std::optional<RunFolder> made;
  if (!run.resume) made.emplace(place);
  const std::string inputs = run.resume ? CheckInputs(place) : KeepInputs(place, run.config);
  if (!run.resume && ledger && run.config.run.ledger.empty()) CreateOwnLedger(run, place, *ledger);
  if (ledger && !ledger->IsRemembered()) observer.OnNotice(kNotRemembered);
  RunFolder& folder = run.resume ? run.resume->folder : *made;
  WritePlanned(run, folder, ledger.get());
  observer.OnStart();
  loop.Run(folder);
  if (ledger && ledger->run().empty() && loop.failure() == nullptr) {
    // Another run took what was left since it was looked at. Nothing was made, so nothing stays.
    made.reset();
    std::filesystem::remove_all(place);
    throw Error(fmt::format(
        "the ledger '{}' does not admit a single step of this run: {}; nothing was released.",
        run.config.run.ledger, loop.refusal()));
  }

  std::optional<CanaryScores> canaries;
  if (run.config.run.canaries > 0 && loop.is_complete()) {
    canaries = loop.CanariesScored();
  }
  RunResult result = ResultOf(run, loop, ledger.get(), observer, canaries);
  result.folder = folder.path();
  if (run.measures_risk) result.risk = loop.Risk();
  WriteResult(run, folder, loop, ledger.get(), result, inputs, canaries);
  result.seconds = SecondsSince(start);
  if (loop.failure() != nullptr) {
    observer.OnNotice(fmt::format("the model of the {} steps that were made is in '{}'.",
                                  result.steps, folder.path().string()));
    std::rethrow_exception(loop.failure());
  }
  return result;
}

void ServeTraining(PreparedRun& run) {
  const StopGuard guard;  // all ranks stop together
  RunObserver nobody;
  internal::RunData data = internal::ReadData(run, nobody);
  RequireSameRecords(*run.communicator, data);
  CheckStop(run.communicator);
  TrainerOptions options;
  options.loader.device = run.device;
  options.insecure_seed = run.config.run.insecure_seed;
  if (!data.canaries) options.canaries = run.config.run.canaries;
  options.canary_records = std::move(data.canaries);
  options.communicator = run.communicator;
  run.model->Train(false);  // the first losses of canaries
  Trainer trainer = MakeTrainer(run.config, run.plan, *run.model, data.feature_shape,
                                data.splits.train, std::move(options));
  run.model->Train(true);
  trainer.Serve();
}

}  // namespace sordino
