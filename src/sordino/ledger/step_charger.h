// Charges the steps of a run in blocks, so that a sync is not paid for at every step.
//
//   while (step < steps && charger.Reserve(step)) { ... charger.Use(step); draw noise ... }
//   charger.HandBack();
//
// A block is charged and durable before the first of its steps is made. It covers about a second of
// training (Options), so a crash costs what a second of training costs, and the ledger next to no
// time. Near the end of a budget blocks are halved until one fits, so that the last step that can
// be paid for is made.
#ifndef SORDINO_LEDGER_STEP_CHARGER_H_
#define SORDINO_LEDGER_STEP_CHARGER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "sordino/ledger/ledger.h"

namespace sordino {

// What the steps [first, last) release together, and the probability of what is not in it.
struct StepCosts {
  std::function<Event(std::int64_t first, std::int64_t last)> event;
  std::function<double(std::int64_t steps)> failure;
};

struct StepChargerOptions {
  std::int64_t first_block = 8;
  std::chrono::duration<double> block{1.0};  // of training
  double longest_in_charges = 200;           // but at least so many times what a charge takes
  std::function<std::chrono::steady_clock::time_point()> now = {};  // empty: the steady clock
};

class StepCharger {
 public:
  // A run that begins: its plan is costs.event(0, steps). Nothing is written before the first
  // Reserve.
  StepCharger(Ledger& ledger, RunDeclaration run, StepCosts costs, std::int64_t steps,
              StepChargerOptions options = {});
  // A run that goes on at `first`, which is charged again whatever was charged before.
  StepCharger(Ledger& ledger, std::string run, std::int64_t first, StepCosts costs,
              std::int64_t steps, StepChargerOptions options = {});

  // Makes sure that the step is charged. Steps come in their order. False: the ledger refuses, and
  // why() says it.
  bool Reserve(std::int64_t step);
  // Right before the noise of the step is drawn. Stops the program unless the step was reserved and
  // is the next one.
  void Use(std::int64_t step);
  // What was reserved and not used. Not after an exception: then nobody knows.
  void HandBack();

  const std::string& why() const { return why_; }
  const std::string& run() const { return run_id_; }  // empty before the first block
  const RunTerms& terms() const { return terms_; }

 private:
  std::int64_t NextBlock() const;
  bool ChargeBlock(std::int64_t last);

  Ledger& ledger_;
  RunDeclaration declaration_;
  std::string run_id_;
  RunTerms terms_;
  StepCosts costs_;
  std::int64_t steps_;
  std::int64_t used_;      // the next step to use
  std::int64_t reserved_;  // steps below are charged
  StepChargerOptions options_;
  std::chrono::steady_clock::time_point block_start_;
  std::int64_t block_first_ = 0;
  double charge_seconds_ = 0;
  std::string why_;
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_STEP_CHARGER_H_
