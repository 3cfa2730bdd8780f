#include "sordino/cli/plan_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/output_file.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/report/plan_picture.h"
#include "sordino/theory/convergence.h"
#include "sordino/theory/momentum.h"
#include "sordino/theory/noise_schedule.h"
#include "sordino/theory/published_bounds.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMaxScheduleSteps = 1'000'000;

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
  bool force = false;
  bool json = false;

  bool HasConstants() const {
    return records || dimension || lipschitz || smoothness || strong_convexity || initial_gap;
  }
};

// R, and where it came from.
struct PlanBudget {
  double value = 1;
  bool given = false;                 // else noise is in units of 1 / sqrt(R)
  std::optional<double> epsilon;      // that it was made for
  std::optional<double> zcdp_budget;  // what zero-concentrated privacy would allow
};

struct Plan {
  ConvergenceProblem problem;
  PlanBudget budget;
  Horizon uniform;
  Horizon dynamic;
  std::optional<MomentumProblem> momentum;
  std::optional<MomentumProblem::Best> momentum_best;
  std::optional<std::int64_t> steps;  // asked for
  std::int64_t schedule_steps = 0;
  std::vector<double> influence;  // empty where there are too many steps to list
  std::vector<double> noise;
  std::vector<PublishedBound> table;

  double UniformBound(std::int64_t at) const {
    return momentum ? momentum->UniformBound(at) : problem.UniformBound(static_cast<double>(at));
  }
  double DynamicBound(std::int64_t at) const {
    return momentum ? momentum->DynamicBound(at) : problem.DynamicBound(static_cast<double>(at));
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
  const std::optional<double> value = BudgetOf(epsilon, delta);
  if (!value) {
    throw Error(fmt::format("no noise up to 1e12 meets epsilon {:g} at delta {:g}; allow more.",
                            epsilon.value(), delta.value()));
  }
  return {.value = *value,
          .given = true,
          .epsilon = epsilon.value(),
          .zcdp_budget = ZcdpBudgetOf(epsilon, delta)};
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
                           .epsilon = budget.epsilon};
}

std::int64_t StepsFrom(const std::string& text) {
  const std::uint64_t steps = ParseWhole("--steps", text);
  if (steps == 0 || steps > static_cast<std::uint64_t>(kMaxScheduleSteps)) {
    throw Error(
        fmt::format("--steps is {}; give a number from 1 to {}.", steps, kMaxScheduleSteps));
  }
  return static_cast<std::int64_t>(steps);
}

void RefuseNoStep(const Plan& plan) {
  const std::int64_t best =
      plan.momentum_best ? plan.momentum_best->dynamic.steps : plan.dynamic.steps;
  if (plan.steps || best > 0) return;
  throw Error(fmt::format(
      "the best number of steps is 0: with kappa {:g} and alpha {:g} the noise of a single step "
      "costs more than the step gains, so the budget allows no step; give a larger budget or more "
      "records.",
      plan.problem.kappa(), plan.problem.alpha()));
}

Plan MakePlan(const PlanFlags& flags) {
  const PlanBudget budget = BudgetFrom(flags);
  const ConvergenceProblem problem = ProblemFrom(flags, budget);
  Plan plan{.problem = problem,
            .budget = budget,
            .uniform = BestUniform(problem),
            .dynamic = BestDynamic(problem),
            .momentum = {},
            .momentum_best = {},
            .steps = {},
            .influence = {},
            .noise = {},
            .table = PublishedBounds(PublishedFrom(flags, budget))};
  if (flags.steps) plan.steps = StepsFrom(*flags.steps);
  if (flags.momentum) {
    plan.momentum.emplace(problem, ParseReal("--momentum", *flags.momentum),
                          Optional("--step-size", flags.step_size));
    if (!plan.steps) plan.momentum_best = plan.momentum->Minima();
  } else if (flags.step_size) {
    throw Error("--step-size is for --momentum; without it the step size is 1 / smoothness.");
  }
  RefuseNoStep(plan);
  plan.schedule_steps = plan.steps           ? *plan.steps
                        : plan.momentum_best ? plan.momentum_best->dynamic.steps
                                             : plan.dynamic.steps;
  if (plan.schedule_steps <= kMaxScheduleSteps) {
    plan.influence = plan.momentum ? plan.momentum->Influence(plan.schedule_steps)
                                   : problem.Influence(plan.schedule_steps);
    if (!(plan.influence.front() > 0)) {
      throw Error(fmt::format(
          "--steps is {}, and the first of so many steps have no influence on the result that a "
          "number can hold; give fewer, {} are best.",
          plan.schedule_steps, plan.dynamic.steps));
    }
    plan.noise = OptimalNoise(plan.influence, budget.value);
  }
  return plan;
}

