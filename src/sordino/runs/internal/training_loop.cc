#include "sordino/runs/internal/training_loop.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <stdexcept>
#include <utility>

#include "sordino/base/stop.h"
#include "sordino/data/batch_loader.h"
#include "sordino/runs/config_trainer.h"
#include "sordino/runs/train_settings.h"

namespace sordino::internal {
namespace {

constexpr std::chrono::minutes kCheckpointPause(1);

}  // namespace

std::string NonFiniteWeight(const Model& model) {
  const at::NoGradGuard no_grad;
  const auto parameters = model.Parameters();
  if (parameters.empty()) return "";
  std::vector<at::Tensor> are_finite;
  are_finite.reserve(parameters.size());
  for (const auto& [name, value] : parameters) are_finite.push_back(at::isfinite(value).all());
  const at::Tensor read = at::stack(are_finite).cpu();  // all at once
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    if (!read[static_cast<std::int64_t>(k)].item<bool>()) return parameters[k].first;
  }
  return "";
}

TrainingLoop::TrainingLoop(PreparedRun& run, RunObserver& observer, RunData data, RunLedger* ledger)
    : run_(run),
      observer_(observer),
      train_(std::move(data.splits.train)),
      test_(std::move(data.splits.test)),
      test_records_(std::move(data.test_records)),
      feature_shape_(std::move(data.feature_shape)),
      ledger_(ledger),
      trainer_(MakeTrainer(std::move(data.canaries))) {
  if (test_) test_on_device_ = KeptOnDevice(*test_, run_.device);
}

Trainer TrainingLoop::MakeTrainer(std::optional<CanaryRecords> canaries) {
  run_.model->Train(false);  // the first losses of canaries
  TrainerOptions options;
  options.loader.device = run_.device;
  options.insecure_seed = run_.config.run.insecure_seed;
  options.communicator = run_.communicator;
  if (!canaries) options.canaries = run_.config.run.canaries;
  options.canary_records = std::move(canaries);
  if (ledger_ != nullptr) {
    options.charge = [this](std::int64_t step, const Event& event) { ledger_->Use(step, event); };
  }
  if (run_.config.HasAdaptiveNoise()) {
    options.held_out.emplace();
    options.held_out->admits = [this](const PrivacyPlan& plan, std::int64_t step) {
      return ledger_->AdmitsWith(plan, step);
    };
  }
  return sordino::MakeTrainer(run_.config, run_.plan, *run_.model, feature_shape_, train_,
                              std::move(options));
}

void TrainingLoop::ResumeFrom(const Checkpoint& checkpoint, const std::vector<MetricsRow>& rows) {
  NamedTensors state = checkpoint.tensors;
  std::erase_if(state, [](const auto& entry) { return entry.first.starts_with(kFrozenPrefix); });
  run_.model->Train(true);
  trainer_.RestoreState(state, checkpoint.facts.step);
  if (ledger_ != nullptr) ledger_->ChangeNoise(trainer_.plan());
  first_step_ = checkpoint.facts.step;
  earlier_seconds_ = checkpoint.facts.seconds;
  checkpoint_step_ = checkpoint.facts.step;
  for (const MetricsRow& row : rows) {
    RunPoint point;
    point.step = row.step;
    if (row.epsilon) point.epsilon = row.epsilon->upper;
    point.accuracy = row.test_accuracy;
    points_.push_back(point);
    accuracy_ = row.test_accuracy;
    error_ = row.test_error;
  }
}

CanaryScores TrainingLoop::CanariesScored() {
  const Optimizer::AveragedWeights averaged(trainer_.optimizer());
  run_.model->Train(false);
  return trainer_.canary_scores();
}

Interval TrainingLoop::Epsilon(std::int64_t steps) const {
  if (ledger_ == nullptr) return {kInfinity, kInfinity};
  return ledger_->EpsilonAfter(steps);
}

