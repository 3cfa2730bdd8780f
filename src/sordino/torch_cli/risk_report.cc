#include "sordino/torch_cli/risk_report.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sordino/base/error.h"
#include "sordino/torch_cli/public_data.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

// The risk of the loss 1{f(x) != y}.
std::optional<double> ErrorRate(const TestMetrics& metrics) {
  if (!metrics.accuracy) return std::nullopt;
  return 1 - *metrics.accuracy;
}

Json MetricsJson(const TestMetrics& metrics) {
  Json json = {{"loss", metrics.loss}};
  if (const auto rate = ErrorRate(metrics)) json["error_rate"] = *rate;
  return json;
}

std::string MetricsText(const TestMetrics& metrics) {
  const auto rate = ErrorRate(metrics);
  return fmt::format("mean loss {:.6g}{}", metrics.loss,
                     rate ? fmt::format(", {:.2f}% wrong", 100 * *rate) : "");
}

// Of losses and of error rates.
TestMetrics GapOf(const TrainingRisk& risk) {
  TestMetrics gap;
  gap.loss = std::abs(risk.test->loss - risk.empirical.loss);
  // As an accuracy, of which ErrorRate is the distance.
  if (risk.empirical.accuracy) {
    gap.accuracy = 1 - std::abs(*risk.test->accuracy - *risk.empirical.accuracy);
  }
  return gap;
}

}  // namespace

void AddRiskFlags(CLI::App& command, RiskFlags& flags) {
  command
      .add_flag("--risk", flags.measure,
                "Empirical risk, test risk and their gap: for public data, because they are "
                "computed without noise")
      ->group("Run");
  command
      .add_flag("--public-data", flags.public_data,
                "The data are public: needed for what has no noise, of files")
      ->group("Run");
}

void CheckRiskFlags(const RiskFlags& flags, const DataRequest& data, bool non_private,
                    const std::string& ledger) {
  if (!flags.measure) {
    if (flags.public_data) throw Error("--public-data is for --risk; give both, or leave it out.");
    return;
  }
  if (!ledger.empty()) {
    throw Error(
        "--risk is for public data, and data that are charged to a ledger are private; leave "
        "--risk or --ledger out.");
  }
  CheckPublicData(data, flags.public_data || non_private, "an empirical risk is");
}

Json RiskJson(const TrainingRisk& risk) {
  Json json = {{"public_data_only", true}, {"empirical", MetricsJson(risk.empirical)}};
  json["test"] = risk.test ? MetricsJson(*risk.test) : Json(nullptr);
  json["gap"] = risk.test ? MetricsJson(GapOf(risk)) : Json(nullptr);
  if (risk.excess) json["excess"] = *risk.excess;
  if (risk.bound) json["excess_bound"] = *risk.bound;
  return json;
}

std::vector<std::vector<std::string>> RiskRows(const TrainingRisk& risk) {
  std::vector<std::vector<std::string>> rows = {
      {"empirical risk", MetricsText(risk.empirical) + " (public data only: no noise)"}};
  if (risk.test) {
    rows.push_back({"test risk", MetricsText(*risk.test)});
    rows.push_back({"gap", MetricsText(GapOf(risk))});
  }
  if (risk.excess) {
    rows.push_back(
        {"excess risk",
         fmt::format(
             "{:.6g} over the fit without privacy{}", *risk.excess,
             risk.bound
                 ? fmt::format("; {:.6g} by the bound of order sqrt(d) / (epsilon n)", *risk.bound)
                 : "")});
  }
  return rows;
}

}  // namespace sordino
