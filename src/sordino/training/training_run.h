// A whole run: from a configuration to a trained model and its run folder.
//
//   PreparedRun run = PrepareRun(config);         // reads no private data, spends nothing
//   RunResult result = RunTraining(run, observer);
//
// Everything that can be wrong is found before the first step, which is the first thing that is
// spent. A SIGINT or SIGTERM ends the run after the step in hand with everything written. Only
// public values leave: numbers of the plan, metrics on the public test set, times.
#ifndef SORDINO_TRAINING_TRAINING_RUN_H_
#define SORDINO_TRAINING_TRAINING_RUN_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "sordino/data/dataset.h"
#include "sordino/models/model.h"
#include "sordino/training/privacy_plan.h"
#include "sordino/training/statement.h"
#include "sordino/training/train_config.h"

namespace sordino {

struct PreparedRun {
  TrainConfig config;  // completed
  DatasetDeclaration declaration;
  c10::Device device = c10::kCPU;
  std::unique_ptr<Model> model;
  PrivacyPlan plan;
  RunPrivacy privacy = RunPrivacy::kPrivate;
  StatementFacts facts;  // planned
};

// Declares the data, makes the model, finds the noise, and tries a clipped step on made-up inputs.
// Throws Error for every mistake that can be known without the data.
PreparedRun PrepareRun(const TrainConfig& config);

struct StepReport {
  std::int64_t step = 0;  // made so far
  std::int64_t steps = 0;
  std::optional<double> epsilon;  // upper bound, a little behind; absent without privacy
  std::optional<double> test_accuracy;
  double examples_per_second = 0;  // declared batch size, not the private actual one
};

// Who is told how it goes.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  // Features of a fixed part of the model are computed, in percent.
  virtual void OnFeatures(int percent) { static_cast<void>(percent); }
  // Everything is in place; the first step comes next.
  virtual void OnStart() {}
  virtual void OnStep(const StepReport& report) { static_cast<void>(report); }
};

struct RunResult {
  std::filesystem::path folder;
  Interval epsilon;  // infinite without privacy
  double delta = 0;
  double noise_multiplier = 0;  // 0 without privacy
  double sampling_rate = 0;
  std::int64_t steps = 0;
  std::optional<double> test_accuracy;
  double seconds = 0;
  bool is_private = false;
  bool interrupted = false;
  StatementFacts facts;
};

RunResult RunTraining(PreparedRun& run, RunObserver& observer);

// What a run of this plan would be, without its folder: for a dry run.
RunResult PlannedResult(const PreparedRun& run);

}  // namespace sordino

#endif  // SORDINO_TRAINING_TRAINING_RUN_H_
