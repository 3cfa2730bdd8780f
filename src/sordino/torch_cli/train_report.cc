#include "sordino/torch_cli/train_report.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <optional>
#include <utility>

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

Json LedgerJson(const StatementFacts& facts) {
  Json json;
  json["file"] = facts.ledger;
  json["budget"] = {{"epsilon", NumberJson(facts.budget.epsilon.value())},
                    {"delta", facts.budget.delta.value()}};
  if (!facts.ledger_head.empty()) {
    json["epsilon"] = {{"lower", NumberJson(facts.ledger_epsilon.lower)},
                       {"upper", NumberJson(facts.ledger_epsilon.upper)}};
    json["head"] = facts.ledger_head;
    json["seeded_runs"] = facts.ledger_seeded;
  }
  return json;
}

std::string NoiseText(const RunResult& result) {
  const std::optional<AdaptiveFacts>& adaptive = result.facts.adaptive;
  if (!adaptive || adaptive->levels.empty()) return fmt::format("{:.6g}", result.noise_multiplier);
  return fmt::format("{:.6g} at first, {:.6g} at last, lowered {} times", adaptive->first_noise,
                     adaptive->levels.back().noise, adaptive->Lowered());
}

ReportRows NumberRows(const RunResult& result) {
  ReportRows rows;
  if (HasNoise(result.facts.privacy)) {
    rows.push_back(
        {"epsilon", fmt::format("{} at delta {:g}{}", UpperText(result.epsilon.upper), result.delta,
                                result.interrupted && result.facts.counts_whole
                                    ? ", of the whole plan, which counts"
                                    : "")});
    rows.push_back({"noise multiplier", NoiseText(result)});
  }
  rows.push_back({"sampling rate", fmt::format("{:.6g}", result.sampling_rate)});
  return rows;
}

}  // namespace

nlohmann::ordered_json ResultJson(const RunResult& result, bool dry_run) {
  Json json = NewReport();
  json["run"] = dry_run ? Json(nullptr) : Json(result.folder.string());
  json["epsilon"] = {{"lower", NumberJson(result.epsilon.lower)},
                     {"upper", NumberJson(result.epsilon.upper)}};
  json["delta"] = HasNoise(result.facts.privacy) ? Json(result.delta) : Json(nullptr);
  json["renyi_epsilon"] = result.renyi_epsilon ? NumberJson(*result.renyi_epsilon) : Json(nullptr);
  json["noise_multiplier"] = result.noise_multiplier;
  json["sampling_rate"] = result.sampling_rate;
  json["steps"] = result.steps;
  json["test_accuracy"] = result.test_accuracy ? Json(*result.test_accuracy) : Json(nullptr);
  AddQuality(json, "test_", result.test_quality);
  if (result.test_error) {
    json["test_mean_squared_error"] = NumberJson(result.test_error->mean_squared);
    json["test_mean_absolute_error"] = NumberJson(result.test_error->mean_absolute);
  }
  if (result.risk) json["risk"] = RiskJson(*result.risk);
  // Whole seconds: finer ones would tell the sizes of batches.
  json["seconds"] = std::floor(result.seconds);
  json["private"] = result.is_private;
  json["interrupted"] = result.interrupted;
  if (result.interrupted) {
    json["planned_steps"] = result.facts.planned_steps;
    json["counts_whole"] = result.facts.counts_whole;
    json["steps_epsilon"] = {{"lower", NumberJson(result.facts.steps_epsilon.lower)},
                             {"upper", NumberJson(result.facts.steps_epsilon.upper)}};
  }
  if (!result.facts.stopped_by.empty()) json["stopped_by_ledger"] = result.facts.stopped_by;
  if (result.facts.adaptive) {
    json["planned_steps"] = result.facts.planned_steps;
    json["noise_lowered"] = result.facts.adaptive->Lowered();
    json["last_noise_multiplier"] = result.facts.adaptive->levels.empty()
                                        ? result.noise_multiplier
                                        : result.facts.adaptive->levels.back().noise;
  }
  if (result.facts.lost_steps > 0) json["lost_steps"] = result.facts.lost_steps;
  if (!result.facts.ledger.empty()) json["ledger"] = LedgerJson(result.facts);
  if (result.audit) json["audit"] = Json::parse(AuditJson(*result.audit));
  if (!result.is_private) json["warning"] = NotPrivateWarning(result.facts.privacy);
  if (dry_run) {
    json["dry_run"] = true;
    json["event"] = result.facts.event;
    json["statement"] = Statement(result.facts);
  }
  return json;
}

