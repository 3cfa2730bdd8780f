// A private run inside of a program, which has the model, the records, the loss and the optimizer:
// the plan, the charges, the noise and the statement are those of `sordino train`.
//
//   ProgramRun run(config, "resnet18", parameters, records, update);
//   while (run.Step(losses)) { ... }
//   run.Save("runs/mine", weights);
//
// Settings are those of `train` (train_settings.h), less those of data, model and optimizer. The
// records are the program's and so is their number: what is declared is `data.records`.
//
// Without a ledger the run counts itself alone, and cannot be resumed: nothing outlives the process
// that would say how far it is spent.
#ifndef SORDINO_RUNS_PROGRAM_RUN_H_
#define SORDINO_RUNS_PROGRAM_RUN_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/runs/checkpoint.h"
#include "sordino/runs/run_folder.h"
#include "sordino/runs/statement.h"
#include "sordino/runs/train_config.h"
#include "sordino/training/privacy_plan.h"
#include "sordino/training/trainer.h"

namespace sordino {

// Whether a setting of `train` is one of a run in a program.
bool IsProgramSetting(std::string_view section, std::string_view key);

class ProgramRun {
 public:
  // `model` is a name for the statement. A checkpoint is one of Checkpointed(). Throws Error for
  // every mistake that can be known before the first step, one in the loss excepted.
  ProgramRun(const TrainConfig& config, std::string model, std::vector<NamedParameter> parameters,
             const ProgramRecords& records, UpdateFunction update,
             const std::optional<Checkpoint>& resume = std::nullopt);
  ~ProgramRun();
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  // One step with these losses, one for each record. False: all steps are made, or the ledger
  // refuses (refusal()). Throws Error, before anything is charged, where gradients by record cannot
  // be computed, which is found out with made-up records. After an exception the run is used up.
  bool Step(const LossFunction& losses);

  const PrivacyPlan& plan() const;
  std::int64_t steps_done() const;
  bool is_private() const;
  // Why the ledger ended the run; a clause. Empty where it did not.
  const std::string& refusal() const;
  // What the run has cost so far, or what the ledger counts for it.
  Event SpentEvent();
  Interval SpentEpsilon();
  StatementFacts Facts();

  // What a public test set says now, for metrics.jsonl and the picture.
  void Log(std::optional<double> accuracy, std::optional<double> loss);

  // Returns what was charged ahead to the ledger. Steps may follow.
  void HandBack();
  // What a later run goes on from, beside what the program's optimizer remembers. Throws Error
  // without a ledger.
  Checkpoint Checkpointed();
  // The run folder, with these weights. Throws Error where it exists.
  void Save(const std::filesystem::path& folder, const NamedTensors& weights);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sordino

#endif  // SORDINO_RUNS_PROGRAM_RUN_H_
