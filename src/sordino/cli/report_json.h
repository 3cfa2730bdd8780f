// What --json prints, and accounting answers as JSON. JSON has no infinity: null stands for it, and
// a "reason" beside it says why there is no finite number. Numbers are printed so that they read
// back exactly.
#ifndef SORDINO_CLI_REPORT_JSON_H_
#define SORDINO_CLI_REPORT_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "sordino/accounting/accountant.h"
#include "sordino/base/quantity.h"
#include "sordino/lower_bounds/two_worlds.h"

namespace sordino {

// The version of what --json prints, in every object as "schema". It grows when a key goes away or
// changes its meaning, not when one is added.
inline constexpr int kJsonSchema = 1;
nlohmann::ordered_json NewReport();  // {"schema": 1}
// Writes the object to standard output, on one line or indented. Names and paths may hold any
// bytes: what is not UTF-8 is replaced.
void PrintReport(const nlohmann::ordered_json& report, bool one_line = false);

nlohmann::ordered_json NumberJson(double value);  // null for infinity
// {"lower": ..., "upper": ...}, with "reason" where the upper end is infinite.
nlohmann::ordered_json IntervalJson(const Interval& interval, const std::string& reason = "");
// {"pld": {"lower": ..., "upper": ..., "sound": true}, "rdp": {"epsilon": ..., ...}, ...};
// `quantity` is "epsilon" or "delta".
nlohmann::ordered_json MethodsJson(const AccountReport& report, std::string_view quantity);

// {"value": ..., "lower": ..., "upper": ...}
nlohmann::ordered_json EstimateJson(const Estimate& estimate);

}  // namespace sordino

#endif  // SORDINO_CLI_REPORT_JSON_H_
