#include "sordino/experiments/measured_value.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "sordino/base/error.h"
#include "sordino/base/shallow_json.h"
#include "sordino/experiments/results_folder.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

// The value behind keys with dots between them; a number is the place in a list. A key may hold
// dots itself, such as 0.01. Below what is null there is null.
const Json* At(const Json& json, std::string_view path) {
  const Json* at = &json;
  for (std::size_t begin = 0; begin <= path.size();) {
    std::size_t end = std::min(path.find('.', begin), path.size());
    std::string key(path.substr(begin, end - begin));
    if (at->is_null()) return at;
    if (at->is_object()) {
      while (!at->contains(key) && end < path.size()) {
        end = std::min(path.find('.', end + 1), path.size());
        key = path.substr(begin, end - begin);
      }
      const auto found = at->find(key);
      if (found == at->end()) return nullptr;
      at = &*found;
    } else if (at->is_array()) {
      std::size_t place = 0;
      const auto [stop, error] = std::from_chars(key.data(), key.data() + key.size(), place);
      if (error != std::errc() || stop != key.data() + key.size() || place >= at->size()) {
        return nullptr;
      }
      at = &(*at)[place];
    } else {
      return nullptr;
    }
    begin = end + 1;
  }
  return at;
}

// A truth is 1 or 0. Nothing for texts and objects.
std::optional<double> Number(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (json.is_boolean()) return json.get<bool>() ? 1.0 : 0.0;
  if (json.is_null()) return std::nan("");
  return std::nullopt;
}

std::string Keys(const Json& json) {
  if (!json.is_object() || json.empty()) return "";
  std::string keys;
  for (const auto& [key, value] : json.items())
    keys += (keys.empty() ? "" : ", ") + key.substr(0, 40);
  return fmt::format("; its keys are {}", keys.substr(0, 400));
}

[[noreturn]] void RefuseMeasure(const Measure& measure, std::string_view why) {
  throw Error(fmt::format("the measure '{}' {}.", measure.name, why));
}

std::vector<double> List(const Measure& measure, const Json& list) {
  std::vector<double> numbers;
  for (const Json& entry : list) {
    const std::optional<double> number = Number(entry);
    if (!number) RefuseMeasure(measure, "is a list of more than numbers");
    numbers.push_back(*number);
  }
  return numbers;
}

MeasuredValue FromPath(const Measure& measure, const std::string& command, const Json& output) {
  const Json* const found = At(output, measure.path);
  if (found == nullptr) {
    RefuseMeasure(measure, fmt::format("is not in what 'sordino {}' prints: there is no '{}'{}",
                                       command, measure.path, Keys(output)));
  }
  MeasuredValue value;
  if (const std::optional<double> number = Number(*found)) {
    value.number = *number;
    return value;
  }
  if (!found->is_array()) {
    RefuseMeasure(measure, fmt::format("is not a number: '{}' holds something else{}", measure.path,
                                       Keys(*found)));
  }
  value.is_series = true;
  value.y = List(measure, *found);
  if (measure.against.empty()) {
    for (std::size_t i = 1; i <= value.y.size(); ++i) value.x.push_back(static_cast<double>(i));
    return value;
  }
  const Json* const against = At(output, measure.against);
  if (against == nullptr || !against->is_array() || against->size() != value.y.size()) {
    RefuseMeasure(measure, fmt::format("needs a list '{}' of the same length", measure.against));
  }
  value.x = List(measure, *against);
  return value;
}

MeasuredValue FromColumn(const Measure& measure, const std::string& metrics) {
  MeasuredValue value;
  value.is_series = true;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, kShallowJson, false);
    const Json* const x = At(json, measure.against);
    const Json* const y = At(json, measure.column);
    if (x == nullptr || y == nullptr || !Number(*x) || !Number(*y)) {
      RefuseMeasure(measure, fmt::format("needs the columns '{}' and '{}' in metrics.jsonl{}",
                                         measure.column, measure.against, Keys(json)));
    }
    value.x.push_back(*Number(*x));
    value.y.push_back(*Number(*y));
  }
  return value;
}

// What is asked for of a curve.
MeasuredValue Taken(const Measure& measure, MeasuredValue value) {
  if (measure.take.empty() || !value.is_series) return value;
  MeasuredValue taken;
  for (std::size_t i = 1; i < value.y.size(); ++i) {
    if (value.y[i] > value.y[i - 1] + kRiseShare * std::abs(value.y[0])) taken.number += 1;
  }
  return taken;
}

}  // namespace

std::vector<MeasuredValue> ReadMeasures(const Part& part, std::string_view output,
                                        const std::filesystem::path& run) {
  const Json json = Json::parse(output, kShallowJson, false);
  if (!json.is_object()) {
    throw Error(fmt::format("what 'sordino {}' printed is not a JSON object.", part.command));
  }
  std::optional<std::string> metrics;
  std::vector<MeasuredValue> values;
  for (const Measure& measure : part.measures) {
    if (!measure.path.empty()) {
      values.push_back(Taken(measure, FromPath(measure, part.command, json)));
      continue;
    }
    if (!metrics) metrics = ReadSmallFile(run / "metrics.jsonl", kMaxOutputBytes);
    if (!metrics) {
      RefuseMeasure(measure,
                    fmt::format("is a column of metrics.jsonl, which 'sordino {}' did not write",
                                part.command));
    }
    values.push_back(Taken(measure, FromColumn(measure, *metrics)));
  }
  return values;
}

}  // namespace sordino
