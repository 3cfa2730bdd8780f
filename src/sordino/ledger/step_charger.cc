#include "sordino/ledger/step_charger.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sordino/base/check.h"

namespace sordino {
namespace {

// A block is measured on the one before it, which may have been an unusual one.
constexpr std::int64_t kMaxGrowth = 64;

std::string StepWords(const StepCosts& costs, std::int64_t first, std::int64_t last) {
  return fmt::format("{} {} to {}", costs.unit, first, last - 1);
}

}  // namespace

StepCharger::StepCharger(Ledger& ledger, RunDeclaration run, StepCosts costs, std::int64_t steps,
                         StepChargerOptions options)
    : ledger_(ledger),
      declaration_(std::move(run)),
      costs_(std::move(costs)),
      steps_(steps),
      used_(0),
      reserved_(0),
      options_(std::move(options)) {
  declaration_.plan = costs_.event(0, steps_);
  declaration_.failure = costs_.failure(steps_);
  if (!options_.now) options_.now = std::chrono::steady_clock::now;
}

StepCharger::StepCharger(Ledger& ledger, std::string run, std::int64_t first, StepCosts costs,
                         std::int64_t steps, StepChargerOptions options)
    : ledger_(ledger),
      run_id_(std::move(run)),
      costs_(std::move(costs)),
      steps_(steps),
      used_(first),
      reserved_(first),
      options_(std::move(options)),
      block_first_(first) {
  if (!options_.now) options_.now = std::chrono::steady_clock::now;
}

std::int64_t StepCharger::NextBlock() const {
  const std::int64_t left = steps_ - reserved_;
  const std::int64_t made = used_ - block_first_;
  if (made <= 0) return std::min(left, options_.first_block);
  const double seconds = std::chrono::duration<double>(options_.now() - block_start_).count() /
                         static_cast<double>(made);
  const double target =
      std::max(options_.block.count(), options_.longest_in_charges * charge_seconds_);
  const double most = static_cast<double>(made > left / kMaxGrowth ? left : kMaxGrowth * made);
  // A clock that stands still makes the largest block.
  const double wanted = seconds > 0 ? target / seconds : most;
  return static_cast<std::int64_t>(std::clamp(wanted, 1.0, most));
}

LedgerCharge StepCharger::Block(std::int64_t last) const {
  return {.event = costs_.event(reserved_, last),
          .failure = costs_.failure(last - reserved_),
          .words = StepWords(costs_, reserved_, last)};
}

bool StepCharger::ChargeBlock(std::int64_t last) {
  Verdict verdict;
  if (run_id_.empty()) {
    const Begun begun = ledger_.BeginRun(declaration_, Block(last));
    verdict = begun.verdict;
    run_id_ = begun.id;
  } else {
    verdict = ledger_.Charge(run_id_, Block(last));
  }
  if (verdict.admitted) {
    reserved_ = last;
  } else {
    why_ = verdict.reason;
  }
  return verdict.admitted;
}

void StepCharger::BeginBlock(std::int64_t step) {
  block_first_ = step;
  block_start_ = options_.now();
}

// A refusal is not told here: the block is tried again, and halved, when its steps are due.
void StepCharger::Settle() {
  if (!pending_) return;
  Pending pending = *std::move(pending_);
  pending_.reset();
  try {
    if (pending.verdict.get().admitted) reserved_ = pending.last;
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void StepCharger::ChargeAhead(std::int64_t step) {
  const std::int64_t block = reserved_ - block_first_;
  if (!options_.ahead || failure_ || pending_ || reserved_ == steps_ ||
      2 * (step - block_first_) < block) {
    return;
  }
  const std::int64_t last = reserved_ + NextBlock();
  pending_.emplace(
      Pending{.last = last, .verdict = std::async(std::launch::async, [this, charge = Block(last)] {
                              return ledger_.Charge(run_id_, charge);
                            })});
}

bool StepCharger::Reserve(std::int64_t step) {
  SORDINO_CHECK(step == used_ && step < steps_, "steps are charged in their order");
  if (step == reserved_) {
    const bool was_pending = pending_.has_value();
    Settle();
    if (was_pending && step < reserved_) BeginBlock(step);
    if (failure_) std::rethrow_exception(failure_);
  }
  if (step == reserved_) {
    const std::chrono::steady_clock::time_point start = options_.now();
    for (std::int64_t block = NextBlock(); block > 0 && step == reserved_; block /= 2) {
      ChargeBlock(reserved_ + block);
    }
    if (step == reserved_) return false;
    BeginBlock(step);
    charge_seconds_ = std::chrono::duration<double>(block_start_ - start).count();
  }
  ChargeAhead(step);
  return true;
}

void StepCharger::Use(std::int64_t step) {
  SORDINO_CHECK(step == used_ && step < reserved_,
                "noise is drawn for a step that is not paid for");
  ++used_;
}

void StepCharger::HandBack() {
  Settle();
  if (failure_) {
    // Nothing can be handed back, and what is left was paid for as it was: the next step throws.
    reserved_ = used_;
    return;
  }
  if (used_ == reserved_) return;
  // Failures are not handed back: the probabilities of parts do not add up to that of the whole.
  ledger_.Return(run_id_, {.event = costs_.event(used_, reserved_),
                           .failure = 0,
                           .words = StepWords(costs_, used_, reserved_) + " were not made"});
  reserved_ = used_;
}

}  // namespace sordino