// Durably, when it says true.
bool TrainingLoop::IsPaidFor(std::int64_t step) {
  if (ledger_ == nullptr) return true;
  try {
    if (ledger_->Reserve(step)) return true;
    if (!ledger_->is_spent()) refusal_ = ledger_->why();
  } catch (const std::exception& error) {
    // What was made so far was paid for: it is kept, and the run ends here.
    failure_ = std::current_exception();
    refusal_ = error.what();
    while (!refusal_.empty() && refusal_.back() == '.') refusal_.pop_back();
  }
  return false;
}

// A run that fails in its middle leaves steps that were charged and for which no noise was drawn.
// False: a stop was asked for.
bool TrainingLoop::MakeStep() {
  try {
    trainer_.Step();
    if (ledger_ != nullptr) ledger_->ChangeNoise(trainer_.plan());
    return AfterStep(trainer_.steps_done());
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    try {
      if (ledger_ != nullptr) ledger_->HandBack();
    } catch (const std::exception&) {
      // They stay charged; what stopped the step is what people have to know.
    }
    std::rethrow_exception(why);
  }
}

void TrainingLoop::Run(RunFolder& folder) {
  folder_ = &folder;
  start_ = Clock::now();
  checkpoint_time_ = start_;
  run_.model->Train(true);
  bool go_on = true;
  while (go_on && trainer_.steps_done() < run_.plan.steps() && IsPaidFor(trainer_.steps_done())) {
    // Whatever happens to the first steps, the folder says which run of the ledger it is.
    if (checkpoint_step_ < 0) WriteState();
    go_on = MakeStep();
  }
  if (ledger_ != nullptr && failure_ == nullptr) {
    if (ledger_->run().empty()) return;  // not a step was admitted
    ledger_->HandBack();
  }
  CheckWeights();
  if (!is_complete() && checkpoint_step_ != trainer_.steps_done()) WriteState();
  // The run ended between two evaluations.
  if (points_.empty() || points_.back().step != trainer_.steps_done()) LogMetrics();
}

bool TrainingLoop::is_complete() const {
  return steps_done() == run_.plan.steps() || (ledger_ != nullptr && ledger_->is_spent());
}

bool TrainingLoop::AfterStep(std::int64_t steps) {
  const bool last = steps == run_.plan.steps();
  const bool stop = StopGuard::Requested();
  const bool look = stop || last || steps % run_.config.run.evaluate_every == 0;
  const std::int64_t every = run_.config.run.checkpoint_every;
  const bool is_time =
      every > 0 ? steps % every == 0 : Clock::now() - checkpoint_time_ > kCheckpointPause;
  // What is not a model is neither measured nor kept.
  if (look || is_time) CheckWeights();
  if (look) LogMetrics();
  if (is_time && !last) WriteState();
  ReportStep(steps);
  return !stop;
}

void TrainingLoop::CheckWeights() const {
  const std::string name = NonFiniteWeight(*run_.model);
  if (name.empty()) return;
  throw std::runtime_error(
      fmt::format("after {} steps a weight of '{}' is not a finite number, so there is no model; "
                  "the steps stay "
                  "charged. Give a smaller --lr, --weight-decay or --clip.",
                  trainer_.steps_done(), name));
}

double TrainingLoop::Seconds() const {
  return earlier_seconds_ + std::chrono::duration<double>(Clock::now() - start_).count();
}

void TrainingLoop::WriteState() {
  Checkpoint checkpoint;
  CheckpointFacts& facts = checkpoint.facts;
  facts.step = trainer_.steps_done();
  facts.seconds = std::floor(Seconds());
  if (ledger_ != nullptr) {
    facts.noise = run_.plan.noise().value();
    facts.plan = run_.plan.event().ToString();
    facts.ledger = ledger_->ledger().id();
    facts.run = ledger_->run();
    facts.head = ledger_->ledger().head().hash;
  }
  checkpoint.tensors = trainer_.SaveState();
  for (const auto& [name, value] : run_.model->Parameters()) {
    if (!value.requires_grad()) {
      checkpoint.tensors.emplace_back(kFrozenPrefix + name, value.detach().cpu().contiguous());
    }
  }
  WriteCheckpoint(folder_->path() / kCheckpointFolder, checkpoint);
  checkpoint_step_ = facts.step;
  checkpoint_time_ = Clock::now();
}

