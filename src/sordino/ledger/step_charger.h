// Charges the steps of a run in blocks, so that a sync is not paid for at every step.
//
//   while (step < steps && charger.Reserve(step)) { ... charger.Use(step); draw noise ... }
//   charger.HandBack();
//
// A block is charged and durable before the first of its steps is made. It covers about a second of
// training (StepChargerOptions), so a crash costs a second or two of training. The ledger takes
// almost no time: once half of a block is used, a second thread charges the next one while training
// continues. Near the end of a budget blocks are halved until one fits, so that the last step that
// can be paid for is made.
//
// While a charge is under way the ledger belongs to that thread: call Settle() before any other use
// of it.
#ifndef SORDINO_LEDGER_STEP_CHARGER_H_
#define SORDINO_LEDGER_STEP_CHARGER_H_

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <string>

#include "sordino/ledger/ledger.h"

namespace sordino {

// What the steps [first, last) release together, and the probability of what is not in it.
struct StepCosts {
  std::function<Event(std::int64_t first, std::int64_t last)> event;
  std::function<double(std::int64_t steps)> failure;
  std::string unit = "steps";  // what they are called in the ledger
};

struct StepChargerOptions {
  std::int64_t first_block = 8;
  std::chrono::duration<double> block{1.0};  // of training
  double longest_in_charges = 20;            // but at least so many times what a charge takes
  bool ahead = true;                         // by a thread, while the block before is used
  std::function<std::chrono::steady_clock::time_point()> now = {};  // empty: the steady clock
};

class StepCharger {
 public:
  // A run that begins: its plan is costs.event(0, steps). Nothing is written before the first
  // Reserve.
  StepCharger(Ledger& ledger, RunDeclaration run, StepCosts costs, std::int64_t steps,
              StepChargerOptions options = {});
  // A run that is resumed at step `first`, which is charged again whatever was charged before.
  StepCharger(Ledger& ledger, std::string run, std::int64_t first, StepCosts costs,
              std::int64_t steps, StepChargerOptions options = {});

  StepCharger(const StepCharger&) = delete;
  StepCharger& operator=(const StepCharger&) = delete;

  // Makes sure that the step is charged. Steps come in their order. False: the ledger refuses, and
  // why() says it.
  bool Reserve(std::int64_t step);
  // Right before the noise of the step is drawn. Stops the program unless the step was reserved and
  // is the next one.
  void Use(std::int64_t step);
  // Returns what was reserved and not used. After an exception of the ledger it returns nothing,
  // because nobody knows what was charged.
  void HandBack();
  // Waits for a charge that is under way. What went wrong in it is thrown when its steps are due.
  void Settle();

  const std::string& why() const { return why_; }
  const std::string& run() const { return run_id_; }  // empty before the first block

 private:
  // A charge that is under way: of the steps up to `last`.
  struct Pending {
    std::int64_t last;
    std::future<Verdict> verdict;
  };
  std::int64_t NextBlock() const;
  LedgerCharge Block(std::int64_t last) const;
  bool ChargeBlock(std::int64_t last);
  void BeginBlock(std::int64_t step);
  void ChargeAhead(std::int64_t step);

  Ledger& ledger_;
  RunDeclaration declaration_;
  std::string run_id_;
  StepCosts costs_;
  std::int64_t steps_;
  std::int64_t used_;      // the next step to use
  std::int64_t reserved_;  // steps below are charged
  StepChargerOptions options_;
  std::chrono::steady_clock::time_point block_start_;
  std::int64_t block_first_ = 0;
  double charge_seconds_ = 0;
  std::string why_;
  std::exception_ptr failure_;      // of a charge ahead
  std::optional<Pending> pending_;  // last: its thread ends before what it uses
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_STEP_CHARGER_H_
