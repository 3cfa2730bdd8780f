#include "sordino/cli/plan_trials_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/cli/command_tree.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/value_flag.h"
#include "sordino/mechanisms/mean_trials.h"
#include "sordino/random/generator.h"
#include "sordino/theory/private_descent.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMaxDescentSeeds = 10'000;

// Flags that both commands have.
struct TrialFlags {
  std::string records;
  std::string epsilon;
  bool json = false;

  void AddTo(CLI::App& command) {
    AddValue(command, "--records", records, "N", "Number of records")->required();
    AddValue(command, "--epsilon", epsilon, "X", "The epsilon that is spent")->required();
    command.add_flag("--json", json, "One JSON object on standard output");
  }
};

Delta DeltaOf(const std::string& text) {
  const double delta = ParseReal("--delta", text);
  CheckRange("--delta", delta, 0, true, 1, true);
  return Delta(delta);
}

struct MeanFlags : TrialFlags {
  std::string kind = "binary";
  std::string dimension = "1";
  std::optional<std::string> delta;
  std::optional<std::string> trials;
  std::string seed = "1";
};

MeanQuestion QuestionOf(const MeanFlags& flags) {
  MeanQuestion question;
  question.kind = static_cast<MeanKind>(IndexOfName("--kind", flags.kind, kMeanKindNames));
  question.records = ParseWhole("--records", flags.records);
  question.dimension = ParseWhole("--dimension", flags.dimension);
  question.epsilon = Epsilon(ParseReal("--epsilon", flags.epsilon));
  if (flags.delta) question.delta = DeltaOf(*flags.delta);
  return question;
}

void PrintText(const Json& report) {
  for (const auto& [key, value] : report.items()) {
    if (key == "schema" || value.is_structured()) continue;
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    std::cout << fmt::format("{}: {}\n", key, text);
  }
}

void PlanMean(const MeanFlags& flags) {
  const MeanQuestion question = QuestionOf(flags);
  const PredictedMeanError predicted = PredictMeanError(question);
  Json report = NewReport();
  report["kind"] = flags.kind;
  report["records"] = question.records;
  report["dimension"] = question.dimension;
  report["predicted"] = NumberJson(predicted.error);
  report["published"] = std::isnan(predicted.published) ? Json(nullptr) : Json(predicted.published);
  report["without_privacy"] = predicted.without_privacy;
  if (flags.trials) {
    SecureGenerator noise;
    const MeasuredMeanError measured = MeasureMeanError(
        question, ParseWhole("--trials", *flags.trials), ParseWhole("--seed", flags.seed), noise);
    report["measured"] = measured.error;
    report["measured_standard_error"] = measured.standard_error;
  }
  if (flags.json) {
    PrintReport(report);
    return;
  }
  PrintText(report);
  std::cout << fmt::format(
      "\nNext: 'sordino release FILE {} --epsilon {:g}' makes such a mean of a table of your "
      "own.\n",
      question.kind == MeanKind::kVector ? "--vector-mean COLUMNS --clip-norm 1"
                                         : "--mean COLUMN --bounds 0,1",
      question.epsilon.value());
}

struct DescentFlags : TrialFlags {
  std::string problem = "quadratic";
  std::string delta;
  std::string seeds = "20";
  std::optional<std::string> momentum;
  bool influence = false;
};

// What was found for one way to spread the budget over the steps.
struct ScheduleRisk {
  const char* key;
  const char* words;
  std::int64_t steps;
  double bound;
  double measured;
};

std::array<ScheduleRisk, 2> SchedulesOf(const MeasuredRisk& risk) {
  return {{{"uniform", "the same noise in all steps", risk.uniform_steps, risk.uniform_bound,
            risk.uniform},
           {"dynamic", "the best schedule", risk.dynamic_steps, risk.dynamic_bound, risk.dynamic}}};
}

Json RiskJson(const MeasuredRisk& risk) {
  Json json;
  for (const ScheduleRisk& schedule : SchedulesOf(risk)) {
    json[schedule.key] = {
        {"steps", schedule.steps}, {"bound", schedule.bound}, {"measured", schedule.measured}};
  }
  return json;
}

void PrintRisk(const MeasuredRisk& risk, const std::string& name) {
  for (const ScheduleRisk& schedule : SchedulesOf(risk)) {
    std::cout << fmt::format("{}{}: {} steps, bound {:.4g}, measured {:.4g}\n", name,
                             schedule.words, schedule.steps, schedule.bound, schedule.measured);
  }
}

