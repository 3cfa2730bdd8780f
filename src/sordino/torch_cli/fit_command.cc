#include "sordino/torch_cli/fit_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/progress.h"
#include "sordino/cli/command_tree.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/runs/fit_run.h"
#include "sordino/torch_cli/told_errors.h"
#include "sordino/torch_cli/train_options.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

// A mean loss of so much above the best is what --dry-run asks the number of records for.
constexpr double kGoodExcessRisk = 0.05;
constexpr std::array<std::string_view, 2> kFitAdjacencies = {"add-remove", "replace-one"};

struct FitOptions {
  FitSettings settings;
  std::string source;
  bool dry_run = false;
  bool json = false;
  bool show_private = false;
  TrainFlags data;
};

FitSettings SettingsOf(const FitOptions& options) {
  TrainConfig config;
  SetFromFlags(config, options.data.Given());
  FitSettings settings = options.settings;
  settings.data = config.data;
  if (!options.source.empty()) {
    if (!settings.data.source.empty()) {
      throw Error(
          fmt::format("both '{}' and --data were given; name the data once.", options.source));
    }
    settings.data.source = options.source;
  }
  return settings;
}

Json RisksJson(const std::vector<PlannedFit>& plans) {
  Json json = Json::object();
  for (const PlannedFit& planned : plans) {
    json[planned.method] = planned.plan ? NumberJson(planned.plan->excess_risk) : Json(nullptr);
  }
  return json;
}

Json CoefficientsJson(const FitOutcome& outcome) {
  if (outcome.coefficients.empty()) return nullptr;
  Json json = Json::object();
  for (const Coefficient& c : outcome.coefficients) {
    (c.score.empty() ? json : json[c.score])[c.feature] = c.value;
  }
  return json;
}

Json IntervalsJson(const FitOutcome& outcome) {
  Json json = Json::object();
  for (const Coefficient& c : outcome.coefficients) {
    if (!c.interval) continue;
    (c.score.empty() ? json : json[c.score])[c.feature] = {{"lower", c.interval->lower},
                                                           {"upper", c.interval->upper}};
  }
  return json.empty() ? Json(nullptr) : json;
}

Json CertificateJson(const FitPlan& plan) {
  if (!(plan.gradient_norm_limit > 0)) return nullptr;
  return {{"gradient_norm", plan.gradient_norm_limit}};
}

Json PlanJson(const FitPlan& plan, const FitFacts& facts) {
  Json json;
  json["lambda"] = plan.lambda;
  json["row_bound"] = plan.question.table.row_bound;
  json["adjacency"] = AdjacencyName(plan.question.adjacency);
  json["records"] = facts.records;
  json["event"] = facts.event;
  json["noise"] = Json::array();
  for (const PlannedNoise& noise : plan.noises) {
    json["noise"].push_back({{"where", noise.where}, {"deviation", noise.deviation}});
  }
  return json;
}

Json LedgerOf(const FitFacts& facts) {
  return {{"file", facts.ledger},
          {"budget",
           {{"epsilon", NumberJson(facts.budget.epsilon.value())},
            {"delta", facts.budget.delta.value()}}},
          {"epsilon", IntervalJson(facts.ledger_epsilon)},
          {"head", facts.ledger_head}};
}

bool IsWithoutPrivacy(const FitFacts& facts) { return facts.privacy == RunPrivacy::kNonPrivate; }

Json OutcomeJson(const FitOutcome& outcome) {
  Json json = NewReport();
  json["run"] = outcome.folder.string();
  json["method"] = outcome.plan.method.name;
  json["coefficients"] = CoefficientsJson(outcome);
  json["intervals"] = IntervalsJson(outcome);
  json["epsilon"] = IntervalJson(outcome.epsilon);
  json["delta"] = IsWithoutPrivacy(outcome.facts) ? Json(nullptr) : Json(outcome.delta);
  json["test_accuracy"] =
      outcome.test && outcome.test->accuracy ? Json(*outcome.test->accuracy) : Json(nullptr);
  if (outcome.test && outcome.test->error) {
    json["test_mean_squared_error"] = NumberJson(outcome.test->error->mean_squared);
    json["test_mean_absolute_error"] = NumberJson(outcome.test->error->mean_absolute);
  }
  json["predicted_excess_risk"] = RisksJson(outcome.plans);
  json["certificate"] = CertificateJson(outcome.plan);
  json["plan"] = PlanJson(outcome.plan, outcome.facts);
  json["seconds"] = outcome.seconds ? Json(*outcome.seconds) : Json(nullptr);
  json["private"] = outcome.is_private;
  if (!outcome.facts.ledger.empty()) json["ledger"] = LedgerOf(outcome.facts);
  if (!outcome.is_private) json["warning"] = NotPrivateWarning(outcome.facts.privacy);
  return json;
}