void PrintResult(const RunResult& result, const ReportRows& more) {
  const std::string warning = NotPrivateWarning(result.facts.privacy);
  if (!warning.empty()) std::cout << warning << '\n';
  ReportRows rows = {{"run", result.folder.string()}};
  if (result.test_accuracy) {
    rows.push_back({"test accuracy", fmt::format("{:.2f}%", 100 * *result.test_accuracy)});
  }
  if (result.test_quality) {
    rows.push_back({"test quality", QualityText(*result.test_quality)});
  }
  if (result.test_error) {
    rows.push_back({"test error", fmt::format("mean squared {:.6g}, mean absolute {:.6g}",
                                              result.test_error->mean_squared,
                                              result.test_error->mean_absolute)});
  }
  if (result.risk) {
    for (auto& row : RiskRows(*result.risk)) rows.push_back(std::move(row));
  }
  for (auto& row : NumberRows(result)) rows.push_back(std::move(row));
  rows.insert(rows.end(), more.begin(), more.end());
  rows.push_back({"steps", result.interrupted
                               ? fmt::format("{}, stopped before all {}", result.steps,
                                             result.facts.planned_steps)
                           : result.steps < result.facts.planned_steps
                               ? fmt::format("{} of at most {}: the epsilon is spent", result.steps,
                                             result.facts.planned_steps)
                               : fmt::format("{}", result.steps)});
  if (!result.facts.stopped_by.empty()) {
    rows.push_back({"stopped", "by the ledger: " + result.facts.stopped_by});
  }
  if (result.facts.lost_steps > 0) {
    rows.push_back({"lost", fmt::format("{} steps that were charged before a crash",
                                        result.facts.lost_steps)});
  }
  if (!result.facts.ledger_head.empty()) {
    rows.push_back(
        {"ledger",
         fmt::format("{}: {} of epsilon {:g} at delta {:g} for all releases", result.facts.ledger,
                     UpperText(result.facts.ledger_epsilon.upper),
                     result.facts.budget.epsilon.value(), result.facts.budget.delta.value())});
  }
  if (result.audit) {
    rows.push_back(
        {"audit", fmt::format("{} canaries prove an epsilon of at least {}{}",
                              result.audit->canaries, LowerText(result.audit->every_update.epsilon),
                              result.audit->contradicts ? ", more than is claimed" : "")});
  }
  rows.push_back({"time", HumanDuration(std::floor(result.seconds))});
  std::cout << AlignedTable(rows, 1);
  if (warning.empty()) std::cout << '\n' << ShownLines(GuaranteeSentence(result.facts)) << '\n';
}

void PrintPlan(const RunResult& result, const ReportRows& more) {
  const std::string warning = NotPrivateWarning(result.facts.privacy);
  if (!warning.empty()) std::cout << warning << '\n';
  ReportRows rows = {{"model", result.facts.model}};
  rows.push_back({"plan", result.facts.plan});
  for (auto& row : NumberRows(result)) rows.push_back(std::move(row));
  rows.insert(rows.end(), more.begin(), more.end());
  rows.push_back({"steps", fmt::format("{}", result.steps)});
  if (!result.facts.event.empty()) rows.push_back({"event", result.facts.event});
  std::cout << AlignedTable(rows, 1) << '\n' << ShownLines(Statement(result.facts));
}

}  // namespace sordino
