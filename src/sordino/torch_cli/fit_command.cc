#include "sordino/torch_cli/fit_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "sordino/base/adjacency_names.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/progress.h"
#include "sordino/cli/command_tree.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/ledger_forecast.h"
#include "sordino/cli/program.h"
#include "sordino/cli/purpose_flags.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/runs/fit_run.h"
#include "sordino/runs/missing_settings.h"
#include "sordino/torch_cli/fit_report.h"
#include "sordino/torch_cli/public_data.h"
#include "sordino/torch_cli/reported_errors.h"
#include "sordino/torch_cli/risk_report.h"
#include "sordino/torch_cli/train_options.h"

namespace sordino {
namespace {

// Without zero-out.
constexpr auto kFitAdjacencies = std::span(kAdjacencyNames).first<2>();

struct FitOptions {
  FitSettings settings;
  std::string source;
  bool baseline = false;
  bool dry_run = false;
  bool json = false;
  bool show_private = false;
  RiskFlags risk;
  TrainFlags data;
};

FitSettings SettingsOf(const FitOptions& options) {
  TrainConfig config;
  SetFromFlags(config, WithSource(options.data.Given(), options.source));
  FitSettings settings = options.settings;
  settings.data = config.data;
  std::vector<MissingSetting> missing = MissingSettings(settings);
  const bool known = settings.data.source.empty() || IsDatasetName(settings.data.source);
  if (options.dry_run && settings.data.records == 0 && !known) {
    missing.push_back({"the number of records", "--records 20000", "--dry-run reads no data"});
  }
  if (!missing.empty()) throw Error(MissingSentence(missing, GivenLine()));
  RiskFlags risk = options.risk;
  if (options.baseline && !risk.measure) risk.public_data = false;  // it is for the baseline
  CheckRiskFlags(risk, settings.data, settings.non_private, settings.ledger);
  settings.measures_risk = options.risk.measure;
  if (settings.measures_risk && settings.tune) {
    throw Error("--risk is of one fit, and --tune makes several in secret; leave one of them out.");
  }
  return settings;
}

void DryRun(const PreparedFit& fit, bool json) {
  if (!fit.plan) {
    throw Error("a plan needs the number of records, and --dry-run reads no data; give --records.");
  }
  const std::optional<BudgetFilter> after = CheckLedger(fit);
  if (json) {
    nlohmann::ordered_json plans = FitPlansJson(fit);
    if (after) {
      plans["ledger"] = ForecastJson(*after);
      plans["ledger"]["file"] = fit.settings.ledger;
    }
    PrintReport(plans, /*one_line=*/true);
    return;
  }
  PrintFitPlans(fit);
  if (after) {
    std::cout << fmt::format("\nledger {}: {}\n", fit.settings.ledger, ForecastText(*after));
  }
}

// The same fit without privacy, for public data. Everything that can be refused is, before the
// private one spends.
FitSettings BaselineOf(FitSettings settings, const FitOptions& options) {
  if (settings.non_private) {
    throw Error(
        "--baseline is the fit without privacy beside a private one, and --non-private has no "
        "other; leave one of them out.");
  }
  CheckPublicData(settings.data, options.risk.public_data, "a baseline is");
  if (!settings.ledger.empty()) {
    throw Error(
        fmt::format("the data have the ledger '{}', so they are private, and a baseline is "
                    "computed without noise; "
                    "leave out --baseline.",
                    settings.ledger));
  }
  if (!settings.out.empty()) {
    settings.out += "-baseline";
    std::error_code failure;
    if (std::filesystem::exists(settings.out, failure)) {
      throw Error(fmt::format(
          "'{}', where the baseline goes, is there already; give another --out.", settings.out));
    }
  }
  settings.non_private = true;
  settings.epsilon.reset();
  settings.delta.reset();
  settings.adjacency.clear();
  settings.method = Choice(std::string(kAutoMethod));
  settings.tune.reset();
  settings.insecure_seed.reset();
  return settings;
}

FitOutcome Fitted(PreparedFit& fit) {
  std::unique_ptr<Progress> progress;
  FitOutcome outcome = RunFit(fit, [&](std::string_view what, double share) {
    if (what != "fit" || fit.selection) return;  // the time of a selection is secret
    if (!progress) progress = std::make_unique<Progress>("fit", 100);
    progress->Update(static_cast<std::uint64_t>(100 * share));
  });
  if (progress) progress->Finish();
  return outcome;
}

// One below the other, on the same public test set where there is one.
void PrintComparison(const FitOutcome& fit, const FitOutcome& baseline) {
  std::cout << "\nNOT PRIVATE: the same without noise, for public data and to compare with\n";
  std::vector<std::vector<std::string>> rows = {{"baseline", baseline.folder.string()}};
  if (fit.test && fit.test->accuracy) {
    rows.push_back(
        {"test accuracy", fmt::format("{:.2f}%, and {:.2f}% with privacy",
                                      100 * *baseline.test->accuracy, 100 * *fit.test->accuracy)});
  }
  if (fit.test && fit.test->error) {
    rows.push_back({"mean squared error", fmt::format("{:.6g}, and {:.6g} with privacy",
                                                      baseline.test->error->mean_squared,
                                                      fit.test->error->mean_squared)});
  }
  std::cout << AlignedTable(rows, 1);
}

void Run(const FitOptions& options) {
  const FitSettings settings = SettingsOf(options);
  PreparedFit fit = PrepareFit(settings);
  std::optional<PreparedFit> baseline;
  if (options.baseline) baseline = PrepareFit(BaselineOf(settings, options));
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
  const FitOutcome outcome = Fitted(fit);
  if (options.show_private && outcome.malformed > 0) {
    std::cerr << fmt::format(
        "sordino: {} rows that do not keep to the declaration were left out; this number is about "
        "the private data, keep it to yourself.\n",
        outcome.malformed);
  }
  std::optional<FitOutcome> compared;
  if (baseline) {
    if (baseline->settings.out.empty()) {
      baseline->settings.out = outcome.folder.string() + "-baseline";
    }
    compared = Fitted(*baseline);
  }
  if (options.json) {
    nlohmann::ordered_json json = FitOutcomeJson(outcome);
    if (compared) json["baseline"] = FitOutcomeJson(*compared);
    PrintReport(json, /*one_line=*/true);
    return;
  }
  PrintFitOutcome(outcome);
  if (compared) PrintComparison(outcome, *compared);
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
      .add_flag("--whole", s.whole,
                "Let the fit take all of the ledger's budget where nothing else admits it")
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

void AddBaselineFlags(CLI::App& command, FitOptions& o) {
  command
      .add_flag(
          "--baseline", o.baseline,
          "NOT PRIVATE: fit the model without noise too, beside the private one; for datasets "
          "by name, and with --public-data")
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
  command
      ->add_option("--on-error", o.settings.on_error,
                   "Rows of a table with a cell that was not declared so: refuse, or skip them")
      ->type_name("NAME")
      ->capture_default_str()
      ->group("Data");
  AddModelFlags(*command, o);
  AddBudgetFlags(*command, o.settings);
  AddBaselineFlags(*command, o);
  command
      ->add_option("--out", o.settings.out,
                   "The run folder; runs/<time>-<data>-logistic if left out")
      ->type_name("FOLDER")
      ->group("Run");
  AddPurposeFlags(*command, o.settings.purpose);
  command
      ->add_flag("--dry-run", o.dry_run,
                 "Predicted excess risk of every method, the records that they would need, and the "
                 "statement; reads no data")
      ->group("Run");
  AddRiskFlags(*command, o.risk);
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
  command->callback([options] { ReportErrors(options->show_private, [&] { Run(*options); }); });
}

}  // namespace sordino