std::string RiskText(const PlannedFit& planned) {
  return planned.plan ? fmt::format("{:.3g}", planned.plan->excess_risk) : "-";
}

std::vector<std::vector<std::string>> OutcomeRows(const FitOutcome& outcome) {
  std::vector<std::vector<std::string>> rows = {{"run", outcome.folder.string()},
                                                {"method", outcome.facts.method}};
  if (!IsWithoutPrivacy(outcome.facts)) {
    rows.push_back({"epsilon", fmt::format("{} at delta {:g}", UpperText(outcome.epsilon.upper),
                                           outcome.delta)});
  }
  if (outcome.test && outcome.test->accuracy) {
    rows.push_back({"test accuracy", fmt::format("{:.2f}%", 100 * *outcome.test->accuracy)});
  }
  if (outcome.test && outcome.test->error) {
    rows.push_back({"test error", fmt::format("mean squared {:.6g}, mean absolute {:.6g}",
                                              outcome.test->error->mean_squared,
                                              outcome.test->error->mean_absolute)});
  }
  rows.push_back({"regularisation", fmt::format("{:.6g}", outcome.plan.lambda)});
  if (outcome.plan.gradient_norm_limit > 0) {
    rows.push_back({"gradient norm",
                    fmt::format("at most {:.4g}, certified", outcome.plan.gradient_norm_limit)});
  }
  if (!outcome.facts.ledger.empty()) {
    rows.push_back(
        {"ledger",
         fmt::format("{}: {} of epsilon {:g} at delta {:g} for all releases", outcome.facts.ledger,
                     UpperText(outcome.facts.ledger_epsilon.upper),
                     outcome.facts.budget.epsilon.value(), outcome.facts.budget.delta.value())});
  }
  if (outcome.seconds) rows.push_back({"time", HumanDuration(*outcome.seconds)});
  return rows;
}

std::vector<std::vector<std::string>> CoefficientRows(const FitOutcome& outcome) {
  const bool has_intervals = outcome.coefficients.front().interval.has_value();
  std::vector<std::vector<std::string>> rows = {{"coefficient", "value"}};
  if (has_intervals) rows.front().emplace_back("95% interval");
  for (const Coefficient& c : outcome.coefficients) {
    rows.push_back(
        {c.score.empty() ? c.feature : c.score + ": " + c.feature, fmt::format("{:.4g}", c.value)});
    if (!has_intervals) continue;
    rows.back().push_back(fmt::format("{:.4g} to {:.4g}", c.interval->lower, c.interval->upper));
  }
  return rows;
}

void PrintOutcome(const FitOutcome& outcome) {
  const std::string warning = NotPrivateWarning(outcome.facts.privacy);
  if (!warning.empty()) std::cout << warning << '\n';
  std::cout << AlignedTable(OutcomeRows(outcome), 1);
  if (!outcome.coefficients.empty()) {
    std::cout << '\n' << AlignedTable(CoefficientRows(outcome), 1);
  }
  if (warning.empty()) std::cout << '\n' << FitGuarantee(outcome.facts) << '\n';
}

std::string RecordsText(const std::optional<double>& records) {
  return records ? fmt::format("{:.0f}", *records) : "-";
}

