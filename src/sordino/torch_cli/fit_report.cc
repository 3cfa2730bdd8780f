#include "sordino/torch_cli/fit_report.h"

#include <fmt/format.h>

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "sordino/base/progress.h"
#include "sordino/base/shown_text.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/torch_cli/class_quality_report.h"
#include "sordino/torch_cli/risk_report.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

// A mean loss of so much above the best is what --dry-run asks the number of records for.
constexpr double kGoodExcessRisk = 0.05;

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
          {"head", facts.ledger_head},
          {"seeded_runs", facts.ledger_seeded}};
}

bool IsWithoutPrivacy(const FitFacts& facts) { return facts.privacy == RunPrivacy::kNonPrivate; }

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
  if (outcome.test_quality) {
    rows.push_back({"test quality", QualityText(*outcome.test_quality)});
  }
  if (outcome.test && outcome.test->error) {
    rows.push_back({"test error", fmt::format("mean squared {:.6g}, mean absolute {:.6g}",
                                              outcome.test->error->mean_squared,
                                              outcome.test->error->mean_absolute)});
  }
  if (outcome.risk) {
    for (auto& row : RiskRows(*outcome.risk)) rows.push_back(std::move(row));
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

std::string RecordsText(const std::optional<double>& records) {
  return records ? fmt::format("{:.0f}", *records) : "-";
}

}  // namespace

nlohmann::ordered_json FitOutcomeJson(const FitOutcome& outcome) {
  Json json = NewReport();
  json["run"] = outcome.folder.string();
  json["method"] = outcome.plan.method.name;
  json["coefficients"] = CoefficientsJson(outcome);
  json["intervals"] = IntervalsJson(outcome);
  json["epsilon"] = IntervalJson(outcome.epsilon);
  json["delta"] = IsWithoutPrivacy(outcome.facts) ? Json(nullptr) : Json(outcome.delta);
  json["test_accuracy"] =
      outcome.test && outcome.test->accuracy ? Json(*outcome.test->accuracy) : Json(nullptr);
  AddQuality(json, "test_", outcome.test_quality);
  if (outcome.test && outcome.test->error) {
    json["test_mean_squared_error"] = NumberJson(outcome.test->error->mean_squared);
    json["test_mean_absolute_error"] = NumberJson(outcome.test->error->mean_absolute);
  }
  if (outcome.risk) json["risk"] = RiskJson(*outcome.risk);
  json["predicted_excess_risk"] = RisksJson(outcome.plans);
  json["certificate"] = CertificateJson(outcome.plan);
  json["plan"] = PlanJson(outcome.plan, outcome.facts);
  json["seconds"] = outcome.seconds ? Json(*outcome.seconds) : Json(nullptr);
  json["private"] = outcome.is_private;
  if (!outcome.facts.ledger.empty()) json["ledger"] = LedgerOf(outcome.facts);
  if (!outcome.is_private) json["warning"] = NotPrivateWarning(outcome.facts.privacy);
  return json;
}

void PrintFitOutcome(const FitOutcome& outcome) {
  const std::string warning = NotPrivateWarning(outcome.facts.privacy);
  if (!warning.empty()) std::cout << warning << '\n';
  std::cout << AlignedTable(OutcomeRows(outcome), 1);
  if (!outcome.coefficients.empty()) {
    std::cout << '\n' << AlignedTable(CoefficientRows(outcome), 1);
  }
  if (warning.empty()) std::cout << '\n' << ShownLines(FitGuarantee(outcome.facts)) << '\n';
}

void PrintFitPlans(const PreparedFit& fit) {
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
  std::cout << AlignedTable(rows, 1) << '\n' << ShownLines(FitStatement(facts));
}

nlohmann::ordered_json FitPlansJson(const PreparedFit& fit) {
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

}  // namespace sordino
