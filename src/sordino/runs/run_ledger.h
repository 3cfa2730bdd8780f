// What a training run and its ledger have to do with each other.
//
// A private run always has a ledger: the one that was named, or one of its own in its folder, whose
// budget is the epsilon that was asked for (or infinite where the noise was given instead, and for
// seeded runs, which have no privacy to keep).
//
// A run whose noise is adaptive has a filter of its own beside the ledger's
// (training/adaptive_noise.h): the ledger keeps the budget of all runs, and this filter the epsilon
// that the run claims.
#ifndef SORDINO_RUNS_RUN_LEDGER_H_
#define SORDINO_RUNS_RUN_LEDGER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sordino/accounting/filter.h"
#include "sordino/data/catalog.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/step_charger.h"
#include "sordino/runs/checkpoint.h"
#include "sordino/training/privacy_plan.h"

namespace sordino {

// The file of the ledger that was asked for, or that a description beside private files of the data
// names; empty where there is neither. Absolute: a run may be resumed from another folder.
// Checks the test files.
std::string LedgerOfData(const std::string& asked, const DataRequest& data);

// What is computed of public records has no noise. Throws Error for a test file that has a ledger,
// that is a training file, or that has the bytes of one.
void CheckTestFiles(const DataRequest& data);
// The same for records that were said to be public, beside the training files of a model, as far as
// these are still there.
void CheckPublicRecords(const DataRequest& records, const DataRequest& trained_on);

// The same for a file that declarations are made from, beside the table that they are for; empty:
// none.
void CheckPublicSample(const std::string& sample, const std::string& source);

// In the folder of a run that named none.
inline constexpr const char* kLedgerFile = "ledger.db";

// What a ledger makes of a plan.
struct LedgerOutlook {
  std::int64_t admitted_steps = 0;  // of those that are to come
  bool counts_whole = false;        // budget_filter.h
  std::string reason;               // why not all; a clause
  // The ledger's filter with the steps that are admitted.
  std::optional<BudgetFilter> after = {};
};

class RunLedger {
 public:
  // `what` is "train cnn-mnist on mnist". The plan must outlive it.
  RunLedger(const PrivacyPlan& plan, std::string what, bool is_private);

  // It was asked for that the run counts whole where nothing else admits its plan.
  void AllowWhole() { may_count_whole_ = true; }
  // For adaptive noise, before anything else: the run claims this epsilon.
  void UseFilter(Epsilon epsilon);
  // Whether the filter has place for the steps from `step` to the next measurement with this plan.
  bool AdmitsWith(const PrivacyPlan& plan, std::int64_t step);
  // The noise of the next steps was lowered: what was charged for them is handed back.
  void ChangeNoise(const PrivacyPlan& plan);

  // A run that begins. Named: throws Error where not a single step is admitted.
  void OpenNamed(const std::filesystem::path& file);
  void CreateOwn(const std::filesystem::path& file, std::optional<Epsilon> target);
  // A run that is resumed after `facts.step` steps. Throws Error where the ledger is another one or
  // an older copy, and where not a single step is admitted.
  void Rejoin(const std::filesystem::path& file, bool is_own, const CheckpointFacts& facts);

  const LedgerOutlook& outlook() const { return outlook_; }

  // As those of StepCharger. What is charged at once is whole events of the plan: with random
  // allocation all steps of an epoch, before its first one, and again before the first one of a run
  // that is resumed inside an epoch.
  bool Reserve(std::int64_t step);
  // `event` is what the trainer is about to release. Stops the program where it was not paid for.
  void Use(std::int64_t step, const Event& event);
  void HandBack() { charger_->HandBack(); }
  const std::string& why() const { return charger_->why(); }
  // Adaptive noise: the next step was more than what is left of the epsilon that the run claims.
  bool is_spent() const { return is_spent_; }
  const std::string& run() const { return charger_->run(); }  // empty before the first charge
  // Waits for a charge that is under way.
  Ledger& ledger();
  bool is_own() const { return is_own_; }
  // Whether this machine refuses older copies of it. Seeded runs have no privacy to keep, and may
  // be repeated.
  bool IsRemembered() { return !is_private_ || ledger().HasWitness(); }

  // What the run has cost when `steps` steps are made, those of earlier parts that were charged and
  // lost included. Adaptive noise: what was used so far, and the epsilon of a filter that would
  // have ended here.
  Event EventAfter(std::int64_t steps) const;
  Interval EpsilonAfter(std::int64_t steps) const;
  // What the ledger counts for the run when `steps` steps are made: the same, or the whole plan
  // where the run counts whole (budget_filter.h). Adaptive noise: the epsilon of the filter, which
  // holds wherever the run stopped.
  bool CountsWhole();
  Event CountedEvent(std::int64_t steps);
  Interval CountedEpsilon(std::int64_t steps);
  // Steps that were charged and are not part of the run: a crash took their result, or they are the
  // rest of an epoch that was begun again.
  std::int64_t lost_steps() const { return lost_steps_; }

 private:
  RunDeclaration Declaration() const;
  StepCosts Costs() const;
  StepChargerOptions ChargerOptions() const;
  std::int64_t StepsIn(const Event& charged) const;
  std::int64_t Events() const;  // of the whole plan
  void FindOutlook(std::int64_t first);
  WitnessUse OwnWitness() const;

  const PrivacyPlan& plan_;
  PrivacyPlan current_;  // with the noise of the next steps
  std::string what_;
  bool is_private_;
  bool is_own_ = false;
  bool may_count_whole_ = false;
  std::optional<Ledger> ledger_;
  std::optional<StepCharger> charger_;
  LedgerOutlook outlook_;
  std::int64_t first_ = 0;
  std::int64_t used_event_ = -1;  // the last one that noise was drawn for
  std::optional<Event> before_;   // charged by earlier parts of the run
  std::int64_t lost_steps_ = 0;
  // Of adaptive noise.
  std::optional<PrivacyFilter> filter_;
  double claimed_epsilon_ = 0;
  std::vector<Event> used_;  // by this part of the run
  bool is_spent_ = false;
};

}  // namespace sordino

#endif  // SORDINO_RUNS_RUN_LEDGER_H_