void TrainingLoop::LogMetrics() {
  MetricsRow row;
  row.is_private = run_.privacy == RunPrivacy::kPrivate;
  row.step = trainer_.steps_done();
  std::future<Interval> epsilon;  // computed while the model is evaluated
  if (ledger_ != nullptr) {
    epsilon = std::async(std::launch::async, [this, &row] { return Epsilon(row.step); });
  }
  if (test_) {
    const Optimizer::AveragedWeights averaged(trainer_.optimizer());
    run_.model->Train(false);
    const TestMetrics metrics =
        Evaluate(*run_.model, *test_on_device_, run_.device, feature_shape_);
    run_.model->Train(true);
    row.test_accuracy = metrics.accuracy;
    row.test_loss = metrics.loss;
    row.test_error = metrics.error;
    accuracy_ = metrics.accuracy;
    error_ = metrics.error;
  }
  if (epsilon.valid()) {
    row.epsilon = epsilon.get();
    epsilon_ = row.epsilon->upper;
    epsilon_time_ = Clock::now();
  }
  // Whole seconds: finer ones would tell the sizes of batches.
  row.seconds = std::floor(Seconds());
  folder_->AppendMetrics(row);
  RunPoint point;
  point.step = row.step;
  if (row.epsilon) point.epsilon = row.epsilon->upper;
  point.accuracy = row.test_accuracy;
  points_.push_back(point);
}

void TrainingLoop::ReportStep(std::int64_t steps) {
  // Accounting takes its time, more for schedules, and other ranks wait meanwhile: at most a
  // hundredth of the run, and at most every two seconds.
  const Clock::time_point now = Clock::now();
  if (ledger_ != nullptr && now - epsilon_time_ > epsilon_pause_) {
    epsilon_ = Epsilon(steps).upper;
    epsilon_time_ = Clock::now();
    epsilon_pause_ =
        std::max<Clock::duration>(std::chrono::seconds(2), 100 * (epsilon_time_ - now));
  }
  StepReport report;
  report.step = steps;
  report.steps = run_.plan.steps();
  report.epsilon = epsilon_;
  report.test_accuracy = accuracy_;
  report.test_error = error_;
  // By whole seconds, as everything that tells a time.
  if (const double seconds = std::floor(Seconds() - earlier_seconds_); seconds > 0) {
    report.examples_per_second =
        run_.plan.options().batch * static_cast<double>(steps - first_step_) / seconds;
  }
  observer_.OnStep(report);
}

std::optional<TestAnswers> TrainingLoop::Predictions() {
  if (!test_) return std::nullopt;
  const Optimizer::AveragedWeights averaged(trainer_.optimizer());
  run_.model->Train(false);
  std::optional<TestAnswers> answers =
      TestPredictions(*run_.model, *test_, feature_shape_, test_records_, run_.device);
  run_.model->Train(true);
  return answers;
}

TrainingRisk TrainingLoop::Risk() {
  const Optimizer::AveragedWeights averaged(trainer_.optimizer());
  run_.model->Train(false);
  const auto measured = [&](const Dataset& data) {
    return Evaluate(*run_.model, data, run_.device, feature_shape_);
  };
  TrainingRisk risk{.empirical = measured(train_), .test = {}, .excess = {}, .bound = {}};
  if (test_) risk.test = measured(*test_);
  run_.model->Train(true);
  return risk;
}

void TrainingLoop::Save(const std::filesystem::path& file, const ModelRecord& record) {
  const Optimizer::AveragedWeights averaged(trainer_.optimizer());
  SaveModel(file, *run_.model, record);
}

}  // namespace sordino::internal
