// --risk of 'train' and 'fit': empirical risk, test risk and their gap, on public data.
#ifndef SORDINO_TORCH_CLI_RISK_REPORT_H_
#define SORDINO_TORCH_CLI_RISK_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sordino/data/catalog.h"
#include "sordino/runs/training_risk.h"

namespace CLI {
class App;
}

namespace sordino {

struct RiskFlags {
  bool measure = false;
  bool public_data = false;
};
void AddRiskFlags(CLI::App& command, RiskFlags& flags);
// Throws Error where a risk was asked for of data that are private: data with a ledger, and files
// that nobody declared public, by --public-data or by a run without privacy.
void CheckRiskFlags(const RiskFlags& flags, const DataRequest& data, bool non_private,
                    const std::string& ledger);

nlohmann::ordered_json RiskJson(const TrainingRisk& risk);
std::vector<std::vector<std::string>> RiskRows(const TrainingRisk& risk);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_RISK_REPORT_H_
