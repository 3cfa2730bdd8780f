// A whole run: from a configuration to a trained model and its run folder.
//
//   PreparedRun run = PrepareRun(config);         // reads no private data, spends nothing
//   RunResult result = RunTraining(run, observer);
//
// Everything that can be wrong is found before the first step, which is the first thing that is
// spent. Every step is charged to a ledger before its noise is drawn (run_ledger.h). A SIGINT or
// SIGTERM, and a ledger that refuses, end the run after the step in hand with everything written;
// after a crash the newest checkpoint is there. Either can be resumed:
//
//   PreparedRun run = PrepareResume(folder);
//
// Only public values leave: numbers of the plan, metrics on the public test set, times.
#ifndef SORDINO_RUNS_TRAINING_RUN_H_
#define SORDINO_RUNS_TRAINING_RUN_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sordino/data/dataset.h"
#include "sordino/models/model.h"
#include "sordino/report/class_quality.h"
#include "sordino/runs/checkpoint.h"
#include "sordino/runs/run_audit.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/run_ledger.h"
#include "sordino/runs/statement.h"
#include "sordino/runs/train_config.h"
#include "sordino/runs/training_risk.h"
#include "sordino/training/privacy_plan.h"

namespace sordino {

class Communicator;

// Where a run is resumed.
struct ResumePoint {
  RunFolder folder;
  Checkpoint checkpoint;
};

struct PreparedRun {
  TrainConfig config;  // completed
  DatasetDeclaration declaration;
  c10::Device device = c10::kCPU;
  std::unique_ptr<Model> model;
  PrivacyPlan plan;
  RunPrivacy privacy = RunPrivacy::kPrivate;
  StatementFacts facts;  // planned
  std::optional<ResumePoint> resume;
  // The ranks that train together, of which this is rank 0; null: this process alone
  // (distributed_run.h). It lives longer.
  Communicator* communicator = nullptr;
  bool measures_risk = false;  // runs/training_risk.h; the data are public then
};

// Declares the data, makes the model, finds the noise, and tries a clipped step on made-up inputs.
// Throws Error for every mistake that can be known without the data. local_rank: which of the ranks
// on this machine prepares it; it chooses the GPU (ParseDevice).
PreparedRun PrepareRun(const TrainConfig& config, int local_rank = 0);
// The same for the folder of a run that did not end, which is locked from now on. Throws Error for
// one that ended, is still running, or cannot be resumed.
PreparedRun PrepareResume(const std::filesystem::path& folder, int local_rank = 0);

struct StepReport {
  std::int64_t step = 0;  // made so far
  std::int64_t steps = 0;
  std::optional<double> epsilon;  // upper bound, a little behind; absent without privacy
  std::optional<double> test_accuracy;
  std::optional<PredictionError> test_error;
  double examples_per_second = 0;  // declared batch size, not the private actual one
};

// Called with the progress of a run.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // Features of a fixed part of the model are computed, in percent.
  virtual void OnFeatures(int percent) { static_cast<void>(percent); }
  // A sentence that people should read.
  virtual void OnNotice(const std::string& sentence) { static_cast<void>(sentence); }
  // Everything is in place; the first step comes next.
  virtual void OnStart() {}
  virtual void OnStep(const StepReport& report) { static_cast<void>(report); }
};

struct RunResult {
  std::filesystem::path folder;
  Interval epsilon;  // what the ledger counts; infinite without privacy
  double delta = 0;
  // Of the same steps by Renyi divergences alone, which is how the literature's figures count; none
  // without privacy, and where the event has no Renyi curve.
  std::optional<double> renyi_epsilon;
  double noise_multiplier = 0;  // 0 without privacy
  double sampling_rate = 0;
  std::int64_t steps = 0;
  std::optional<double> test_accuracy;        // of classes
  std::optional<PredictionError> test_error;  // of a number
  std::optional<ClassQuality> test_quality;   // of classes, where predictions.json is written
  std::optional<TrainingRisk> risk;           // where it was asked for
  double seconds = 0;
  bool is_private = false;
  bool interrupted = false;
  bool stopped_by_ledger = false;
  std::optional<RunAudit> audit;  // of a run with canaries that made all of its steps
  StatementFacts facts;
};

RunResult RunTraining(PreparedRun& run, RunObserver& observer);
// On the other ranks: until rank 0 has ended.
void ServeTraining(PreparedRun& run);

// What a run of this plan would be, without its folder: for a dry run.
RunResult PlannedResult(const PreparedRun& run);
// What the ledger that was named says of the plan now; nullopt where none was.
std::optional<LedgerOutlook> LookAtLedger(const PreparedRun& run);
// That outlook as a sentence, where there is something to say.
std::string OutlookSentence(const LedgerOutlook& outlook, std::int64_t steps,
                            const std::string& ledger);

namespace internal {

// With the noise multiplier of a plan that was made before.
PreparedRun PrepareWithNoise(const TrainConfig& config, std::optional<double> noise,
                             int local_rank);
// The same without `facts`: one of several runs, of which a single statement tells.
PreparedRun PrepareUntold(const TrainConfig& config, std::optional<double> noise, int local_rank);
// What another rank than rank 0 needs of a run that rank 0 has prepared: no ledger, nothing to
// tell.
PreparedRun PrepareServing(const TrainConfig& config, double noise, int local_rank);

}  // namespace internal

}  // namespace sordino

#endif  // SORDINO_RUNS_TRAINING_RUN_H_
