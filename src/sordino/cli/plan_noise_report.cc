#include "sordino/cli/plan_noise_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "sordino/cli/interval_text.h"
#include "sordino/cli/report_json.h"
#include "sordino/report/chart_picture.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kShownCoefficients = 6;

Json BandsJson(const BandsRow& row, const BandsRow& independent) {
  return {{"bands", row.bands},
          {"noise", row.noise.value()},
          {"epsilon", IntervalJson(row.epsilon)},
          {"rmse", row.rmse},
          {"ratio", row.rmse / independent.rmse}};
}

Json SampledBudgetJson(const SampledBudget& budget, const SampledBudgetPlan& plan) {
  Json json = {{"epsilon", budget.epsilon.value()},
               {"delta", budget.delta.value()},
               {"rate", budget.rate.value()},
               {"strategy", plan.sampled.strategy()},
               {"best", BandsJson(plan.sampled.best, plan.sampled.independent)},
               {"independent", BandsJson(plan.sampled.independent, plan.sampled.independent)},
               {"fixed_order",
                {{"noise", plan.fixed_noise},
                 {"rmse", plan.fixed_rmse},
                 {"ratio", plan.fixed_rmse / plan.sampled.independent.rmse}}}};
  json["bands"] = Json::array();
  for (const BandsRow& row : plan.sampled.rows) {
    json["bands"].push_back(BandsJson(row, plan.sampled.independent));
  }
  json["table"] = Json::array();
  for (const NoisePlanCell& cell : plan.cells) {
    json["table"].push_back({{"epochs", cell.epochs},
                             {"steps", cell.steps},
                             {"epsilon", cell.epsilon},
                             {"bands", cell.bands},
                             {"ratio", cell.ratio}});
  }
  return json;
}

std::string CoefficientText(const std::vector<double>& column) {
  if (column.empty()) return "";
  std::string text = "coefficients";
  for (std::size_t i = 0; i < std::min(column.size(), kShownCoefficients); ++i) {
    text += fmt::format(" {:.6g}", column[i]);
  }
  if (column.size() <= kShownCoefficients) return text + "\n";
  return text + fmt::format(" ... ({} in all, with --json)\n", column.size());
}

std::string BandsTable(const BandsChoice& choice) {
  std::vector<std::vector<std::string>> rows = {
      {"bands", "noise multiplier", "RMSE", "over independent noise"}};
  for (const BandsRow& row : choice.rows) {
    rows.push_back({fmt::format("{}", row.bands), fmt::format("{:.5g}", row.noise.value()),
                    fmt::format("{:.5g}", row.rmse),
                    fmt::format("{:.3f}", row.rmse / choice.independent.rmse)});
  }
  return AlignedTable(rows, 4);
}

// A row for each number of epochs, a column for each epsilon.
std::string CellTable(const std::vector<NoisePlanCell>& cells) {
  std::vector<double> columns;
  for (const NoisePlanCell& cell : cells) columns.push_back(cell.epsilon);
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  std::vector<std::vector<std::string>> rows = {{"epochs"}};
  for (const double epsilon : columns) rows[0].push_back(fmt::format("epsilon {:g}", epsilon));
  std::int64_t steps = 0;
  for (const NoisePlanCell& cell : cells) {
    if (cell.steps != steps) {
      steps = cell.steps;
      rows.push_back({fmt::format("{:g}", cell.epochs)});
      rows.back().resize(columns.size() + 1, "-");
    }
    const auto column = std::find(columns.begin(), columns.end(), cell.epsilon) - columns.begin();
    rows.back()[static_cast<std::size_t>(column) + 1] =
        fmt::format("{:.3f} ({})", cell.ratio, cell.bands);
  }
  return AlignedTable(rows, columns.size() + 1);
}

