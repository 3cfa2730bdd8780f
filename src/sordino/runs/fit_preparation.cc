// PrepareFit of fit_run.h: from settings to a question for the library and everything that can be
// known before the data are read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/convex/loss.h"
#include "sordino/data/format_settings.h"
#include "sordino/data/table_reader.h"
#include "sordino/ledger/ledger.h"
#include "sordino/runs/fit_run.h"
#include "sordino/runs/internal/fit_features.h"
#include "sordino/runs/internal/fit_steps.h"
#include "sordino/runs/run_ledger.h"
#include "sordino/runs/train_config.h"

namespace sordino {
namespace {

constexpr double kNamedDelta = 1e-5;  // of data of the catalogue
constexpr double kMaxRecords = 1e11;
// What the fits of a selection take for the norm of the best weights, over what is assumed.
constexpr std::array<double, 6> kNormFactors = {0.125, 0.25, 0.5, 1, 2, 4};

// The losses whose model has a name, in their order.
std::vector<const ConvexLoss*> NamedLosses() {
  std::vector<const ConvexLoss*> losses;
  for (const ConvexLoss* loss : ConvexLosses().all()) {
    if (!loss->Model().name.empty()) losses.push_back(loss);
  }
  return losses;
}

const ConvexLoss& LossOf(const FitSettings& settings) {
  return *NamedLosses()[IndexOfName("the model", settings.model, FitModelNames())];
}

void CheckNumber(std::string_view flag, const std::optional<double>& value) {
  if (!value || (*value > 0 && std::isfinite(*value))) return;
  throw Error(fmt::format("{} is {:g}; give a finite number above 0.", flag, *value));
}

void CheckMethod(const Choice& method) {
  if (method.name != kAutoMethod) {
    IndexOfName("the method", method.name, FitMethodNames());
    FitMethods().Checked(method);
    return;
  }
  if (!(method.options == OptionValues())) {
    throw Error("options of a method were given without the method; name it with --method.");
  }
}

// What a fit without privacy has no use for is a sign of a misunderstanding.
void CheckWithoutPrivacy(const FitSettings& settings) {
  const auto refuse = [](bool given, std::string_view flag) {
    if (!given) return;
    throw Error(
        fmt::format("--non-private adds no noise and spends nothing, so {} has no meaning "
                    "beside it; leave one of them out.",
                    flag));
  };
  refuse(settings.epsilon.has_value(), "--epsilon");
  refuse(settings.delta.has_value(), "--delta");
  refuse(!settings.adjacency.empty(), "--adjacency");
  refuse(!(settings.method == Choice(std::string(kAutoMethod))), "--method");
  refuse(settings.tune.has_value(), "--tune");
  refuse(settings.insecure_seed.has_value(), "--insecure-seed");
}

void CheckBudgetOf(FitSettings& settings) {
  if (settings.non_private) {
    CheckWithoutPrivacy(settings);
    return;
  }
  if (!settings.epsilon) throw Error("there is no budget; give --epsilon, such as 1.");
  CheckNumber("--epsilon", settings.epsilon);
  if (!settings.delta) {
    if (!IsDatasetName(settings.data.source)) {
      throw Error(
          "there is no --delta; give the probability with which the guarantee may fail, well below "
          "one over the number of records, such as 1e-6, or 0 for methods with pure epsilon.");
    }
    settings.delta = kNamedDelta;
  }
  if (!(*settings.delta >= 0 && *settings.delta < 1) ||
      (*settings.delta > 0 && *settings.delta < 1e-300)) {
    throw Error(fmt::format("--delta is {:g}; give 0 or a number from 1e-300 to below 1.",
                            *settings.delta));
  }
}

// Pixels as they are: the constants of known images would move the dark background from 0 to -1,
// and the norm of a picture would be that of its background.
void TakePlainPixels(DataRequest& request, const DatasetDeclaration& declaration) {
  if (declaration.kind != InputKind::kImage || !request.mean.empty()) return;
  request.mean.assign(static_cast<std::size_t>(declaration.shape[0]), 0);
  request.deviation.assign(request.mean.size(), 1);
}

void CheckData(const FitSettings& settings, const DatasetDeclaration& declaration) {
  const ConvexLoss& loss = LossOf(settings);
  const FittedModel model = loss.Model();
  const bool predicts_number = !loss.Classifies();
  if (declaration.kind == InputKind::kTokens) {
    throw Error("'fit' takes tables and images, and the data are text; use 'sordino train'.");
  }
  if (predicts_number != declaration.target.has_value()) {
    throw Error(
        fmt::format("--model {} predicts {}, and the data have {}; {}.", model.name,
                    predicts_number ? "a number" : "classes",
                    declaration.target ? fmt::format("the target '{}'", declaration.target->name)
                                       : std::string("classes"),
                    predicts_number ? "declare a target, such as cost:target:0:5000, or give "
                                      "--model logistic"
                                    : "give --model least-squares, or declare a label"));
  }
  if (declaration.classes > 2 && model.loss_of_many.empty()) {
    throw Error(
        fmt::format("--model {} takes two classes, and {} are declared; give --model "
                    "logistic.",
                    model.name, declaration.classes));
  }
}

Adjacency AdjacencyOf(const PreparedFit& fit) {
  if (fit.settings.non_private) return Adjacency::kAddRemove;
  const std::string& given = fit.settings.adjacency;
  const Adjacency adjacency = !given.empty() ? ParseAdjacency(given)
                              : fit.budget   ? fit.budget->adjacency
                              : fit.declaration.records > 0 || fit.declaration.rows_per_user > 1
                                  ? Adjacency::kAddRemove
                                  : Adjacency::kReplaceOne;
  if (adjacency != Adjacency::kAddRemove && fit.declaration.rows_per_user > 1) {
    throw Error(fmt::format(
        "people have up to {} rows here, so the number of rows is not public and the fit is "
        "add-remove, not {}; give --adjacency add-remove{}, or --rows-per-user 1.",
        fit.declaration.rows_per_user, AdjacencyName(adjacency),
        fit.budget ? " and a ledger that counts so" : ""));
  }
  if (adjacency == Adjacency::kAddRemove && fit.declaration.records == 0) {
    throw Error(
        "under add-remove the number of records is private, and a plan needs one; give --records "
        "with about as many as are expected, or --adjacency replace-one, under which their number "
        "is public.");
  }
  if (fit.budget && fit.budget->adjacency != adjacency) {
    throw Error(
        fmt::format("the ledger '{}' counts {} adjacency and the fit is planned for {}; "
                    "give --adjacency {}.",
                    fit.settings.ledger, AdjacencyName(fit.budget->adjacency),
                    AdjacencyName(adjacency), AdjacencyName(fit.budget->adjacency)));
  }
  return adjacency;
}

bool HasTest(const FitSettings& settings) {
  return settings.brings_test || !settings.data.test.empty() || IsDatasetName(settings.data.source);
}

std::optional<SelectionBudget> SelectionOf(const PreparedFit& fit) {
  const FitSettings& settings = fit.settings;
  if (!settings.tune) return std::nullopt;
  if (!HasTest(settings)) {
    throw Error("--tune takes the best of several fits on public data; give --test.");
  }
  if (!(*settings.tune > 1 && *settings.tune <= kMaxExpectedRuns)) {
    throw Error(
        fmt::format("--tune is {:g}; give the expected number of fits, above 1 and at most "
                    "{:g}.",
                    *settings.tune, kMaxExpectedRuns));
  }
  std::optional<SelectionBudget> budget = PlanSelection(
      Epsilon(*settings.epsilon), Delta(*settings.delta), *settings.tune, AdjacencyOf(fit));
  if (!budget) {
    throw Error(
        fmt::format("--tune needs a --delta that pays for drawing the number of fits, and "
                    "{:g} does not; give a larger one, such as 1e-6.",
                    *settings.delta));
  }
  return budget;
}

FitQuestion QuestionOf(const PreparedFit& fit) {
  const FitSettings& settings = fit.settings;
  const ConvexLoss& loss = LossOf(settings);
  FitQuestion question;
  question.table.loss =
      std::string(fit.declaration.classes > 2 ? loss.Model().loss_of_many : loss.name());
  question.table.features = internal::FitFeatureCount(settings, fit.declaration) + 1;
  question.table.classes = std::max<std::int64_t>(2, fit.declaration.classes);
  question.table.row_bound = *settings.row_bound;
  question.records = fit.declaration.records;
  if (!settings.non_private) {
    question.epsilon = Epsilon(*settings.epsilon);
    question.delta = Delta(*settings.delta);
  }
  question.adjacency = AdjacencyOf(fit);
  question.rows_per_user = std::max<std::int64_t>(1, fit.declaration.rows_per_user);
  if (fit.selection) {
    question.epsilon = fit.selection->run_epsilon;
    question.delta = fit.selection->run_delta;
  }
  question.lambda = settings.lambda;
  if (settings.weight_norm) question.weight_norm = *settings.weight_norm;
  CheckedLoss(question.table);
  return question;
}

std::string NoiseText(const FitPlan& plan) {
  std::vector<std::string> parts;
  parts.reserve(plan.noises.size());
  for (const PlannedNoise& noise : plan.noises) {
    parts.push_back(fmt::format("{:.4g} {}", noise.deviation, noise.where));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// What needs no data comes first, so that a misspelt name is not hidden by a missing file.
void CheckChoices(const FitSettings& settings) {
  LossOf(settings);
  CheckMethod(settings.method);
  CheckNumber("--lambda", settings.lambda);
  CheckNumber("--row-bound", settings.row_bound);
  CheckNumber("--weight-norm", settings.weight_norm);
  CheckPurpose(settings.purpose);
}

// A format without columns has no rows to leave out.
void TakeOnError(FitSettings& settings, bool is_table) {
  settings.data.malformed = ParseMalformedRows("--on-error", settings.on_error);
  if (is_table || settings.data.malformed == MalformedRows::kRefuse) return;
  throw Error("--on-error skip leaves out rows of a table, and the data are none; leave it out.");
}

// From checked settings and the declaration of their data.
PreparedFit Planned(FitSettings settings, DatasetDeclaration declaration, bool is_table) {
  PreparedFit fit;
  fit.declaration = std::move(declaration);
  internal::CheckFitFeatures(settings, fit.declaration);
  const std::vector<std::string>& columns = settings.data.columns.declared;
  if (!settings.row_bound) {
    settings.row_bound = settings.features.empty()
                             ? DefaultRowBound(fit.declaration, columns)
                             : std::sqrt(static_cast<double>(
                                   internal::FitFeatureCount(settings, fit.declaration) + 1));
  }
  if (is_table) {
    fit.names = internal::ColumnFeatureNames(columns);
    if (fit.declaration.normalisation.mean.empty()) fit.centre = internal::ColumnCentre(columns);
  }
  if (settings.non_private && !settings.ledger.empty()) {
    throw Error(
        fmt::format("a fit without privacy cannot be charged to the ledger '{}'; leave out "
                    "--non-private, or use data that no ledger protects.",
                    settings.ledger));
  }
  if (settings.insecure_seed) fit.privacy = RunPrivacy::kSeeded;
  if (settings.non_private) fit.privacy = RunPrivacy::kNonPrivate;
  fit.settings = std::move(settings);
  if (!fit.settings.ledger.empty()) {
    fit.budget = Ledger::Open(fit.settings.ledger, {.read_only = true}).budget();
  }
  fit.selection = SelectionOf(fit);
  fit.question = QuestionOf(fit);
  if (fit.question.records > 0) internal::MakePlans(fit);
  return fit;
}

}  // namespace

std::span<const std::string_view> FitModelNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> found;
    for (const ConvexLoss* loss : NamedLosses()) found.push_back(loss->Model().name);
    return found;
  }();
  return names;
}

std::vector<std::string_view> FitMethodNames() {
  std::vector<std::string_view> names = {kAutoMethod};
  for (const std::string_view name : FitMethods().names()) names.push_back(name);
  return names;
}

void internal::MakePlans(PreparedFit& fit) {
  if (fit.settings.non_private) {
    fit.plan = PlanWithoutPrivacy(fit.question);
    return;
  }
  fit.plans = PlanFits(fit.question);
  const Choice& method = fit.settings.method;
  fit.plan = method.name == kAutoMethod ? ChooseMethod(fit.plans) : PlanFit(fit.question, method);
  if (!fit.selection) return;
  for (const double factor : kNormFactors) {
    FitQuestion question = fit.question;
    question.weight_norm *= factor;
    fit.candidates.push_back(
        PlanFit(question, method.name == kAutoMethod ? Choice(fit.plan->method.name) : method));
  }
}

const Event& internal::EventOf(const PreparedFit& fit) {
  return fit.selection ? fit.selection->event : fit.plan->event;
}

double internal::FailureOf(const PreparedFit& fit) {
  return fit.selection ? fit.selection->failure : fit.plan->failure;
}

PreparedFit PrepareFit(FitSettings settings) {
  CheckChoices(settings);
  if (settings.data.source.empty()) {
    throw Error(
        "there are no data; name a table, such as 'sordino fit census.csv --schema "
        "census.toml --epsilon 1 --delta 1e-6', or give --data.");
  }
  CheckBudgetOf(settings);
  const bool is_table = TakesSetting(settings.data, "columns");
  if (is_table) settings.data = WithSchema(std::move(settings.data));
  TakeOnError(settings, is_table);
  TakePlainPixels(settings.data, Declare(settings.data));
  DatasetDeclaration declaration = Declare(settings.data);
  CheckData(settings, declaration);
  settings.ledger = LedgerOfData(settings.ledger, settings.data);
  return Planned(std::move(settings), std::move(declaration), is_table);
}

PreparedFit PrepareTableFit(FitSettings settings, std::string name) {
  CheckChoices(settings);
  CheckBudgetOf(settings);
  TakeOnError(settings, /*is_table=*/true);
  DatasetDeclaration declaration = DeclareTable(settings.data, std::move(name));
  CheckData(settings, declaration);
  if (!settings.ledger.empty()) {
    settings.ledger = std::filesystem::absolute(settings.ledger).lexically_normal().string();
  }
  return Planned(std::move(settings), std::move(declaration), /*is_table=*/true);
}

FitFacts PlannedFacts(const PreparedFit& fit) {
  const FitPlan& plan = *fit.plan;
  FitFacts facts;
  facts.privacy = fit.privacy;
  facts.data = fit.declaration.name;
  facts.model = fmt::format("{} of {} features{} and an intercept",
                            LossOf(fit.settings).Model().words, plan.question.table.features - 1,
                            fit.settings.features.empty() ? "" : " by " + fit.settings.features);
  facts.method = fit.settings.non_private ? std::string("the minimum without noise")
                                          : fmt::format("{} ({})", plan.method.name,
                                                        FitMethods().Find(plan.method.name).help());
  facts.plan = fmt::format("Rows have a norm of at most {:.6g}, the regularisation is {:.6g}{}{}",
                           plan.question.table.row_bound, plan.lambda,
                           plan.noises.empty() ? "" : ", and the standard deviation of the noise ",
                           plan.noises.empty() ? std::string() : "is " + NoiseText(plan));
  facts.needs_minimum = plan.gradient_norm_limit > 0;
  if (facts.needs_minimum) {
    facts.plan += fmt::format(
        "; the norm of the gradient at the minimum is certified to be at "
        "most {:.4g}",
        plan.gradient_norm_limit);
  }
  if (fit.selection) {
    facts.plan += fmt::format(
        ". The best on the test set of several fits was released, each with a plan of its own from "
        "a fixed list of {}; their number was drawn in secret, with a mean of {:g}",
        fit.candidates.size(), *fit.settings.tune);
  }
  facts.records = plan.question.records;
  facts.counts_users = fit.declaration.rows_per_user > 0;
  facts.rows_per_user = fit.declaration.rows_per_user;
  facts.adjacency = plan.question.adjacency;
  facts.delta = fit.settings.delta.value_or(0);
  facts.epsilon =
      fit.settings.non_private
          ? Interval{kInfinity, kInfinity}
          : SpentEpsilon(internal::EventOf(fit), Delta(facts.delta), internal::FailureOf(fit));
  facts.event = internal::EventOf(fit).ToString();
  facts.has_test = HasTest(fit.settings);
  facts.ledger = fit.settings.ledger;
  facts.purpose = fit.settings.purpose;
  if (fit.budget) facts.budget = *fit.budget;
  return facts;
}

std::optional<double> NeededRecords(const FitQuestion& question, const std::string& method,
                                    double excess_risk) {
  const FitMethod& component = FitMethods().Find(method);
  const auto is_enough = [&](double records) {
    FitQuestion asked = question;
    asked.records = static_cast<std::int64_t>(records);
    const PlannedFit planned = component.Plan(asked, {});
    return planned.plan && planned.plan->excess_risk <= excess_risk;
  };
  // A factor of four at a time, then halves of what is left, until two digits are right.
  double high = 16;
  while (!is_enough(high)) {
    high *= 4;
    if (high > kMaxRecords) return std::nullopt;
  }
  double low = high / 4;
  while (high / low > 1.05) {
    const double middle = std::round(std::sqrt(low * high));
    (is_enough(middle) ? high : low) = middle;
  }
  const double unit = std::pow(10, std::floor(std::log10(high)) - 1);
  return std::ceil(high / unit) * unit;
}

}  // namespace sordino