// What each method would do. Nothing of it comes from the data.
void PrintPlans(const PreparedFit& fit) {
  const FitFacts facts = PlannedFacts(fit);
  std::vector<std::vector<std::string>> rows = {{"method", "predicted excess risk", "lambda",
                                                 fmt::format("records for {:g}", kGoodExcessRisk),
                                                 ""}};
  for (const PlannedFit& planned : fit.plans) {
    const bool chosen = planned.method == fit.plan->method.name;
    rows.push_back({planned.method, RiskText(planned),
                    planned.plan ? fmt::format("{:.4g}", planned.plan->lambda) : "-",
                    RecordsText(NeededRecords(fit.question, planned.method, kGoodExcessRisk)),
                    chosen ? "<- used" : planned.refusal});
  }
  std::cout << AlignedTable(rows, 1) << '\n' << FitStatement(facts);
}

Json PlansJson(const PreparedFit& fit) {
  const FitFacts facts = PlannedFacts(fit);
  Json json = NewReport();
  json["dry_run"] = true;
  json["method"] = fit.plan->method.name;
  json["epsilon"] = IntervalJson(facts.epsilon);
  json["delta"] = facts.delta;
  json["predicted_excess_risk"] = RisksJson(fit.plans);
  json["needed_records"] = Json::object();
  json["refused"] = Json::object();
  for (const PlannedFit& planned : fit.plans) {
    const std::optional<double> needed =
        NeededRecords(fit.question, planned.method, kGoodExcessRisk);
    json["needed_records"][planned.method] = needed ? Json(*needed) : Json(nullptr);
    if (!planned.plan) json["refused"][planned.method] = planned.refusal;
  }
  json["excess_risk_of_needed_records"] = kGoodExcessRisk;
  json["certificate"] = CertificateJson(*fit.plan);
  json["plan"] = PlanJson(*fit.plan, facts);
  json["statement"] = FitStatement(facts);
  return json;
}

void DryRun(const PreparedFit& fit, bool json) {
  if (!fit.plan) {
    throw Error("a plan needs the number of records, and --dry-run reads no data; give --records.");
  }
  CheckLedger(fit);
  if (json) {
    PrintReport(PlansJson(fit), /*one_line=*/true);
  } else {
    PrintPlans(fit);
  }
}

void Run(const FitOptions& options) {
  PreparedFit fit = PrepareFit(SettingsOf(options));
  if (options.dry_run) {
    DryRun(fit, options.json);
    return;
  }
  if (fit.privacy != RunPrivacy::kPrivate) {
    std::cerr << "sordino: " << NotPrivateWarning(fit.privacy) << '\n';
  }
  if (fit.privacy != RunPrivacy::kNonPrivate && options.settings.adjacency.empty() && !fit.plan) {
    std::cerr << "sordino: the number of records was not declared, so it is taken to be public "
                 "(replace-one); --records keeps it private.\n";
  }
  std::unique_ptr<Progress> progress;
  const FitOutcome outcome = RunFit(fit, [&](std::string_view what, double share) {
    if (what != "fit" || fit.selection) return;  // the time of a selection is secret
    if (!progress) progress = std::make_unique<Progress>("fit", 100);
    progress->Update(static_cast<std::uint64_t>(100 * share));
  });
  if (progress) progress->Finish();
  if (options.show_private && outcome.malformed > 0) {
    std::cerr << fmt::format(
        "sordino: {} rows without a declared label were left out; this number is about the private "
        "data, keep it to yourself.\n",
        outcome.malformed);
  }
  if (options.json) {
    PrintReport(OutcomeJson(outcome), /*one_line=*/true);
  } else {
    PrintOutcome(outcome);
  }
}

void AddBudgetFlags(CLI::App& command, FitSettings& s) {
  command.add_option("--epsilon", s.epsilon, "What may be spent; the noise follows from it")
      ->type_name("X")
      ->group("Privacy");
  command
      .add_option("--delta", s.delta,
                  "Failure probability; 0 for pure epsilon; 1e-5 for data known by name")
      ->type_name("X")
      ->group("Privacy");
  SetChoices(*command
                  .add_option("--adjacency", s.adjacency,
                              "add-remove or replace-one; if left out that of the ledger, "
                              "add-remove with --records, else replace-one")
                  ->type_name("NAME")
                  ->group("Privacy"),
             kFitAdjacencies);
  command
      .add_option("--row-bound", s.row_bound,
                  "Rows are scaled down to this norm, the 1 of the intercept included; if left out "
                  "it follows from the columns")
      ->type_name("R")
      ->group("Privacy");
  command
      .add_option("--ledger", s.ledger,
                  "The ledger of the data ('sordino ledger init'), which the fit is charged to "
                  "before its noise is drawn")
      ->type_name("FILE")
      ->group("Privacy");
  command
      .add_option("--insecure-seed", s.insecure_seed, "NOT PRIVATE: predictable noise, for tests")
      ->type_name("N")
      ->group("Privacy");
  command
      .add_flag("--non-private", s.non_private,
                "NOT PRIVATE: the best model without noise, for public data and to compare with")
      ->group("Privacy");
}

