#include "sordino/cli/plan_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "sordino/base/error.h"
#include "sordino/base/output_file.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/plan_clipping_command.h"
#include "sordino/cli/plan_noise_command.h"
#include "sordino/cli/plan_report.h"
#include "sordino/cli/plan_trials_command.h"
#include "sordino/cli/program.h"
#include "sordino/cli/value_flag.h"
#include "sordino/schedules/schedule_table.h"
#include "sordino/theory/step_plan.h"

namespace sordino {
namespace {

struct PlanFlags {
  std::optional<std::string> kappa;
  std::optional<std::string> alpha;
  std::optional<std::string> records;
  std::optional<std::string> dimension;
  std::optional<std::string> lipschitz;
  std::optional<std::string> smoothness;
  std::optional<std::string> strong_convexity;
  std::optional<std::string> initial_gap;
  std::optional<std::string> epsilon;
  std::optional<std::string> delta;
  std::optional<std::string> budget;
  std::optional<std::string> momentum;
  std::optional<std::string> step_size;
  std::optional<std::string> steps;
  std::optional<std::string> picture;
  std::optional<std::string> schedule_out;
  bool force = false;
  bool json = false;

  bool HasConstants() const {
    return records || dimension || lipschitz || smoothness || strong_convexity || initial_gap;
  }
};

double Required(const char* flag, const std::optional<std::string>& text) {
  if (!text) {
    throw Error(fmt::format(
        "{} is missing; a problem is --kappa with --alpha, or --records, --dimension, "
        "--lipschitz, --smoothness, --strong-convexity and --initial-gap with a budget.",
        flag));
  }
  return ParseReal(flag, *text);
}

std::optional<double> Optional(const char* flag, const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return ParseReal(flag, *text);
}

PlanBudget BudgetFrom(const PlanFlags& flags) {
  if (flags.budget && (flags.epsilon || flags.delta)) {
    throw Error(
        "--budget and --epsilon are two budgets; give --budget, or --epsilon with --delta.");
  }
  PlanBudget budget;
  if (flags.budget) {
    budget.value = ParseReal("--budget", *flags.budget);
    budget.given = true;
    CheckRange("--budget", budget.value, 0, true, kInfinity, true);
  }
  if (!flags.epsilon && !flags.delta) return budget;
  if (!flags.epsilon || !flags.delta) {
    throw Error(fmt::format("{} is missing; the budget is --epsilon together with --delta.",
                            flags.epsilon ? "--delta" : "--epsilon"));
  }
  const Epsilon epsilon(ParseReal("--epsilon", *flags.epsilon));
  const Delta delta(ParseReal("--delta", *flags.delta));
  CheckRange("--delta", delta.value(), 0, true, 1, true);
  return PlanBudgetOf(epsilon, delta);
}

ConvergenceProblem ProblemFrom(const PlanFlags& flags, const PlanBudget& budget) {
  if (!flags.HasConstants()) {
    return {Required("--kappa", flags.kappa), Required("--alpha", flags.alpha)};
  }
  if (flags.kappa || flags.alpha) {
    throw Error(
        "--kappa and --alpha follow from the constants of the problem; give them, or the constants "
        "(--records, --dimension, --lipschitz, --smoothness, --strong-convexity, --initial-gap).");
  }
  if (!budget.given) {
    throw Error("there is no budget; give --epsilon with --delta, or --budget.");
  }
  return ConvergenceProblem::Of(
      {.records = Required("--records", flags.records),
       .dimension = Required("--dimension", flags.dimension),
       .lipschitz = Required("--lipschitz", flags.lipschitz),
       .smoothness = Required("--smoothness", flags.smoothness),
       .strong_convexity = Required("--strong-convexity", flags.strong_convexity),
       .initial_gap = Required("--initial-gap", flags.initial_gap),
       .budget = budget.value});
}

std::optional<PublishedQuestion> PublishedFrom(const PlanFlags& flags, const PlanBudget& budget) {
  if (!flags.HasConstants()) return std::nullopt;
  return PublishedQuestion{.records = Required("--records", flags.records),
                           .dimension = Required("--dimension", flags.dimension),
                           .budget = budget.value,
                           .epsilon = budget.epsilon,
                           .delta = Optional("--delta", flags.delta)};
}

std::int64_t StepsFrom(const std::string& text) {
  const std::uint64_t steps = ParseWhole("--steps", text);
  if (steps == 0 || steps > static_cast<std::uint64_t>(kMaxScheduleSteps)) {
    throw Error(
        fmt::format("--steps is {}; give a number from 1 to {}.", steps, kMaxScheduleSteps));
  }
  return static_cast<std::int64_t>(steps);
}

Plan PlanFrom(const PlanFlags& flags) {
  const PlanBudget budget = BudgetFrom(flags);
  const ConvergenceProblem problem = ProblemFrom(flags, budget);
  StepPlanOptions options{.step_size = Optional("--step-size", flags.step_size),
                          .published = PublishedFrom(flags, budget)};
  if (flags.steps) options.steps = StepsFrom(*flags.steps);
  options.momentum = Optional("--momentum", flags.momentum);
  if (flags.step_size && !flags.momentum) {
    throw Error("--step-size is for --momentum; without it the step size is 1 / smoothness.");
  }
  return MakePlan(problem, budget, options);
}

// Claimed before anything is computed, so that a file which may not be written is told at once.
std::optional<OutputFile> OutputOf(const char* flag, const std::optional<std::string>& path,
                                   const OutputKind& kind, bool force) {
  if (!path) return std::nullopt;
  return std::make_optional<OutputFile>(OutputRequest{flag, *path, kind, force},
                                        std::span<const std::filesystem::path>());
}

void Run(const PlanFlags& flags) {
  std::optional<OutputFile> picture =
      OutputOf("--picture", flags.picture, kSvgPicture, flags.force);
  std::optional<OutputFile> schedule =
      OutputOf("--schedule-out", flags.schedule_out, kScheduleFile, flags.force);
  const Plan plan = PlanFrom(flags);
  if (picture) picture->Write(PlanSvg(PictureOf(plan)));
  if (schedule) schedule->Write(ScheduleFileOf(plan));
  std::cout << (flags.json ? PlanJson(plan) : PlanText(plan));
}

}  // namespace

void AddPlanCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "plan", "How many steps, and which noise in each, spend a budget best, by theory.");
  const auto flags = std::make_shared<PlanFlags>();
  PlanFlags& f = *flags;
  const auto number = [command](const char* name, std::optional<std::string>& field,
                                const char* help) {
    command->add_option(name, field, help)->type_name("NUMBER");
  };
  number("--kappa", f.kappa, "Condition number: smoothness over strong convexity");
  number("--alpha", f.alpha, "Noise of one step over the initial excess risk");
  number("--records", f.records, "Number of records, instead of --alpha");
  number("--dimension", f.dimension, "Number of parameters");
  number("--lipschitz", f.lipschitz, "Bound on the gradient of a record, the clipping norm");
  number("--smoothness", f.smoothness, "Lipschitz constant of the gradient");
  number("--strong-convexity", f.strong_convexity, "Or the constant of Polyak and Lojasiewicz");
  number("--initial-gap", f.initial_gap, "Loss at the start over the least loss");
  number("--epsilon", f.epsilon, "The epsilon that may be spent, with --delta");
  number("--delta", f.delta, "The delta that may be spent");
  number("--budget", f.budget, "Sum of 1 / noise^2 over the steps, instead of --epsilon");
  number("--momentum", f.momentum, "Debiased momentum of this decay");
  number("--step-size", f.step_size,
         "With --momentum: times 1 / smoothness; the largest if left out");
  AddValue(*command, "--steps", f.steps, "N", "Number of steps; the best one if left out");
  AddValue(*command, "--picture", f.picture, "FILE", "Draw bounds and schedule to this SVG file");
  AddValue(*command, "--schedule-out", f.schedule_out, "FILE",
           "Write the noise of each step to this CSV file, for 'sordino train "
           "--noise-schedule file:FILE'");
  AddForceFlag(*command, f.force);
  command->add_flag("--json", f.json, "One JSON object on standard output");
  command->footer(
      "Examples:\n  sordino plan --kappa 10 --alpha 1e-4\n  sordino plan --learn public.toml "
      "--schedule-out learned.csv");
  AddPlanNoiseCommand(*command);
  AddPlanTrialsCommands(*command);
  AddPlanClippingCommand(*command);
  command->callback([flags, command] {
    if (command->get_subcommands().empty()) Run(*flags);
  });
}

}  // namespace sordino
