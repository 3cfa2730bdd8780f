#include "sordino/runs/program_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <exception>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/device/precision.h"
#include "sordino/models/safetensors.h"
#include "sordino/report/run_picture.h"
#include "sordino/runs/internal/audit_file.h"
#include "sordino/runs/internal/run_inputs.h"
#include "sordino/runs/internal/run_plan.h"
#include "sordino/runs/internal/run_record.h"
#include "sordino/runs/run_audit.h"
#include "sordino/runs/run_ledger.h"
#include "sordino/training/canary_records.h"

namespace sordino {
namespace {

// Beside those of [privacy]: what is not of the data, the model, the optimizer, the device or the
// folder.
constexpr std::array<std::string_view, 16> kProgramSettings = {
    "records",    "batch",       "epochs",        "steps",          "norms",    "jl-directions",
    "jl-failure", "ledger",      "whole",         "physical-batch", "fallback", "precision",
    "canaries",   "canary-kind", "insecure-seed", "curator"};

TrainConfig Checked(TrainConfig config, const std::string& model) {
  config.data.source = "records of a program";
  config.model.name = model;
  if (!config.AddsNoise()) {
    throw Error(
        "a run without noise is not private and needs no Sordino; train the model as usual.");
  }
  if (config.HasAdaptiveNoise()) {
    throw Error(
        "adaptive noise holds records out of a dataset that Sordino has read, and these are those "
        "of a program; give another noise schedule.");
  }
  if (config.run.canaries > 0 && AreRecords(config.run.canary_kind)) {
    throw Error(fmt::format(
        "the canaries '{}' are records, which only a dataset can have that Sordino has read; give "
        "canary kind 'dirac'.",
        config.run.canary_kind));
  }
  return config;
}

DatasetDeclaration Declared(const TrainConfig& config, const Batch& form) {
  DatasetDeclaration declaration;
  declaration.name = config.data.source;
  declaration.kind = InputKind::kFeatures;
  declaration.records = config.data.records;
  declaration.normalisation.source = "the program";
  if (!form.empty()) declaration.shape = form.front().sizes().slice(1).vec();
  return declaration;
}

}  // namespace

bool IsProgramSetting(std::string_view section, std::string_view key) {
  if (section == "privacy") return true;
  return std::find(kProgramSettings.begin(), kProgramSettings.end(), key) != kProgramSettings.end();
}

struct ProgramRun::State {
  State(const TrainConfig& settings, std::string name, const Batch& form,
        std::optional<double> noise)
      : model(std::move(name)),
        config(Checked(settings, model)),
        declaration(Declared(config, form)) {
    config = Completed(std::move(config), declaration);
    precision = ParsePrecision("--precision", config.training.precision);
    plan.emplace(internal::MakePlan(config, declaration, noise));
    // As on the command line: a folder may change.
    if (!config.run.ledger.empty()) {
      config.run.ledger = std::filesystem::absolute(config.run.ledger).lexically_normal().string();
    }
    facts = internal::PlannedFacts(config, declaration, *plan, model);
  }

  void OpenLedger(const std::optional<Checkpoint>& resume) {
    if (config.run.ledger.empty()) {
      if (!resume) return;
      throw Error(
          "a run without a ledger cannot be resumed, because nothing says how far it is spent; "
          "name a ledger.");
    }
    ledger = std::make_unique<RunLedger>(*plan, fmt::format("train {} on {}", model, facts.data),
                                         facts.privacy == RunPrivacy::kPrivate);
    if (config.run.whole) ledger->AllowWhole();
    if (!resume) {
      ledger->OpenNamed(config.run.ledger);
      return;
    }
    if (plan->event().ToString() != resume->facts.plan) {
      throw Error(
          "the checkpoint is one of another plan; resume a run with the settings that it began "
          "with.");
    }
    ledger->Rejoin(config.run.ledger, /*is_own=*/false, resume->facts);
  }

  Trainer MakeTrainer(std::vector<NamedParameter> parameters, const ProgramRecords& records,
                      UpdateFunction update) {
    TrainerOptions options;
    options.gradients = GradientOptionsOf(config);
    // The batch that the model sees is one record: there is no other meaning to compare with.
    options.gradients.compare = false;
    options.insecure_seed = config.run.insecure_seed;
    options.canaries = config.run.canaries;
    if (ledger) {
      options.charge = [this](std::int64_t step, const Event& event) { ledger->Use(step, event); };
    }
    return {*plan,   std::move(parameters), [this](const Batch& batch) { return (*losses)(batch); },
            records, std::move(update),     std::move(options)};
  }