void PlanDescent(const DescentFlags& flags) {
  const std::size_t name = IndexOfName("--problem", flags.problem, kDescentProblemNames);
  const Epsilon epsilon(ParseReal("--epsilon", flags.epsilon));
  const Delta delta = DeltaOf(flags.delta);
  const std::optional<double> budget = BudgetOf(epsilon, delta);
  if (!budget) {
    throw Error(fmt::format("no noise up to 1e12 meets epsilon {:g} at delta {:g}; allow more.",
                            epsilon.value(), delta.value()));
  }
  const std::uint64_t seeds = ParseWhole("--seeds", flags.seeds);
  if (seeds < 1 || seeds > kMaxDescentSeeds) {
    throw Error(fmt::format("--seeds is {}; give a number from 1 to {}.", seeds, kMaxDescentSeeds));
  }
  const auto problem = MakeDescentProblem(name, ParseReal("--records", flags.records));
  const MeasuredRisk risk = MeasureRisk(*problem, *budget, static_cast<int>(seeds));
  Json report = NewReport();
  report["problem"] = flags.problem;
  report["records"] = problem->records();
  report["dimension"] = problem->dimension();
  report["budget"] = *budget;
  report.update(RiskJson(risk));
  std::optional<MeasuredRisk> momentum;
  if (flags.momentum) {
    momentum = MeasureMomentumRisk(*problem, *budget, ParseReal("--momentum", *flags.momentum),
                                   static_cast<int>(seeds));
    report["momentum"] = RiskJson(*momentum);
  }
  if (flags.influence) {
    const MeasuredInfluence influence =
        MeasureInfluence(*problem, *budget, static_cast<int>(seeds));
    report["influence"] = {{"predicted", influence.predicted}, {"measured", influence.measured}};
  }
  if (flags.json) {
    PrintReport(report);
    return;
  }
  std::cout << "Excess risk over the initial one:\n";
  PrintRisk(risk, "");
  if (momentum) PrintRisk(*momentum, "with momentum, ");
  std::cout
      << (risk.dynamic < risk.uniform
              ? "\nNext: 'sordino train --noise-schedule optimal' spreads a budget so; 'sordino "
                "plan learn' finds the schedule of your own model on public data.\n"
              : "\nNext: train with the same noise in all steps; here the best schedule is no "
                "better.\n");
}

void AddPlanMean(CLI::App& plan) {
  CLI::App* command = plan.add_subcommand(
      "mean", "The error of a private mean: predicted, and measured on records that are made up.");
  const auto flags = std::make_shared<MeanFlags>();
  MeanFlags& f = *flags;
  SetChoices(*AddValue(*command, "--kind", f.kind, "NAME", "binary, scalar or vector (binary)"),
             kMeanKindNames);
  AddValue(*command, "--dimension", f.dimension, "D", "Numbers of a vector (1)");
  AddValue(*command, "--delta", f.delta, "X", "The delta of Gaussian noise, for vectors");
  AddValue(*command, "--trials", f.trials, "N", "Measure so many releases too");
  AddValue(*command, "--seed", f.seed, "N", "Of the made-up records; the noise has none (1)");
  f.AddTo(*command);
  command->footer(
      "Example:\n  sordino plan mean --kind scalar --records 1000 --epsilon 0.5 --trials 500");
  command->callback([flags] { PlanMean(*flags); });
}

void AddPlanDescent(CLI::App& plan) {
  CLI::App* command = plan.add_subcommand(
      "descent", "The excess risk of private descent: bounded, and measured on a made-up problem.");
  const auto flags = std::make_shared<DescentFlags>();
  DescentFlags& f = *flags;
  SetChoices(
      *AddValue(*command, "--problem", f.problem, "NAME", "quadratic or logistic (quadratic)"),
      kDescentProblemNames);
  AddValue(*command, "--delta", f.delta, "X", "The delta that is spent")->required();
  AddValue(*command, "--seeds", f.seeds, "N", "Runs that are averaged (20)");
  AddValue(*command, "--momentum", f.momentum, "X", "Debiased momentum of this decay beside it");
  command->add_flag("--influence", f.influence,
                    "With --json: the influence of the noise of each step");
  f.AddTo(*command);
  command->footer("Example:\n  sordino plan descent --records 10000 --epsilon 1 --delta 1e-5");
  command->callback([flags] { PlanDescent(*flags); });
}

}  // namespace

void AddPlanTrialsCommands(CLI::App& plan) {
  AddPlanMean(plan);
  AddPlanDescent(plan);
  plan.require_subcommand(0, 1);
}

}  // namespace sordino
