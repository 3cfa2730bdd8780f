#include "sordino/cli/plan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sordino/base/error.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/report_json.h"
#include "sordino/schedules/schedule_table.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

Json OptionalJson(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json HorizonJson(const Horizon& horizon) {
  Json json = {{"horizon", horizon.steps}, {"bound", horizon.bound}};
  if (horizon.formula_steps) {
    json["formula_horizon"] = *horizon.formula_steps;
    json["bound_at_formula_horizon"] = *horizon.bound_at_formula;
  }
  if (horizon.published) {
    json["published_order"] = {{"value", horizon.published->value},
                               {"least_constant", horizon.published->least},
                               {"largest_constant", horizon.published->most}};
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

std::string HorizonText(const std::optional<std::int64_t>& steps) {
  return steps ? fmt::format("{}", *steps) : "-";
}

std::string CaptionOf(const Plan& plan) {
  return fmt::format("kappa {:g}, alpha {:g}{}", plan.problem.kappa(), plan.problem.alpha(),
                     plan.momentum ? fmt::format(", momentum {:g}", plan.momentum->beta()) : "");
}

// What to do with the schedule.
std::string AfterPlan(const Plan& plan) {
  if (plan.noise.empty()) {
    return fmt::format(
        "Next: give --steps up to {}: the best schedule is too long to be written to a file.",
        kMaxScheduleSteps);
  }
  return fmt::format(
      "Next: with --schedule-out FILE this writes the schedule, and 'sordino train --data FILE "
      "--steps {} --noise-schedule file:FILE --epsilon X --delta X' trains by it.",
      plan.schedule_steps);
}

}  // namespace

std::string PlanJson(const Plan& plan) {
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
                             {"bound", OptionalJson(row.bound)},
                             {"noise_variance", row.schedule},
                             {"first_variance", OptionalJson(row.first_variance)},
                             {"last_variance", OptionalJson(row.last_variance)}});
  }
  json["schedule"] = {{"steps", plan.schedule_steps}};
  std::string text = json.dump(2);
  // Behind "steps" of the last object, in front of its closing braces.
  text.resize(text.rfind("\n  }"));
  text += fmt::format(",\n    \"noise\": {},\n    \"influence\": {}\n  }}\n}}\n",
                      ListText(plan.noise), ListText(plan.influence));
  return text;
}

std::string PlanText(const Plan& plan) {
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
      {"schedule", "steps", "bound", "steps by formula", "bound there", "order", "constants"}};
  const auto add = [&](const char* name, const Horizon& horizon) {
    rows.push_back({name, fmt::format("{}", horizon.steps), number(horizon.bound),
                    HorizonText(horizon.formula_steps),
                    horizon.bound_at_formula ? number(*horizon.bound_at_formula) : "-",
                    horizon.published ? number(horizon.published->value) : "-",
                    horizon.published ? fmt::format("{:.4g} to {:.4g}", horizon.published->least,
                                                    horizon.published->most)
                                      : "-"});
  };
  add("uniform", plan.uniform);
  add("dynamic", plan.dynamic);
  if (plan.momentum_best) {
    add("uniform, momentum", plan.momentum_best->uniform);
    add("dynamic, momentum", plan.momentum_best->dynamic);
  }
  text += "\nbest number of steps, and the bound on the excess risk over the initial one\n" +
          AlignedTable(rows, 7) +
          "order: Eq. 9 and 12 of Hong, Wang and Zhou; the bound is between the constants times "
          "it\n";
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
    const auto cell = [&](const std::optional<double>& value) {
      return value ? number(*value) : "-";
    };
    std::vector<std::vector<std::string>> bounds = {{"algorithm", "bound", "order"}};
    std::vector<std::vector<std::string>> noise = {{"algorithm", "at first", "at last", "order"}};
    for (const PublishedBound& row : plan.table) {
      const std::string name(row.algorithm);
      bounds.push_back({name, cell(row.bound), std::string(row.order)});
      noise.push_back(
          {name, cell(row.first_variance), cell(row.last_variance), std::string(row.schedule)});
    }
    text += "\npublished orders with every constant 1, to compare how they scale\n" +
            AlignedTable(bounds, 2) +
            fmt::format("\ntheir noise variances sigma_t^2 over T = {} steps, likewise\n",
                        plan.schedule_steps) +
            AlignedTable(noise, 3);
    if (!plan.noise.empty()) {
      const auto square = [&](double value) { return number(value * value); };
      text += fmt::format("the schedule above: {} at first, {} at last; equal noise: {}\n",
                          square(plan.noise.front()), square(plan.noise.back()),
                          number(static_cast<double>(plan.schedule_steps) / plan.budget.value));
    }
  }
  text += fmt::format("\n{}\n", AfterPlan(plan));
  return text;
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
  picture.caption = CaptionOf(plan);
  return picture;
}

std::string ScheduleFileOf(const Plan& plan) {
  if (plan.noise.empty()) {
    throw Error(
        fmt::format("the best schedule has {} steps, too many for a file; give --steps up to {}.",
                    plan.schedule_steps, kMaxScheduleSteps));
  }
  const std::string comment = fmt::format(
      "{}; {}", CaptionOf(plan),
      plan.budget.given ? fmt::format("budget R = {}", plan.budget.value) : "for a budget of 1");
  return ScheduleTableText(comment, "noise", plan.noise);
}

}  // namespace sordino
