// The part of a run in which something is spent: steps, evaluations, checkpoints.
#ifndef SORDINO_RUNS_INTERNAL_TRAINING_LOOP_H_
#define SORDINO_RUNS_INTERNAL_TRAINING_LOOP_H_

#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sordino/data/dataset.h"
#include "sordino/report/run_picture.h"
#include "sordino/runs/internal/test_predictions.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/run_ledger.h"
#include "sordino/runs/training_risk.h"
#include "sordino/runs/training_run.h"
#include "sordino/training/canary_records.h"
#include "sordino/training/classification.h"
#include "sordino/training/trainer.h"

namespace sordino::internal {

// The name of a parameter that holds an infinity or something that is not a number; empty where
// there is none.
std::string NonFiniteWeight(const Model& model);

// Data as the model is trained on them.
struct RunData {
  DataSplits splits;
  std::optional<CanaryRecords> canaries = {};  // of a kind that is data
  FeatureShape feature_shape = {};  // where a fixed part of the model was applied already
  TestRecords test_records = {};
};

// Those of the run's settings, with the features of its model. Throws Stopped.
RunData ReadData(PreparedRun& run, RunObserver& observer);

class TrainingLoop {
 public:
  // Without privacy there is no ledger.
  TrainingLoop(PreparedRun& run, RunObserver& observer, RunData data, RunLedger* ledger);

  // After what a checkpoint and the rows of the metrics up to it say.
  void ResumeFrom(const Checkpoint& checkpoint, const std::vector<MetricsRow>& rows);
  // Until all steps are made, a stop is asked for, or the ledger refuses or fails. A run that is
  // not complete leaves a checkpoint.
  void Run(RunFolder& folder);

  std::int64_t steps_done() const { return trainer_.steps_done(); }
  const std::vector<RunPoint>& points() const { return points_; }
  std::optional<double> accuracy() const { return accuracy_; }
  const std::optional<PredictionError>& error() const { return error_; }
  // Whether it has ended: all steps are made, or the epsilon of adaptive noise is spent.
  bool is_complete() const;
  std::vector<HeldOutMeasurement> measurements() const { return trainer_.measurements(); }
  // Why the ledger ended it; empty where it did not.
  const std::string& refusal() const { return refusal_; }
  // What the ledger threw; null where it did not. No noise was drawn after it.
  std::exception_ptr failure() const { return failure_; }
  Interval Epsilon(std::int64_t steps) const;
  // By the model that is released; the attack with the last of them needs it in evaluation mode.
  CanaryScores CanariesScored();

  void Save(const std::filesystem::path& file, const ModelRecord& record);
  // What the model that is saved says about the test set; empty where nothing may be said.
  std::optional<TestAnswers> Predictions();
  // Of the model that is saved, on public data.
  TrainingRisk Risk();

 private:
  using Clock = std::chrono::steady_clock;

  Trainer MakeTrainer(std::optional<CanaryRecords> canaries);
  bool IsPaidFor(std::int64_t step);
  bool MakeStep();
  bool AfterStep(std::int64_t steps);
  void CheckWeights() const;
  void LogMetrics();
  void ReportStep(std::int64_t steps);
  void WriteState();
  double Seconds() const;

  PreparedRun& run_;
  RunObserver& observer_;
  Dataset train_;
  std::optional<Dataset> test_;
  std::optional<Dataset> test_on_device_;  // the same, where it is evaluated
  TestRecords test_records_;
  FeatureShape feature_shape_;
  RunLedger* ledger_;
  Trainer trainer_;
  RunFolder* folder_ = nullptr;
  std::int64_t first_step_ = 0;
  double earlier_seconds_ = 0;
  Clock::time_point start_;
  Clock::time_point checkpoint_time_;
  std::int64_t checkpoint_step_ = -1;
  Clock::time_point epsilon_time_;
  Clock::duration epsilon_pause_ = std::chrono::seconds(2);
  std::optional<double> epsilon_;
  std::optional<double> accuracy_;
  std::optional<PredictionError> error_;
  std::vector<RunPoint> points_;
  std::string refusal_;
  std::exception_ptr failure_;
};

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_TRAINING_LOOP_H_
