#include "sordino/report/report_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "sordino/base/error.h"
#include "sordino/report/internal/report_files.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using internal::FlagAt;
using internal::ShortText;
using internal::TextAt;
using ExperimentJson = nlohmann::ordered_json;

constexpr const char* kResultsFile = "results.json";
constexpr std::uintmax_t kMaxResults = 64U << 20U;
constexpr std::uintmax_t kMaxPicture = 512U << 10U;
constexpr std::size_t kMaxCells = 20'000;
constexpr std::size_t kMaxAxes = 16;
constexpr std::size_t kMaxMeasures = 64;
constexpr std::size_t kMaxPictures = 24;

constexpr std::array<std::string_view, 14> kSafeMeasures = {"accuracy",
                                                            "test_accuracy",
                                                            "test_loss",
                                                            "test_mean_squared_error",
                                                            "test_mean_absolute_error",
                                                            "epsilon",
                                                            "delta",
                                                            "noise",
                                                            "noise_multiplier",
                                                            "seconds",
                                                            "seconds_per_step",
                                                            "steps",
                                                            "memory",
                                                            "predicted"};

[[noreturn]] void RefuseResults(const fs::path& folder, const std::string& why) {
  throw Error(
      fmt::format("the file '{}' cannot be shown: {}.", (folder / kResultsFile).string(), why));
}

// Names and numbers; absent for anything else.
std::optional<std::string> AxisText(const ExperimentJson& value) {
  if (value.is_string()) return ShortText(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number()) return value.dump();
  return std::nullopt;
}

const ExperimentJson& ListAt(const ExperimentJson& json, const char* key, std::size_t most,
                             const fs::path& folder) {
  static const ExperimentJson kEmpty = ExperimentJson::array();
  const auto list = json.find(key);
  if (list == json.end()) return kEmpty;
  if (!list->is_array()) RefuseResults(folder, fmt::format("its '{}' is not a list", key));
  if (list->size() > most) {
    RefuseResults(folder, fmt::format("its '{}' has more than {} entries", key, most));
  }
  return *list;
}

void ReadAxes(const ExperimentJson& json, const fs::path& folder, ReportExperiment& experiment) {
  for (const ExperimentJson& entry : ListAt(json, "axes", kMaxAxes, folder)) {
    const std::optional<std::string> name = TextAt(entry, "name");
    if (!name) RefuseResults(folder, "an axis has no name");
    ReportAxis axis{*name, {}};
    for (const ExperimentJson& value : ListAt(entry, "values", kMaxCells, folder)) {
      if (const auto text = AxisText(value)) axis.values.push_back(*text);
    }
    experiment.axes.push_back(std::move(axis));
  }
}

void ReadCells(const ExperimentJson& json, const fs::path& folder, ReportExperiment& experiment) {
  std::set<std::string> hidden;
  const auto has_measure = [&](const std::string& name) {
    return std::find(experiment.measures.begin(), experiment.measures.end(), name) !=
           experiment.measures.end();
  };
  for (const ExperimentJson& entry : ListAt(json, "cells", kMaxCells, folder)) {
    if (!entry.is_object()) RefuseResults(folder, "a cell is not an object");
    ReportCell cell;
    const auto settings = entry.find("settings");
    for (const ReportAxis& axis : experiment.axes) {
      if (settings == entry.end() || !settings->is_object()) break;
      const auto value = settings->find(axis.name);
      if (value == settings->end()) continue;
      if (const auto text = AxisText(*value)) cell.settings[axis.name] = *text;
    }
    const auto values = entry.find("values");
    if (values == entry.end() || !values->is_object()) continue;
    for (const auto& [name, value] : values->items()) {
      if (!value.is_number()) continue;
      const std::string measure = ShortText(name);
      if (!experiment.is_public && !IsSafeMeasure(measure)) {
        hidden.insert(measure);
        continue;
      }
      if (!has_measure(measure)) {
        if (experiment.measures.size() == kMaxMeasures) continue;
        experiment.measures.push_back(measure);
      }
      cell.values[measure] = value.get<double>();
    }
    experiment.cells.push_back(std::move(cell));
  }
  experiment.measures_left_out = hidden.size();
}

void ReadPictures(const ExperimentJson& json, const fs::path& folder,
                  ReportExperiment& experiment) {
  for (const ExperimentJson& entry : ListAt(json, "pictures", kMaxPictures, folder)) {
    if (!entry.is_string()) continue;
    const fs::path name = entry.get<std::string>();
    if (name != name.filename() || name.extension() != ".svg") {
      RefuseResults(folder, "a picture is not an SVG file of its own folder");
    }
    const std::optional<std::string> svg = internal::ReadReportFile(folder / name, kMaxPicture);
    if (!svg || !svg->starts_with("<svg")) continue;
    experiment.pictures.push_back({ShortText(name.string()), *svg});
  }
}

}  // namespace

bool IsSafeMeasure(std::string_view name) {
  return std::find(kSafeMeasures.begin(), kSafeMeasures.end(), name) != kSafeMeasures.end();
}

bool IsExperimentFolder(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder / kResultsFile, none);
}

ReportExperiment ReadReportExperiment(const fs::path& folder) {
  const std::optional<ExperimentJson> json =
      internal::ReadReportObject(folder / kResultsFile, kMaxResults);
  if (!json) RefuseResults(folder, "it is not there");
  ReportExperiment experiment;
  experiment.name = TextAt(*json, "experiment").value_or("");
  if (experiment.name.empty()) RefuseResults(folder, "it does not say its 'experiment'");
  experiment.title = TextAt(*json, "title").value_or(experiment.name);
  experiment.source = TextAt(*json, "source").value_or("");
  experiment.about = TextAt(*json, "about").value_or("");
  experiment.is_public = FlagAt(*json, "public").value_or(false);
  ReadAxes(*json, folder, experiment);
  ReadCells(*json, folder, experiment);
  ReadPictures(*json, folder, experiment);
  return experiment;
}

}  // namespace sordino
