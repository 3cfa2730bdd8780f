#include "sordino/cli/plan_noise_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/output_file.h"
#include "sordino/base/progress.h"
#include "sordino/cli/command_tree.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/plan_noise_report.h"
#include "sordino/cli/program.h"
#include "sordino/cli/value_flag.h"
#include "sordino/correlation/noise_plan.h"

namespace sordino {
namespace {

struct NoisePlanFlags {
  std::string steps;
  std::optional<std::string> separation;
  std::optional<std::string> participations;
  std::string strategy = "auto";
  std::optional<std::string> bands;
  std::string objective = "rmse";
  std::optional<std::string> epsilon;
  std::optional<std::string> delta;
  std::optional<std::string> rate;
  std::optional<std::string> picture;
  bool force = false;
  bool json = false;
};

std::int64_t NoisePlanWhole(const char* flag, const std::string& text) {
  return static_cast<std::int64_t>(ParseWhole(flag, text));
}

std::optional<SampledBudget> SampledBudgetFrom(const NoisePlanFlags& flags) {
  if (!flags.epsilon && !flags.delta && !flags.rate) return std::nullopt;
  if (!flags.epsilon || !flags.delta || !flags.rate) {
    throw Error(fmt::format("{} is missing; a budget is --epsilon with --delta and --rate.",
                            !flags.epsilon ? "--epsilon" : (!flags.delta ? "--delta" : "--rate")));
  }
  const SampledBudget budget{Epsilon(ParseReal("--epsilon", *flags.epsilon)),
                             Delta(ParseReal("--delta", *flags.delta)),
                             SamplingRate(ParseReal("--rate", *flags.rate))};
  CheckRange("--epsilon", budget.epsilon.value(), 0, true, kInfinity, true);
  CheckRange("--delta", budget.delta.value(), 0, true, 1, true);
  return budget;
}

NoisePlanQuestion NoisePlanQuestionFrom(const NoisePlanFlags& flags) {
  NoisePlanQuestion question;
  question.steps = NoisePlanWhole("--steps", flags.steps);
  if (flags.separation) question.separation = NoisePlanWhole("--separation", *flags.separation);
  if (flags.participations) {
    question.participations = NoisePlanWhole("--participations", *flags.participations);
  }
  question.strategy = flags.strategy;
  if (flags.bands) {
    if (flags.strategy.find(':') != std::string::npos || flags.strategy == "auto") {
      throw Error(fmt::format("--bands is for a strategy without a number; --strategy is '{}'.",
                              flags.strategy));
    }
    question.strategy += ":" + *flags.bands;
  }
  question.objective = static_cast<CorrelationObjective>(
      IndexOfName("--objective", flags.objective, kObjectiveNames));
  question.budget = SampledBudgetFrom(flags);
  return question;
}

void RunPlanNoise(const NoisePlanFlags& flags) {
  const NoisePlanQuestion question = NoisePlanQuestionFrom(flags);
  std::optional<OutputFile> picture;
  if (flags.picture) {
    if (!question.budget) {
      throw Error(
          "--picture shows when correlated noise pays; give --epsilon, --delta and --rate.");
    }
    picture.emplace(OutputRequest{"--picture", *flags.picture, kSvgPicture, flags.force},
                    std::span<const std::filesystem::path>());
  }
  std::optional<Progress> bar;
  const NoisePlan plan = PlanNoise(question, [&bar](std::uint64_t done, std::uint64_t total) {
    if (!bar) bar.emplace("choosing bands", total);
    bar->Update(done);
  });
  bar.reset();
  if (picture) picture->Write(NoisePlanSvg(question, plan));
  std::cout << (flags.json ? NoisePlanJson(question, plan) : NoisePlanText(question, plan));
}

}  // namespace

void AddPlanNoiseCommand(CLI::App& plan) {
  CLI::App* command = plan.add_subcommand(
      "noise", "Correlated noise: its error, its sensitivity, and when it pays.");
  const auto flags = std::make_shared<NoisePlanFlags>();
  NoisePlanFlags& f = *flags;
  const auto number = [command](const char* name, auto& field, const char* help) {
    return command->add_option(name, field, help)->type_name("N");
  };
  number("--steps", f.steps, "Number of steps")->required();
  number("--separation", f.separation,
         "Steps from one participation of a record to its next, at least (an epoch with --rate)");
  number("--participations", f.participations, "Of a record, at most (as many as fit)");
  std::vector<std::string_view> names = {"auto"};
  const auto& known = Strategies().names();
  names.insert(names.end(), known.begin(), known.end());
  SetChoices(*AddValue(*command, "--strategy", f.strategy, "NAME",
                       "auto, " + Strategies().ChoiceHelp() + " (auto)"),
             names);
  number("--bands", f.bands, "Of the strategy: bands or buffers");
  SetChoices(*AddValue(*command, "--objective", f.objective, "NAME",
                       "What is made small: rmse or max-error (rmse)"),
             kObjectiveNames);
  const auto real = [command](const char* name, std::optional<std::string>& field,
                              const char* help) {
    command->add_option(name, field, help)->type_name("X");
  };
  real("--epsilon", f.epsilon, "The epsilon that may be spent, with --delta and --rate");
  real("--delta", f.delta, "The delta that may be spent");
  real("--rate", f.rate, "Expected batch over records");
  AddValue(*command, "--picture", f.picture, "FILE", "Draw when it pays to this SVG file");
  AddForceFlag(*command, f.force);
  command->add_flag("--json", f.json, "One JSON object on standard output");
  command->footer(
      "Examples:\n  sordino plan noise --steps 1000 --separation 100 --strategy banded --bands 32\n"
      "  sordino plan noise --steps 1000 --rate 0.01 --epsilon 4 --delta 1e-6");
  command->callback([flags] { RunPlanNoise(*flags); });
}

}  // namespace sordino