Json HorizonJson(const Horizon& horizon) {
  Json json = {{"horizon", horizon.steps}, {"bound", horizon.bound}};
  if (horizon.formula_steps) {
    json["formula_horizon"] = *horizon.formula_steps;
    json["formula_bound"] = *horizon.formula_bound;
  }
  return json;
}

Json BudgetJson(const PlanBudget& budget) {
  Json json = {{"value", budget.value}, {"given", budget.given}};
  if (budget.zcdp_budget) {
    json["epsilon"] = *budget.epsilon;
    json["zcdp"] = *budget.zcdp_budget;
    json["gain_over_zcdp"] = budget.value / *budget.zcdp_budget;
  }
  return json;
}

// A million numbers are too many for a tree of JSON values: lists are written as text.
std::string ListText(const std::vector<double>& values) {
  if (values.empty()) return "null";
  std::string text = "[";
  text.reserve(values.size() * 22);
  for (const double value : values) fmt::format_to(std::back_inserter(text), "{},", value);
  text.back() = ']';
  return text;
}

void PrintJson(const Plan& plan) {
  Json json = NewReport();
  json["kappa"] = plan.problem.kappa();
  json["alpha"] = plan.problem.alpha();
  json["gamma"] = plan.problem.gamma();
  json["budget"] = BudgetJson(plan.budget);
  json["uniform"] = HorizonJson(plan.uniform);
  json["dynamic"] = HorizonJson(plan.dynamic);
  if (plan.momentum) {
    Json& momentum = json["momentum"] = {{"beta", plan.momentum->beta()},
                                         {"step_size", plan.momentum->step()},
                                         {"gamma", plan.momentum->gamma()},
                                         {"zeta", plan.momentum->Zeta()}};
    if (plan.momentum_best) {
      momentum["uniform"] = HorizonJson(plan.momentum_best->uniform);
      momentum["dynamic"] = HorizonJson(plan.momentum_best->dynamic);
    }
  }
  if (plan.steps) {
    json["at_steps"] = {{"steps", *plan.steps},
                        {"uniform", plan.UniformBound(*plan.steps)},
                        {"dynamic", plan.DynamicBound(*plan.steps)}};
  }
  for (const PublishedBound& row : plan.table) {
    json["table"].push_back({{"algorithm", row.algorithm},
                             {"order", row.order},
                             {"bound", row.bound ? Json(*row.bound) : Json()}});
  }
  json["schedule"] = {{"steps", plan.schedule_steps}};
  std::string text = json.dump(2);
  // Behind "steps" of the last object, in front of its closing braces.
  text.resize(text.rfind("\n  }"));
  text += fmt::format(",\n    \"noise\": {},\n    \"influence\": {}\n  }}\n}}\n",
                      ListText(plan.noise), ListText(plan.influence));
  std::cout << text;
}

std::string HorizonText(const std::optional<std::int64_t>& steps) {
  return steps ? fmt::format("{}", *steps) : "-";
}

