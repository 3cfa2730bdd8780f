#include "sordino/cli/report_json.h"

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sordino/base/shown_text.h"

namespace sordino {

using Json = nlohmann::ordered_json;

Json NewReport() { return {{"schema", kJsonSchema}}; }

void PrintReport(const Json& report, bool one_line) {
  // The codes that are shown for characters mean the same characters in JSON.
  std::cout << ShownLines(
                   report.dump(one_line ? -1 : 2, ' ', false, Json::error_handler_t::replace))
            << '\n';
}

Json NumberJson(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json IntervalJson(const Interval& interval, const std::string& reason) {
  Json json = {{"lower", NumberJson(interval.lower)}, {"upper", NumberJson(interval.upper)}};
  if (std::isinf(interval.upper) || !reason.empty()) {
    json["reason"] = reason.empty() ? "no finite bound is known" : reason;
  }
  return json;
}

Json MethodsJson(const AccountReport& report, std::string_view quantity) {
  Json methods = Json::object();
  for (const MethodReport& method : report.methods) {
    Json json;
    if (method.lower) {
      json["lower"] = NumberJson(*method.lower);
      json["upper"] = NumberJson(method.value);
    } else {
      json[std::string(quantity)] = NumberJson(method.value);
    }
    if (std::isinf(method.value)) {
      json["reason"] = report.reason.empty() ? "it gives no finite bound here" : report.reason;
    }
    if (method.order && std::isfinite(*method.order)) json["order"] = *method.order;
    json["sound"] = method.sound;
    if (!method.engine.empty()) json["engine"] = method.engine;
    methods[method.name] = std::move(json);
  }
  return methods;
}

nlohmann::ordered_json EstimateJson(const Estimate& estimate) {
  return {{"value", estimate.value}, {"lower", estimate.lower}, {"upper", estimate.upper}};
}

}  // namespace sordino