void AddModelFlags(CLI::App& command, FitOptions& o) {
  SetChoices(*command.add_option("--model", o.settings.model, OneOf(FitModelNames()))
                  ->type_name("NAME")
                  ->capture_default_str()
                  ->group("Model"),
             FitModelNames());
  const std::vector<std::string_view> methods = FitMethodNames();
  SetChoices(*command
                  .add_option("--method", o.settings.method.name,
                              OneOf(methods) + "; auto takes the least predicted excess risk")
                  ->type_name("NAME")
                  ->capture_default_str()
                  ->group("Model"),
             methods);
  for (const OptionSpec* spec : FitMethods().options()) {
    std::visit(
        [&](auto& slot) {
          command.add_option(std::string(spec->flag), slot, FitMethods().OptionHelp(*spec))
              ->type_name(std::string(spec->value_name))
              ->group("Method");
        },
        o.settings.method.options.SlotOf(*spec));
  }
  SetChoices(*command
                  .add_option("--features", o.settings.features,
                              "Of images: scattering, fixed wavelet features in the place of the "
                              "pixels")
                  ->type_name("NAME")
                  ->group("Model"),
             FitFeatureNames());
  command
      .add_option("--lambda", o.settings.lambda,
                  "Regularisation beside the sum of the losses; by theory if left out")
      ->type_name("X")
      ->group("Model");
  command
      .add_option("--weight-norm", o.settings.weight_norm,
                  "The norm of the best weights that theory assumes, times the row bound; it "
                  "decides how well a plan does, not how private it is")
      ->type_name("X")
      ->group("Model");
  command
      .add_option("--tune", o.settings.tune,
                  "The best of about K fits on the test set, as one charge: each has half of "
                  "epsilon, and their number is drawn in secret")
      ->type_name("K")
      ->group("Model");
}

}  // namespace

void AddFitCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand("fit", TorchCommandSummary("fit"));
  const auto options = std::make_shared<FitOptions>();
  FitOptions& o = *options;
  command->add_option("source", o.source, "A table, or a dataset by name")->type_name("NAME|FILE");
  o.data.AddTo(*command, [](const Setting& setting) {
    return setting.section == "data" && setting.key != "vocabulary" && setting.key != "length";
  });
  AddModelFlags(*command, o);
  AddBudgetFlags(*command, o.settings);
  command
      ->add_option("--out", o.settings.out,
                   "The run folder; runs/<time>-<data>-logistic if left out")
      ->type_name("FOLDER")
      ->group("Run");
  command
      ->add_flag("--dry-run", o.dry_run,
                 "Predicted excess risk of every method, the records that they would need, and the "
                 "statement; reads no data")
      ->group("Run");
  command->add_flag("--json", o.json, "One JSON object on standard output")->group("Run");
  AddShowPrivate(*command, o.show_private);
  command->footer(
      "Examples:\n"
      "  sordino fit census.csv --schema census.toml --epsilon 1 --delta 1e-6 --test test.csv\n"
      "  sordino fit census.csv --schema census.toml --epsilon 1 --delta 1e-6 --records 32561 "
      "--dry-run\n"
      "  sordino fit visits.csv --columns age:numeric:0:120 stay:target:0:30 --model least-squares "
      "--epsilon 1 --delta 1e-6\n"
      "  sordino fit mnist --epsilon 1");
  command->callback([options] { TellErrors(options->show_private, [&] { Run(*options); }); });
}

}  // namespace sordino