void PrintText(const Plan& plan) {
  const auto number = [](double value) { return fmt::format("{:.6g}", value); };
  std::string text = fmt::format("kappa {:g}, alpha {:g}, gamma {:.8g}\n", plan.problem.kappa(),
                                 plan.problem.alpha(), plan.problem.gamma());
  if (plan.budget.zcdp_budget) {
    text += fmt::format(
        "budget R = {:.6g} by exact composition, {:.4g} times the {:.6g} of zero-concentrated "
        "privacy\n",
        plan.budget.value, plan.budget.value / *plan.budget.zcdp_budget, *plan.budget.zcdp_budget);
  }
  std::vector<std::vector<std::string>> rows = {
      {"schedule", "steps", "bound", "steps by formula", "bound there"}};
  const auto add = [&](const char* name, const Horizon& horizon) {
    rows.push_back({name, fmt::format("{}", horizon.steps), number(horizon.bound),
                    HorizonText(horizon.formula_steps),
                    horizon.formula_bound ? number(*horizon.formula_bound) : "-"});
  };
  add("uniform", plan.uniform);
  add("dynamic", plan.dynamic);
  if (plan.momentum_best) {
    add("uniform, momentum", plan.momentum_best->uniform);
    add("dynamic, momentum", plan.momentum_best->dynamic);
  }
  text += "\nbest number of steps, and the bound on the excess risk over the initial one\n" +
          AlignedTable(rows, 5);
  if (plan.steps) {
    text += fmt::format("\nwith {} steps: uniform {:.6g}, dynamic {:.6g}\n", *plan.steps,
                        plan.UniformBound(*plan.steps), plan.DynamicBound(*plan.steps));
  }
  if (!plan.noise.empty()) {
    text += fmt::format(
        "\nnoise of the best schedule over {} steps{}: {:.6g} at first, {:.6g} in the middle, "
        "{:.6g} at last (all of it with --json)\n",
        plan.schedule_steps, plan.budget.given ? "" : ", for a budget of 1", plan.noise.front(),
        plan.noise[plan.noise.size() / 2], plan.noise.back());
  }
  if (plan.table.front().bound) {
    std::vector<std::vector<std::string>> published = {{"algorithm", "bound", "order"}};
    for (const PublishedBound& row : plan.table) {
      published.push_back({std::string(row.algorithm), row.bound ? number(*row.bound) : "-",
                           std::string(row.order)});
    }
    text += "\npublished orders with every constant 1, to compare how they scale\n" +
            AlignedTable(published, 2);
  }
  std::cout << text;
}

PlanPicture PictureOf(const Plan& plan) {
  constexpr std::int64_t kPoints = 400;
  PlanPicture picture;
  const Horizon& uniform = plan.momentum_best ? plan.momentum_best->uniform : plan.uniform;
  const Horizon& dynamic = plan.momentum_best ? plan.momentum_best->dynamic : plan.dynamic;
  const std::int64_t last =
      std::max({uniform.steps, dynamic.steps, plan.schedule_steps}) * 3 / 2 + 2;
  for (std::int64_t i = 0; i <= kPoints; ++i) {
    const std::int64_t steps = last * i / kPoints;
    if (!picture.bounds.empty() && picture.bounds.back().steps == static_cast<double>(steps)) {
      continue;
    }
    picture.bounds.push_back(
        {static_cast<double>(steps), plan.UniformBound(steps), plan.DynamicBound(steps)});
  }
  picture.uniform_steps = static_cast<double>(uniform.steps);
  picture.dynamic_steps = static_cast<double>(dynamic.steps);
  picture.schedule_steps = static_cast<double>(plan.schedule_steps);
  picture.uniform_noise = std::sqrt(picture.schedule_steps / plan.budget.value);
  const std::size_t every = std::max<std::size_t>(1, plan.noise.size() / 300);
  for (std::size_t t = 0; t < plan.noise.size(); t += every) picture.noise.push_back(plan.noise[t]);
  picture.caption =
      fmt::format("kappa {:g}, alpha {:g}{}", plan.problem.kappa(), plan.problem.alpha(),
                  plan.momentum ? fmt::format(", momentum {:g}", plan.momentum->beta()) : "");
  return picture;
}

void Run(const PlanFlags& flags) {
  std::optional<OutputFile> picture;
  if (flags.picture) {
    picture.emplace(OutputRequest{"--picture", *flags.picture, kSvgPicture, flags.force},
                    std::span<const std::filesystem::path>());
  }
  const Plan plan = MakePlan(flags);
  if (picture) picture->Write(PlanSvg(PictureOf(plan)));
  if (flags.json) {
    PrintJson(plan);
  } else {
    PrintText(plan);
  }
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
  command->add_option("--steps", f.steps, "Number of steps; the best one if left out")
      ->type_name("N");
  command->add_option("--picture", f.picture, "Draw bounds and schedule to this SVG file")
      ->type_name("FILE");
  AddForceFlag(*command, f.force);
  command->add_flag("--json", f.json, "One JSON object on standard output");
  command->footer("Example:\n  sordino plan --kappa 10 --alpha 1e-4");
  command->callback([flags] { Run(*flags); });
}

}  // namespace sordino