// What to do now.
std::string AfterNoisePlan(const NoisePlan& plan) {
  if (!plan.budget) {
    const std::string next =
        "Next: give --epsilon, --delta and --rate, and this says whether correlated noise pays.";
    return next;
  }
  const BandsChoice& choice = plan.budget->sampled;
  const double best = choice.best.rmse;
  if (plan.budget->fixed_rmse < best) {
    return fmt::format(
        "Next: keep a fixed order and train with 'sordino train --noise-correlation {}': its error "
        "is {:.3f} times that of Poisson sampling with independent noise.",
        plan.strategy->text(), plan.budget->fixed_rmse / choice.independent.rmse);
  }
  if (choice.best.bands == 1) {
    return "Next: train with independent noise; at this budget correlated noise is no better.";
  }
  return fmt::format(
      "Next: train with 'sordino train --noise-correlation {}': its error is {:.3f} times that of "
      "independent noise.",
      choice.strategy(), choice.Ratio());
}

}  // namespace

std::string NoisePlanJson(const NoisePlanQuestion& question, const NoisePlan& plan) {
  const Participation& pattern = plan.strategy->participation();
  Json json = NewReport();
  json["strategy"] = plan.strategy->text();
  json["steps"] = pattern.steps;
  json["separation"] = pattern.separation;
  json["participations"] = pattern.count;
  json["rmse"] = plan.rmse;
  json["max_error"] = plan.max_error;
  json["sensitivity"] = plan.sensitivity;
  json["independent_rmse"] = plan.independent_rmse;
  json["coefficients"] = plan.strategy->IsToeplitz() ? Json(plan.Coefficients()) : Json(nullptr);
  if (plan.budget) json["budget"] = SampledBudgetJson(*question.budget, *plan.budget);
  return json.dump(2) + "\n";
}

std::string NoisePlanText(const NoisePlanQuestion& question, const NoisePlan& plan) {
  const Participation& pattern = plan.strategy->participation();
  std::string text = fmt::format(
      "{}: {} steps, at most {} participations, {} steps apart\n"
      "RMSE {:.6g} ({:.3f} times that of independent noise), largest error {:.6g}, sensitivity "
      "{:.6g}\n",
      plan.strategy->text(), pattern.steps, pattern.count, pattern.separation, plan.rmse,
      plan.rmse / plan.independent_rmse, plan.max_error, plan.sensitivity);
  text += CoefficientText(plan.Coefficients());
  if (plan.budget) {
    text +=
        fmt::format("\nat epsilon {:g} and delta {:g}, cyclic Poisson sampling at rate {:g}\n{}",
                    question.budget->epsilon.value(), question.budget->delta.value(),
                    question.budget->rate.value(), BandsTable(plan.budget->sampled));
    text += fmt::format(
        "\nthe same budget in a fixed order with {}: noise multiplier {:.5g}, RMSE {:.5g}\n",
        plan.strategy->text(), plan.budget->fixed_noise, plan.budget->fixed_rmse);
    text += fmt::format(
        "\nRMSE over that of independent noise, and the best number of bands, at rate {:g}\n{}",
        question.budget->rate.value(), CellTable(plan.budget->cells));
  }
  return text + fmt::format("\n{}\n", AfterNoisePlan(plan));
}

std::string NoisePlanSvg(const NoisePlanQuestion& question, const NoisePlan& plan) {
  ChartPicture picture;
  picture.title = "When correlated noise pays";
  picture.caption =
      fmt::format("cyclic Poisson sampling at rate {:g}, delta {:g}, the best number of bands",
                  question.budget->rate.value(), question.budget->delta.value());
  picture.x.label = "epsilon";
  picture.x.logarithmic = true;
  picture.y.label = "RMSE over independent noise";
  std::int64_t steps = 0;
  for (const NoisePlanCell& cell : plan.budget->cells) {
    if (cell.steps != steps) {
      steps = cell.steps;
      picture.curves.emplace_back().name = fmt::format("{:g} epochs", cell.epochs);
    }
    picture.curves.back().points.push_back({.x = cell.epsilon, .y = cell.ratio});
  }
  return ChartSvg(picture);
}

}  // namespace sordino
