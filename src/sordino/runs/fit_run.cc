#include "sordino/runs/fit_run.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <utility>

#include "sordino/base/csv_field.h"
#include "sordino/base/error.h"
#include "sordino/base/stop.h"
#include "sordino/data/batch_loader.h"
#include "sordino/ledger/ledger.h"
#include "sordino/mechanisms/calibration.h"
#include "sordino/mechanisms/integer_noise.h"
#include "sordino/report/coefficient_picture.h"
#include "sordino/runs/internal/fit_features.h"
#include "sordino/runs/internal/fit_steps.h"
#include "sordino/runs/internal/run_inputs.h"
#include "sordino/runs/internal/run_record.h"
#include "sordino/runs/internal/test_predictions.h"
#include "sordino/runs/run_folder.h"
#include "sordino/theory/empirical_risk.h"

namespace sordino {
namespace {

constexpr double kConfidence = 0.95;

// So many fits of an approximate method have place in what a ledger keeps for losses.
constexpr double kFitsInLosses = 64;

RunDeclaration DeclarationOf(const PreparedFit& fit) {
  return {.what = fmt::format("fit {} on {} by {}", fit.settings.model, fit.declaration.name,
                              fit.plan->method.name),
          .plan = internal::EventOf(fit),
          .failure = internal::FailureOf(fit),
          .unit = fit.declaration.rows_per_user > 0 ? ProtectedUnit::kUser : ProtectedUnit::kRecord,
          .is_private = fit.privacy == RunPrivacy::kPrivate,
          .may_count_whole = fit.settings.whole};
}

// As the ledger's filter counts it best; where that is not admitted, at the epsilon and delta that
// were asked for.
RunDeclaration LedgerDeclaration(const PreparedFit& fit, Ledger& ledger) {
  const RunDeclaration asked = DeclarationOf(fit);
  if (fit.selection) return asked;
  const Budget& budget = ledger.budget();
  const Delta loss(budget.delta.value() * budget.loss_share / kFitsInLosses);
  const CountedFit counted = CountedBy(*fit.plan, loss);
  RunDeclaration declaration = asked;
  declaration.plan = counted.event;
  declaration.failure = counted.failure;
  declaration.may_count_whole = false;
  const Begun begun = ledger.Preview(declaration);
  return begun.verdict.admitted && !begun.terms.whole ? declaration : asked;
}

[[noreturn]] void RefuseFit(const PreparedFit& fit, const Verdict& verdict) {
  throw Error(fmt::format("nothing was released: the ledger '{}' refuses the fit, because {}{}.",
                          fit.settings.ledger, verdict.reason,
                          verdict.needs_whole ? "; give --whole if that is meant" : ""));
}

// Durable when it returns.
void Charge(const PreparedFit& fit, Ledger& ledger) {
  const RunDeclaration declaration = LedgerDeclaration(fit, ledger);
  const Begun begun = ledger.BeginRun(
      declaration, {.event = declaration.plan, .failure = declaration.failure, .words = "the fit"});
  if (!begun.verdict.admitted) RefuseFit(fit, begun.verdict);
}

at::Tensor FitTargets(const Dataset& data, std::int64_t blank) {
  const at::ScalarType type = data.declaration.target ? at::kDouble : at::kLong;
  at::Tensor targets = at::zeros({data.labels.size(0) + blank}, type);
  targets.slice(0, 0, data.labels.size(0)).copy_(data.labels);
  return targets;
}

// Under add-remove the plan covers any number of rows. Under the others it is made for a number of
// them: the one that was declared, or else that of the table, which is public there. Blank rows
// stand for those that are missing and for those without a declared label. Where all of these and
// the others are more than the number, the last of the others are left out. So a record that is
// replaced by another changes one row of the fit at most, and one that becomes blank, or loses its
// label, takes one row out of it and lets no other in.
std::int64_t RowsOf(const PreparedFit& fit, const Dataset& train) {
  const std::int64_t rows = train.inputs.size(0);
  if (fit.question.adjacency == Adjacency::kAddRemove) return rows;
  if (fit.question.records > 0) return fit.question.records;
  return std::max<std::int64_t>(1, rows + train.malformed);
}

Problem ProblemOf(PreparedFit& fit, Dataset& train) {
  const std::int64_t rows = RowsOf(fit, train);
  const bool counts_blank = fit.question.adjacency != Adjacency::kAddRemove;
  const std::int64_t places = counts_blank ? rows - train.malformed : rows;
  const std::int64_t kept = std::clamp<std::int64_t>(places, 0, train.inputs.size(0));
  const std::int64_t blank = rows - kept;
  train.inputs = train.inputs.slice(0, 0, kept);
  train.labels = train.labels.slice(0, 0, kept);
  if (fit.question.records == 0) {
    fit.question.records = std::max<std::int64_t>(1, rows);
    internal::MakePlans(fit);
  }
  const at::Tensor targets = FitTargets(train, blank);
  // The intercept is a column of ones, but for blank rows.
  at::Tensor ones = at::ones({rows}, at::kFloat);
  ones.slice(0, kept).zero_();
  return {fit.question.table, internal::FitFeatures(train, blank, fit.centre), targets, ones};
}

// In the place of the records, where features were asked for. Returns their shape.
FeatureShape ComputeFeatures(const PreparedFit& fit, DataSplits& data,
                             const FitObserver& observer) {
  if (fit.settings.features.empty()) return {};
  const std::unique_ptr<Model> model = internal::MakeFitModel(fit.settings, fit.declaration);
  FeatureShape shape;
  const auto progress = [&](double share) {
    if (StopGuard::Requested()) {
      throw Stopped("stopped before the fit; nothing was spent or written.");
    }
    observer("features", share);
  };
  data.train = WithFeatures(data.train, *model, c10::kCPU, &shape, progress);
  if (data.test) data.test = WithFeatures(*data.test, *model, c10::kCPU, &shape, progress);
  return shape;
}

// A linear layer with the fitted coefficients. With one score for two classes the first class has
// the score 0.
std::unique_ptr<Model> ModelWith(const PreparedFit& fit, const at::Tensor& coefficients) {
  const at::NoGradGuard no_grad;
  std::unique_ptr<Model> model = internal::MakeFitModel(fit.settings, fit.declaration);
  const std::int64_t columns = coefficients.size(0) - 1;
  const std::int64_t scores = coefficients.size(1);
  const std::int64_t first = fit.declaration.Outputs() - scores;
  for (const auto& [name, value] : model->Parameters()) {
    value.zero_();
    value.slice(0, first).copy_(name.ends_with("bias") ? coefficients[columns]
                                                       : coefficients.slice(0, 0, columns).t());
  }
  model->Train(false);
  return model;
}

void CheckFinite(const at::Tensor& coefficients) {
  if (coefficients.isfinite().all().item<bool>()) return;
  throw std::runtime_error(
      "a coefficient is not a finite number, so there is no model; what was charged stays charged. "
      "Give a larger --lambda.");
}

// In the units of the target, where there is one.
std::vector<Coefficient> CoefficientsOf(const PreparedFit& fit, const FitResult& result) {
  std::vector<Coefficient> coefficients;
  if (fit.names.empty()) return coefficients;
  const std::optional<TargetBounds>& target = fit.declaration.target;
  const double unit = target ? target->Unit() : 1;
  // After a selection the noise is that of the best fit, which is no longer centred.
  const bool has_interval = result.deviation.defined() && !fit.plan->is_laplace && !fit.selection;
  for (std::int64_t k = 0; k < result.coefficients.size(1); ++k) {
    for (std::int64_t j = 0; j < result.coefficients.size(0); ++j) {
      Coefficient c;
      c.feature = fit.names[static_cast<std::size_t>(j)];
      if (result.coefficients.size(1) > 1) {
        c.score = fit.declaration.class_names[static_cast<std::size_t>(k)];
      }
      c.value = unit * result.coefficients[j][k].item<double>();
      if (target && j + 1 == result.coefficients.size(0)) c.value += target->Unscaled(0);
      if (result.deviation.defined()) c.deviation = unit * result.deviation[j][k].item<double>();
      if (has_interval) {
        const double half = NormalHalfWidth(kConfidence) * *c.deviation;
        c.interval = Interval{c.value - half, c.value + half};
      }
      coefficients.push_back(std::move(c));
    }
  }
  return coefficients;
}

std::string CoefficientsCsv(const std::vector<Coefficient>& coefficients) {
  std::string csv = "feature,class,coefficient,noise,lower,upper\n";
  for (const Coefficient& c : coefficients) {
    csv +=
        fmt::format("{},{},{},{},{}\n", CsvField(c.feature), CsvField(c.score), c.value,
                    c.deviation ? fmt::format("{}", *c.deviation) : "",
                    c.interval ? fmt::format("{},{}", c.interval->lower, c.interval->upper) : ",");
  }
  return csv;
}

std::string Picture(const PreparedFit& fit, const std::vector<Coefficient>& coefficients) {
  CoefficientPicture picture;
  picture.title = fmt::format("{} of {}", fit.settings.model, fit.declaration.name);
  picture.caption =
      fit.settings.non_private
          ? "without privacy"
          : fmt::format("{}, epsilon {:g} at delta {:g}, {} adjacency", fit.plan->method.name,
                        *fit.settings.epsilon, *fit.settings.delta,
                        AdjacencyName(fit.plan->question.adjacency));
  if (fit.privacy != RunPrivacy::kPrivate) picture.warning = "NOT PRIVATE";
  for (const Coefficient& c : coefficients) {
    picture.bars.push_back({.name = c.score.empty() ? c.feature : c.score + ": " + c.feature,
                            .value = c.value,
                            .deviation = c.deviation});
  }
  return CoefficientSvg(picture);
}

// What `predict` reads: data and model; a fit has no other settings of a training.
TrainConfig ConfigOf(const PreparedFit& fit) {
  TrainConfig config;
  config.data = fit.settings.data;
  config.model.name = internal::FitModelName(fit.settings);
  config.privacy.epsilon = fit.settings.epsilon;
  config.privacy.delta = fit.settings.delta;
  config.run.out = fit.settings.out;
  config.run.non_private = fit.settings.non_private;
  config.run.ledger = fit.settings.ledger;
  config.run.purpose = fit.settings.purpose;
  return config;
}

std::string FitEvent(const PreparedFit& fit) {
  if (fit.settings.non_private) return "NOT PRIVATE\n";
  return fmt::format("{}{}\n", fit.privacy == RunPrivacy::kSeeded ? "NOT PRIVATE\n" : "",
                     internal::EventOf(fit).ToString());
}

std::string RecordOf(const PreparedFit& fit, const FitFacts& facts) {
  return internal::FitRecord(facts,
                             {.failure = internal::FailureOf(fit), .time = std::time(nullptr)});
}

// A fitted model, what it says about the test set, and the hash of what else decides predictions.
struct WrittenFit {
  const Model& model;
  std::string predictions;
  std::string inputs;
};

void WriteFit(const PreparedFit& fit, RunFolder& folder, const FitOutcome& outcome,
              const WrittenFit& written) {
  const std::string statement = FitStatement(outcome.facts);
  folder.Write("event.txt", FitEvent(fit));
  folder.Write("statement.txt", statement);
  folder.Write("record.json", RecordOf(fit, outcome.facts));
  if (!outcome.coefficients.empty()) {
    folder.Write("coefficients.csv", CoefficientsCsv(outcome.coefficients));
    folder.Write("coefficients.svg", Picture(fit, outcome.coefficients));
  }
  if (!written.predictions.empty()) folder.Write("predictions.json", written.predictions);
  MetricsRow row;
  row.is_private = outcome.is_private;
  row.step = std::max<std::int64_t>(1, fit.plan->steps);
  row.epsilon = outcome.epsilon;
  if (outcome.test) {
    row.test_accuracy = outcome.test->accuracy;
    row.test_error = outcome.test->error;
    row.test_loss = outcome.test->loss;
  }
  row.seconds = outcome.seconds.value_or(0);
  folder.AppendMetrics(row);
  // Last: it is what says that the fit has ended.
  SaveModel(folder.path() / "model.safetensors", written.model,
            {.name = "fit " + fit.settings.model,
             .data = fit.declaration,
             .privacy = fit.privacy,
             .epsilon = outcome.epsilon,
             .delta = outcome.delta,
             .steps = fit.plan->steps,
             .statement = statement,
             .inputs = written.inputs});
}

// Public records to measure a fit on.
struct FitTest {
  const std::optional<Dataset>& data;
  const FeatureShape& features;
};

struct FittedModel {
  FitResult result;
  std::unique_ptr<Model> model;
  std::optional<TestMetrics> test;
};

FittedModel FitOnce(const PreparedFit& fit, const FitPlan& plan, const Problem& problem,
                    const FitTest& test, RandomSource random, const FitProgress& progress) {
  FittedModel fitted;
  fitted.result = fit.settings.non_private ? FitWithoutPrivacy(plan, problem, progress)
                                           : Fit(plan, problem, random, progress);
  internal::MoveBack(fitted.result, fit.centre);
  CheckFinite(fitted.result.coefficients);
  fitted.model = ModelWith(fit, fitted.result.coefficients);
  if (test.data) fitted.test = Evaluate(*fitted.model, *test.data, c10::kCPU, test.features);
  return fitted;
}

// Public training records, and the shape of their features.
struct RiskData {
  const Dataset& train;
  const FeatureShape& features;
};

TrainingRisk RiskOf(const PreparedFit& fit, const FittedModel& fitted, const Problem& problem,
                    const RiskData& data) {
  TrainingRisk risk{.empirical = Evaluate(*fitted.model, data.train, c10::kCPU, data.features),
                    .test = fitted.test,
                    .excess = {},
                    .bound = {}};
  if (fit.settings.non_private) return risk;
  FitResult best = FitWithoutPrivacy(PlanWithoutPrivacy(fit.question), problem);
  if (fit.question.delta.value() > 0) {
    const double reach = fit.question.adjacency == Adjacency::kReplaceOne ? 2 : 1;
    const double slope = reach * problem.bounds().slope * fit.question.table.row_bound;
    const double noise = AnalyticGaussianNoise(fit.question.epsilon, fit.question.delta).value();
    risk.bound = DescentRiskBound(static_cast<double>(problem.rows()),
                                  static_cast<double>(best.coefficients.numel()),
                                  best.coefficients.norm().item<double>(), slope * noise);
  }
  internal::MoveBack(best, fit.centre);
  risk.excess =
      risk.empirical.loss -
      Evaluate(*ModelWith(fit, best.coefficients), data.train, c10::kCPU, data.features).loss;
  return risk;
}

bool IsBetter(const TestMetrics& a, const TestMetrics& b) {
  return a.accuracy ? *a.accuracy > *b.accuracy : a.error->mean_squared < b.error->mean_squared;
}

// Each fit has randomness of its own.
FittedModel FitBest(PreparedFit& fit, const Problem& problem, const FitTest& test,
                    const FitProgress& progress) {
  const std::optional<std::uint64_t>& seed = fit.settings.insecure_seed;
  std::uint64_t made = 0;
  const auto random = [&] { return seed ? RandomSource(*seed + made++) : RandomSource(); };
  if (!fit.selection) return FitOnce(fit, *fit.plan, problem, test, random(), progress);
  RandomSource choices = random();
  const std::unique_ptr<Generator> generator = choices.Stream({.tensor = kModelStream});
  const std::int64_t count = SelectionRuns(*fit.settings.tune).Draw(*generator);
  std::optional<FittedModel> best;
  for (std::int64_t i = 0; i < count; ++i) {
    // 2^64 is no multiple of the number of plans: a bias far below the error that is paid for.
    const FitPlan& plan = fit.candidates[generator->Next64() % fit.candidates.size()];
    FittedModel fitted = FitOnce(fit, plan, problem, test, random(), [&](double) { progress(0); });
    if (best && !IsBetter(*fitted.test, *best->test)) continue;
    best = std::move(fitted);
    fit.plan = plan;
  }
  return *std::move(best);
}

// Before the charge: what stays where the fit does not end.
struct FitFolder {
  RunFolder folder;
  std::string inputs;  // the hash of KeepInputs
};

FitFolder OpenFitFolder(const PreparedFit& fit, const std::filesystem::path& place,
                        const FitFacts& planned) {
  RunFolder folder(place);
  std::string inputs = KeepInputs(place, ConfigOf(fit));
  folder.Write("event.txt", FitEvent(fit));
  folder.Write("statement.txt", FitStatement(planned));
  folder.Write("record.json", RecordOf(fit, planned));
  return {std::move(folder), std::move(inputs)};
}

// Signals are taken and the clock runs from here on.
struct FitStart {
  std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
  StopGuard guard;
};

// Everything behind the reading. `place` is the run folder; empty: none.
FitOutcome FitRecords(PreparedFit& fit, DataSplits data, const std::filesystem::path& place,
                      const FitStart& start, const FitObserver& observer) {
  FitOutcome outcome;
  outcome.malformed = data.train.malformed;
  const internal::TestRecords records = internal::TestRecordsOf(fit.settings.data, data);
  const FeatureShape features = ComputeFeatures(fit, data, observer);
  const bool was_planned = fit.plan.has_value();
  Dataset train;  // as it is read: a problem scales rows down in place
  if (fit.settings.measures_risk) {
    train = data.train;
    train.inputs = train.inputs.clone();
  }
  const Problem problem = ProblemOf(fit, data.train);
  data.train = Dataset();
  if (!was_planned) CheckLedger(fit);
  if (StopGuard::Requested()) {
    throw Stopped("stopped before the fit; nothing was spent or written.");
  }
  outcome.facts = PlannedFacts(fit);
  std::optional<FitFolder> folder;
  if (!place.empty()) folder.emplace(OpenFitFolder(fit, place, outcome.facts));
  std::optional<Ledger> ledger;
  if (!fit.settings.ledger.empty()) {
    ledger.emplace(Ledger::Open(fit.settings.ledger));
    Charge(fit, *ledger);
  }
  const FittedModel fitted = FitBest(fit, problem, {data.test, features}, [&](double share) {
    if (StopGuard::Requested()) {
      throw Stopped(
          "stopped inside the fit; nothing was released, and what was charged stays charged.");
    }
    observer("fit", share);
  });
  outcome.facts = PlannedFacts(fit);
  outcome.folder = place;
  outcome.plan = *fit.plan;
  outcome.plans = fit.plans;
  outcome.epsilon = outcome.facts.epsilon;
  outcome.delta = outcome.facts.delta;
  outcome.is_private = fit.privacy == RunPrivacy::kPrivate;
  outcome.coefficients = CoefficientsOf(fit, fitted.result);
  outcome.facts.state = RunState::kFinished;
  if (ledger) {
    outcome.facts.ledger_epsilon = ledger->ComposedEpsilon();
    outcome.facts.ledger_head = ledger->head().hash;
    outcome.facts.ledger_seeded = ledger->SeededRuns();
  }
  outcome.test = fitted.test;
  if (fit.settings.measures_risk) outcome.risk = RiskOf(fit, fitted, problem, {train, features});
  if (!fit.selection) {
    // Whole seconds: finer ones would tell how many steps a minimum took, which depends on the
    // data.
    const auto time = std::chrono::steady_clock::now() - start.time;
    outcome.seconds = std::floor(std::chrono::duration<double>(time).count());
  }
  std::string predictions;
  if (data.test) {
    if (const auto answers =
            internal::TestPredictions(*fitted.model, *data.test, features, records, c10::kCPU)) {
      predictions = answers->file;
      outcome.test_quality = answers->quality;
    }
  }
  if (!folder) return outcome;
  WriteFit(fit, folder->folder, outcome, {*fitted.model, std::move(predictions), folder->inputs});
  return outcome;
}

}  // namespace

std::optional<BudgetFilter> CheckLedger(const PreparedFit& fit) {
  if (fit.settings.ledger.empty()) return std::nullopt;
  Ledger ledger = Ledger::Open(fit.settings.ledger);
  const RunDeclaration declaration = LedgerDeclaration(fit, ledger);
  const Begun begun = ledger.Preview(declaration);
  if (!begun.verdict.admitted) RefuseFit(fit, begun.verdict);
  return ledger.filter().After(declaration.plan, declaration.failure, begun.terms);
}

FitOutcome RunFit(PreparedFit& fit, const FitObserver& observer) {
  const FitStart start;
  const std::filesystem::path place = ChooseRunFolder(ConfigOf(fit), std::time(nullptr));
  if (fit.plan) CheckLedger(fit);
  observer("read", 0);
  return FitRecords(fit, OpenData(fit.settings.data), place, start, observer);
}

FitOutcome RunTableFit(PreparedFit& fit, DataSplits data, const FitObserver& observer) {
  const FitStart start;
  const std::filesystem::path place = fit.settings.out.empty()
                                          ? std::filesystem::path()
                                          : ChooseRunFolder(ConfigOf(fit), std::time(nullptr));
  if (fit.plan) CheckLedger(fit);
  return FitRecords(fit, std::move(data), place, start, observer);
}

}  // namespace sordino
