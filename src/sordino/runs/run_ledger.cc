#include "sordino/runs/run_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "sordino/accounting/failures.h"
#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/ledger/data_description.h"
#include "sordino/training/adaptive_noise.h"

namespace sordino {
namespace {

// Of a run that is only thought of.
constexpr const char* kTrial = "trial";

bool HaveSameBytes(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(one, none) ||
      !std::filesystem::is_regular_file(other, none)) {
    return false;
  }
  const auto size = std::filesystem::file_size(one, none);
  return !none && size > 0 && size == std::filesystem::file_size(other, none) && !none &&
         Sha256HexOfFile(one) == Sha256HexOfFile(other);
}

// What such a file says is written down without noise. `what` is "the test file", or what else it
// is called.
void CheckPublicFile(const DataFile& file, std::string_view what,
                     const std::vector<DataFile>& training,
                     std::string_view use = "accuracy and loss are computed from it") {
  const auto refuse = [&](std::string_view reason) {
    throw Error(fmt::format("{} '{}' {}, and {} without noise; give public records.", what,
                            file.path, reason, use));
  };
  if (const auto ledger = LedgerOfData(std::filesystem::path(file.path))) {
    refuse(fmt::format("is private: it has the ledger '{}'", ledger->string()));
  }
  for (const DataFile& other : training) {
    std::error_code none;
    if (std::filesystem::equivalent(other.path, file.path, none) && !none) {
      refuse("is the training file");
    }
    // Two sets of other records may have equal labels.
    if (file.role == kTestRecords && other.role == kTrainingRecords &&
        HaveSameBytes(other.path, file.path)) {
      refuse("is a copy of the training file");
    }
  }
}

std::vector<DataFile> PrivateFilesOf(const DataRequest& data) {
  std::vector<DataFile> files = FilesOf(data);
  std::erase_if(files, [](const DataFile& file) { return file.is_public; });
  return files;
}

// Those that are still where they were.
std::vector<DataFile> TrainingFilesOf(const DataRequest& trained_on) {
  try {
    return PrivateFilesOf(trained_on);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

void CheckTestFiles(const DataRequest& data) {
  const std::vector<DataFile> training = PrivateFilesOf(data);
  for (const DataFile& file : FilesOf(data)) {
    if (file.is_public) CheckPublicFile(file, "the test file", training);
  }
}

void CheckPublicRecords(const DataRequest& records, const DataRequest& trained_on) {
  if (IsDatasetName(records.source)) return;
  const std::vector<DataFile> training = TrainingFilesOf(trained_on);
  for (DataFile file : PrivateFilesOf(records)) {
    if (file.role == kTrainingRecords) file.role = kTestRecords;
    CheckPublicFile(file, "the file", training);
  }
}

void CheckPublicSample(const std::string& sample, const std::string& source) {
  std::vector<DataFile> training;
  if (!source.empty()) training.push_back({.path = source, .role = kTrainingRecords});
  CheckPublicFile({.path = sample, .role = kTestRecords}, "the public sample", training,
                  "types, bounds and values are read off it");
}

std::string LedgerOfData(const std::string& asked, const DataRequest& data) {
  CheckTestFiles(data);
  std::vector<std::filesystem::path> files;
  for (const DataFile& file : PrivateFilesOf(data)) files.emplace_back(file.path);
  const std::optional<std::filesystem::path> ledger = ChooseLedger(asked, files);
  return ledger ? std::filesystem::absolute(*ledger).lexically_normal().string() : std::string();
}

RunLedger::RunLedger(const PrivacyPlan& plan, std::string what, bool is_private)
    : plan_(plan), current_(plan), what_(std::move(what)), is_private_(is_private) {}

void RunLedger::UseFilter(Epsilon epsilon) {
  filter_.emplace(FilterOf(plan_, epsilon));
  claimed_epsilon_ = epsilon.value();
}

bool RunLedger::AdmitsWith(const PrivacyPlan& plan, std::int64_t step) {
  const std::int64_t last = std::min(step + plan.options().held_out->every, plan.steps());
  return filter_->Admits(plan.EventOf(step, last));
}

void RunLedger::ChangeNoise(const PrivacyPlan& plan) {
  if (plan.noise().value() == current_.noise().value()) return;
  SORDINO_CHECK(filter_.has_value(), "the noise of a plan that is fixed in advance was changed");
  charger_->HandBack();
  current_ = plan;
}

RunDeclaration RunLedger::Declaration() const {
  return {.what = what_,
          .plan = plan_.event(),
          .failure = plan_.Failure(plan_.steps()),
          .unit = plan_.options().rows_per_user > 0 ? ProtectedUnit::kUser : ProtectedUnit::kRecord,
          .is_private = is_private_,
          .is_adaptive = filter_.has_value(),
          .may_count_whole = may_count_whole_};
}

// The charger counts events: steps, or epochs of an allocation.
StepCosts RunLedger::Costs() const {
  const std::int64_t steps = plan_.StepsPerEvent();
  return {.event =
              [this, steps](std::int64_t first, std::int64_t last) {
                return current_.EventOf(first * steps, std::min(last * steps, plan_.steps()));
              },
          .failure = [this, steps](std::int64_t events) { return plan_.Failure(events * steps); },
          .unit = steps == 1 ? "steps" : "epochs"};
}

StepChargerOptions RunLedger::ChargerOptions() const {
  StepChargerOptions options;
  options.first_block = std::max<std::int64_t>(1, options.first_block / plan_.StepsPerEvent());
  return options;
}

std::int64_t RunLedger::Events() const { return (plan_.steps() - 1) / plan_.StepsPerEvent() + 1; }

bool RunLedger::Reserve(std::int64_t step) {
  const bool fits = !filter_ || filter_->Admits(current_.StepEvent(step));
  if (fits &&
      (!plan_.BeginsCharge(step, first_) || charger_->Reserve(step / plan_.StepsPerEvent())))
    return true;
  // A ledger of its own has the same budget.
  is_spent_ = filter_ && (!fits || is_own_);
  return false;
}

void RunLedger::Use(std::int64_t step, const Event& released) {
  if (filter_) {
    SORDINO_CHECK(released == current_.StepEvent(step),
                  "a step releases something other than what was reserved for it");
    SORDINO_CHECK(filter_->Charge(released), "a step passes the filter of its run");
    used_.push_back(released);
  }
  const std::int64_t event = step / plan_.StepsPerEvent();
  if (plan_.BeginsCharge(step, first_)) {
    charger_->Use(event);
    used_event_ = event;
  }
  SORDINO_CHECK(event == used_event_, "noise is drawn for a step of an epoch that is not paid for");
}

// How many steps from `first` on the ledger admits as things stand; Error where it is none.
void RunLedger::FindOutlook(std::int64_t first) {
  BudgetFilter trial = ledger_->filter();
  std::string run = charger_ ? charger_->run() : "";
  if (run.empty()) {
    const RunDeclaration declaration = Declaration();
    const RunTerms terms = TermsOf(trial, declaration);
    if (terms.needs_whole) {
      throw Error(fmt::format(
          "the ledger '{}' refuses the run, because {}; allow it to count whole (whole = true in "
          "the section run, or --whole) if that is meant.",
          ledger_->file().string(),
          trial.AdmitsPlan(declaration.plan, declaration.failure, terms).reason));
    }
    trial.BeginRun(kTrial, declaration.plan, terms);
    run = kTrial;
  }
  outlook_.counts_whole = trial.whole_run() == run;
  const auto admits = [&](std::int64_t steps) {
    const Verdict verdict =
        trial.Admits(run, plan_.EventOf(first, first + steps), plan_.Failure(steps));
    if (!verdict.admitted) outlook_.reason = verdict.reason;
    return verdict.admitted;
  };
  std::int64_t fits = plan_.steps() - first;
  if (!admits(fits)) {
    std::int64_t too_many = fits;
    fits = 0;
    while (too_many - fits > 1) {
      const std::int64_t middle = fits + (too_many - fits) / 2;
      (admits(middle) ? fits : too_many) = middle;
    }
  }
  outlook_.admitted_steps = fits;
  if (fits > 0) {
    trial.Charge(run, plan_.EventOf(first, first + fits), plan_.Failure(fits));
    outlook_.after = std::move(trial);
    return;
  }
  throw Error(
      fmt::format("the ledger '{}' does not admit a single step of this run: {}; nothing was "
                  "released ('sordino ledger show' says what is left).",
                  ledger_->file().string(), outlook_.reason));
}

WitnessUse RunLedger::OwnWitness() const {
  return is_private_ ? WitnessUse::kWherePossible : WitnessUse::kNone;
}

void RunLedger::OpenNamed(const std::filesystem::path& file) {
  ledger_.emplace(Ledger::Open(file));
  ledger_->Preview(Declaration());  // throws for another adjacency or unit
  FindOutlook(0);
  charger_.emplace(*ledger_, Declaration(), Costs(), Events(), ChargerOptions());
}

void RunLedger::CreateOwn(const std::filesystem::path& file, std::optional<Epsilon> target) {
  is_own_ = true;
  const RunDeclaration declaration = Declaration();
  Budget budget;
  budget.epsilon = target && is_private_ ? *target : Epsilon(kInfinity);
  budget.delta = plan_.delta();
  budget.adjacency = plan_.options().adjacency;
  budget.unit = declaration.unit;
  if (filter_ && filter_->kind() == PrivacyFilter::Kind::kGaussian) {
    budget.filter = FilterKind::kGaussian;
  } else if (filter_) {
    budget.order = RenyiOrder(filter_->order());
  }
  // The two filters are one: nothing else is charged to this ledger.
  if (filter_) budget.loss_share = 0;
  ledger_.emplace(Ledger::Create(file, budget, {.witness = OwnWitness()}));
  FindOutlook(0);
  charger_.emplace(*ledger_, declaration, Costs(), Events(), ChargerOptions());
}

void RunLedger::Rejoin(const std::filesystem::path& file, bool is_own,
                       const CheckpointFacts& facts) {
  is_own_ = is_own;
  ledger_.emplace(Ledger::Open(file, {.witness = is_own ? OwnWitness() : WitnessUse::kNeeded}));
  if (ledger_->id() != facts.ledger || !ledger_->Contains(facts.head)) {
    throw Error(fmt::format(
        "the ledger '{}' is not the one that the run was charged to, or an older copy of it; put "
        "back the newest copy.",
        file.string()));
  }
  ledger_->Rejoin(facts.run, plan_.event().ToString());
  first_ = facts.step;
  before_ = ledger_->filter().TotalOf(facts.run);
  lost_steps_ = StepsIn(*before_) - facts.step;
  if (filter_ && !filter_->Charge(*before_)) {
    throw Error(fmt::format(
        "the run has spent its epsilon of {:g}, those steps included that a crash took; there is "
        "nothing to resume.",
        claimed_epsilon_));
  }
  charger_.emplace(*ledger_, facts.run, facts.step / plan_.StepsPerEvent(), Costs(), Events(),
                   ChargerOptions());
  FindOutlook(facts.step);
}

// Measurements of held-out records are releases, and not steps.
std::int64_t RunLedger::StepsIn(const Event& charged) const {
  auto steps = static_cast<std::int64_t>(charged.TotalCount()) * plan_.StepsPerEvent();
  if (!filter_) return steps;
  for (const auto& [release, count] : charged.Flatten()) {
    if (release == plan_.MeasurementEvent()) steps -= static_cast<std::int64_t>(count);
  }
  return steps;
}

Ledger& RunLedger::ledger() {
  if (charger_) charger_->Settle();
  return *ledger_;
}

Event RunLedger::EventAfter(std::int64_t steps) const {
  if (filter_) {
    std::vector<Event> all = used_;
    if (before_) all.push_back(*before_);
    return Event::Compose(std::move(all), plan_.options().adjacency);
  }
  if (!before_) return plan_.EventOf(steps);
  return Event::Compose({*before_, plan_.EventOf(first_, steps)}, plan_.options().adjacency);
}

Interval RunLedger::EpsilonAfter(std::int64_t steps) const {
  if (steps + lost_steps_ == 0) return {0, 0};
  if (filter_) return {0, filter_->SpentEpsilon()};
  return SpentEpsilon(EventAfter(steps), plan_.delta(), plan_.Failure(steps + lost_steps_));
}

// Another run may have begun after the outlook was made, so the ledger is asked.
bool RunLedger::CountsWhole() { return !run().empty() && ledger().filter().whole_run() == run(); }

Event RunLedger::CountedEvent(std::int64_t steps) {
  return CountsWhole() ? plan_.event() : EventAfter(steps);
}

Interval RunLedger::CountedEpsilon(std::int64_t steps) {
  if (filter_) return {0, claimed_epsilon_};
  return CountsWhole() ? plan_.Epsilon(plan_.steps()) : EpsilonAfter(steps);
}

}  // namespace sordino