  bool IsPaidFor(std::int64_t step) {
    if (!ledger || ledger->Reserve(step)) return true;
    refusal = ledger->why();
    return false;
  }

  Interval EpsilonAfter(std::int64_t steps) const {
    if (ledger) return ledger->EpsilonAfter(steps);
    return steps == 0 ? Interval{0, 0} : plan->Epsilon(steps);
  }

  std::string model;
  TrainConfig config;  // completed
  DatasetDeclaration declaration;
  Precision precision = {};
  std::optional<PrivacyPlan> plan;
  StatementFacts facts;  // planned
  std::unique_ptr<RunLedger> ledger;
  const LossFunction* losses = nullptr;  // of the step in hand
  bool has_looked = false;
  std::optional<Trainer> trainer;
  std::string refusal;
  std::vector<MetricsRow> rows;
};

ProgramRun::ProgramRun(const TrainConfig& config, std::string model,
                       std::vector<NamedParameter> parameters, const ProgramRecords& records,
                       UpdateFunction update, const std::optional<Checkpoint>& resume)
    : state_(std::make_unique<State>(
          config, std::move(model), records.form,
          resume ? std::optional<double>(resume->facts.noise) : std::nullopt)) {
  State& s = *state_;
  s.OpenLedger(resume);
  s.trainer.emplace(s.MakeTrainer(std::move(parameters), records, std::move(update)));
  if (resume) s.trainer->RestoreState(resume->tensors, resume->facts.step);
}

// What was charged ahead goes back; where that fails it stays charged.
ProgramRun::~ProgramRun() {
  try {
    HandBack();
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

bool ProgramRun::Step(const LossFunction& losses) {
  State& s = *state_;
  const std::int64_t step = s.trainer->steps_done();
  if (step == s.plan->steps()) return false;
  s.losses = &losses;
  const ScopedPrecision precision(s.precision);
  if (!std::exchange(s.has_looked, true)) s.trainer->Look();
  if (!s.IsPaidFor(step)) return false;
  try {
    s.trainer->Step();
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    try {
      HandBack();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // They stay charged; what stopped the step is what people have to know.
    }
    std::rethrow_exception(why);
  }
  if (s.trainer->steps_done() == s.plan->steps()) HandBack();
  return true;
}

const PrivacyPlan& ProgramRun::plan() const { return *state_->plan; }
std::int64_t ProgramRun::steps_done() const { return state_->trainer->steps_done(); }
bool ProgramRun::is_private() const { return state_->trainer->is_private(); }
const std::string& ProgramRun::refusal() const { return state_->refusal; }

Event ProgramRun::SpentEvent() {
  State& s = *state_;
  return s.ledger ? s.ledger->CountedEvent(steps_done()) : s.plan->EventOf(steps_done());
}

Interval ProgramRun::SpentEpsilon() {
  State& s = *state_;
  return s.ledger ? s.ledger->CountedEpsilon(steps_done()) : s.EpsilonAfter(steps_done());
}

StatementFacts ProgramRun::Facts() {
  State& s = *state_;
  StatementFacts facts = s.facts;
  const std::int64_t steps = steps_done();
  facts.state = steps == s.plan->steps() ? RunState::kFinished : RunState::kInterrupted;
  facts.steps = steps;
  facts.epsilon = SpentEpsilon();
  facts.steps_epsilon = s.EpsilonAfter(steps);
  facts.largest_epsilon = s.EpsilonAfter(s.plan->steps());
  facts.event = SpentEvent().ToString();
  facts.stopped_by = s.refusal;
  facts.has_test = std::any_of(s.rows.begin(), s.rows.end(), [](const MetricsRow& row) {
    return row.test_accuracy || row.test_loss;
  });
  if (s.config.run.canaries > 0 && facts.state == RunState::kFinished) {
    facts.audit = AuditSentence(AuditRun(s.trainer->canary_scores(), s.config.run.canary_kind,
                                         Epsilon(facts.epsilon.upper), s.plan->delta()));
  }
  if (s.ledger) {
    facts.counts_whole = s.ledger->CountsWhole();
    facts.lost_steps = s.ledger->lost_steps();
    s.ledger->ledger().Refresh();
    facts.ledger_epsilon = s.ledger->ledger().ComposedEpsilon();
    facts.ledger_head = s.ledger->ledger().head().hash;
    facts.ledger_seeded = s.ledger->ledger().SeededRuns();
  }
  return facts;
}

void ProgramRun::Log(std::optional<double> accuracy, std::optional<double> loss) {
  MetricsRow row;
  row.is_private = is_private();
  row.step = steps_done();
  row.epsilon = state_->EpsilonAfter(row.step);
  row.test_accuracy = accuracy;
  row.test_loss = loss;
  state_->rows.push_back(row);
}

void ProgramRun::HandBack() {
  if (state_->ledger && !state_->ledger->run().empty()) state_->ledger->HandBack();
}

Checkpoint ProgramRun::Checkpointed() {
  State& s = *state_;
  if (!s.ledger) {
    throw Error(
        "a run without a ledger cannot be resumed, because nothing says how far it is spent; name "
        "a ledger.");
  }
  if (s.ledger->run().empty()) throw Error("the run has made no step, so nothing is to be saved.");
  Checkpoint checkpoint;
  checkpoint.facts = {.step = steps_done(),
                      .noise = s.plan->noise().value(),
                      .plan = s.plan->event().ToString(),
                      .ledger = s.ledger->ledger().id(),
                      .run = s.ledger->run(),
                      .head = s.ledger->ledger().head().hash};
  checkpoint.tensors = s.trainer->SaveState();
  return checkpoint;
}

void ProgramRun::Save(const std::filesystem::path& path, const NamedTensors& weights) {
  State& s = *state_;
  HandBack();
  const StatementFacts facts = Facts();
  RunFolder folder(path);
  TrainConfig kept = s.config;
  kept.data.source.clear();
  const std::string inputs = KeepInputs(path, kept);
  const std::string warning = facts.privacy == RunPrivacy::kPrivate ? "" : "NOT PRIVATE\n";
  folder.Write("event.txt", warning + facts.event + '\n');
  const std::string statement = Statement(facts);
  folder.Write("statement.txt", statement);
  folder.Write(
      "record.json",
      internal::RunRecord(
          facts, {.device = weights.empty() ? "cpu" : weights.front().second.device().str(),
                  .failure = s.plan->Failure(s.plan->steps() + facts.lost_steps),
                  .time = std::time(nullptr)}));
  if (s.rows.empty() || s.rows.back().step != steps_done()) Log({}, {});
  std::vector<RunPoint> points;
  for (const MetricsRow& row : s.rows) {
    folder.AppendMetrics(row);
    RunPoint& point = points.emplace_back();
    point.step = row.step;
    point.epsilon = row.epsilon->upper;
    point.accuracy = row.test_accuracy;
  }
  RunPictureText text;
  text.title = fmt::format("{} on {}", s.model, facts.data);
  text.caption = fmt::format("epsilon at delta {:g}; {} steps, {} adjacency", facts.delta,
                             facts.steps, AdjacencyName(facts.adjacency));
  if (!warning.empty()) text.warning = "NOT PRIVATE";
  folder.Write("accuracy-and-epsilon.svg", RunSvg(points, text));
  if (!facts.audit.empty()) {
    const CanaryScores scores = s.trainer->canary_scores();
    const RunAudit audit =
        AuditRun(scores, s.config.run.canary_kind, Epsilon(facts.epsilon.upper), s.plan->delta());
    folder.Write("audit.json", internal::AuditFile(audit, scores));
    folder.Write("audit.svg", AuditSvg(audit, scores, s.plan->event()));
  }
  NamedTensors saved;
  for (const auto& [name, value] : weights) {
    saved.emplace_back(name, value.detach().cpu().contiguous());
  }
  WriteSafetensors(path / "model.safetensors", saved,
                   ModelMetadata({.name = s.model,
                                  .data = s.declaration,
                                  .privacy = facts.privacy,
                                  .epsilon = facts.epsilon,
                                  .delta = facts.delta,
                                  .steps = facts.steps,
                                  .statement = statement,
                                  .inputs = inputs}));
}

}  // namespace sordino
