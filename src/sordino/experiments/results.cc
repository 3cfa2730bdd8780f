#include "sordino/experiments/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "sordino/base/csv_field.h"
#include "sordino/base/durable_file.h"
#include "sordino/base/progress.h"
#include "sordino/experiments/internal/cell_group.h"
#include "sordino/experiments/internal/result_table.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kResultsSchema = 1;

Json NumberOrNull(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

Json ListJson(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double number : numbers) list.push_back(NumberOrNull(number));
  return list;
}

// Axes of the same name in several parts are one, and the part is an axis where there are several.
Json AxesJson(const Experiment& experiment) {
  Json axes = Json::array();
  const auto axis_of = [&axes](const std::string& name) -> Json& {
    for (Json& axis : axes) {
      if (axis["name"] == name) return axis["values"];
    }
    axes.push_back({{"name", name}, {"values", Json::array()}});
    return axes.back()["values"];
  };
  for (const Part& part : experiment.parts) {
    if (experiment.parts.size() > 1) axis_of("part").push_back(part.name);
    for (const Axis& axis : part.axes) {
      for (const AxisValue& value : axis.values) {
        Json& values = axis_of(axis.name);
        if (std::find(values.begin(), values.end(), Json(value.label)) == values.end()) {
          values.push_back(value.label);
        }
      }
    }
  }
  return axes;
}

Json CellJson(const Experiment& experiment, const CellResult& result) {
  const Part& part = experiment.parts[result.cell.part];
  Json settings = Json::object();
  if (experiment.parts.size() > 1) settings["part"] = part.name;
  for (std::size_t i = 0; i < part.axes.size(); ++i) {
    settings[part.axes[i].name] = result.cell.labels[i];
  }
  Json values = Json::object();
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const MeasuredValue& value = result.values[i];
    values[part.measures[i].name] = value.is_series
                                        ? Json{{"x", ListJson(value.x)}, {"y", ListJson(value.y)}}
                                        : NumberOrNull(value.number);
  }
  Json json = {{"part", part.name},
               {"settings", std::move(settings)},
               {"repeat", result.cell.repeat},
               {"seconds", result.finished.seconds},
               {"memory_mb", result.finished.memory_mb},
               {"values", std::move(values)},
               {"folder", "cells/" + result.cell.id}};
  if (!result.failure.empty()) json["failure"] = result.failure;
  return json;
}

// The names of all parts, each once, in the order in which they are met.
void AddName(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::vector<std::string> AxisNames(const Experiment& experiment) {
  std::vector<std::string> names;
  for (const Part& part : experiment.parts) {
    for (const Axis& axis : part.axes) AddName(names, axis.name);
  }
  return names;
}

std::vector<std::string> NumberNames(const Experiment& experiment,
                                     std::span<const CellResult> results) {
  std::vector<std::string> names;
  for (const CellResult& result : results) {
    for (std::size_t i = 0; i < result.values.size(); ++i) {
      if (!result.values[i].is_series) {
        AddName(names, experiment.parts[result.cell.part].measures[i].name);
      }
    }
  }
  return names;
}

std::string CellFields(const Experiment& experiment, const CellResult& result,
                       const std::vector<std::string>& axes) {
  const Part& part = experiment.parts[result.cell.part];
  std::string line = CsvField(part.name);
  for (const std::string& name : axes) {
    const Axis* const axis = part.FindAxis(name);
    line += ',';
    if (axis != nullptr) {
      line += CsvField(result.cell.labels[static_cast<std::size_t>(axis - part.axes.data())]);
    }
  }
  return line + fmt::format(",{}", result.cell.repeat);
}

std::string CsvNumber(double number) {
  return std::isfinite(number) ? fmt::format("{}", number) : "";
}

std::string Joined(const std::vector<std::string>& fields) {
  std::string text;
  for (const std::string& field : fields) text += CsvField(field) + ",";
  return text;
}

// Text between the bars of a Markdown table.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '>' || c == '\\' || c == '`' || c == '*' || c == '_') {
      escaped += '\\';
    }
    escaped += c == '\n' ? ' ' : c;
  }
  return escaped;
}

std::string PartTable(const Experiment& experiment, std::size_t index,
                      std::span<const CellResult> results) {
  const internal::ResultTable table = internal::ResultTableOf(experiment, index, results);
  std::string text = "|";
  for (const std::string& name : table.head) text += fmt::format(" {} |", Escaped(name));
  text += "\n|";
  for (std::size_t i = 0; i < table.head.size(); ++i) text += "---|";
  text += '\n';
  for (const internal::ResultTable::Row& row : table.rows) {
    text += '|';
    for (const std::string& cell : row.cells) text += fmt::format(" {} |", Escaped(cell));
    if (row.failed > 0) text += fmt::format(" {} failed", row.failed);
    text += '\n';
  }
  return text;
}

}  // namespace

std::string ResultsJson(const Experiment& experiment, std::span<const CellResult> results) {
  Json json;
  json["schema"] = kResultsSchema;
  json["experiment"] = experiment.name;
  json["title"] = experiment.title;
  json["source"] = experiment.source;
  json["about"] = experiment.about;
  json["document"] = experiment.document;
  json["differs"] = experiment.differs;
  json["form"] = experiment.quick ? "quick" : "full";
  json["repeats"] = experiment.repeats;
  json["public"] = experiment.public_data;
  json["spending"] = SpendingSentence(experiment);
  json["axes"] = AxesJson(experiment);
  Json cells = Json::array();
  for (const CellResult& result : results) cells.push_back(CellJson(experiment, result));
  json["cells"] = std::move(cells);
  Json pictures = Json::array();
  for (const Picture& picture : experiment.pictures) pictures.push_back(picture.name + ".svg");
  json["pictures"] = std::move(pictures);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ResultsCsv(const Experiment& experiment, std::span<const CellResult> results) {
  const std::vector<std::string> axes = AxisNames(experiment);
  const std::vector<std::string> numbers = NumberNames(experiment, results);
  std::string text =
      "part," + Joined(axes) + "repeat,seconds,memory_mb," + Joined(numbers) + "failure\n";
  for (const CellResult& result : results) {
    const Part& part = experiment.parts[result.cell.part];
    text += CellFields(experiment, result, axes);
    text += fmt::format(",{},{}", result.finished.seconds, result.finished.memory_mb);
    for (const std::string& name : numbers) {
      const MeasuredValue value = internal::ValueOf(part, result, name);
      text += "," + (value.is_series ? std::string() : CsvNumber(value.number));
    }
    text += "," + CsvField(result.failure) + "\n";
  }
  return text;
}

std::string SeriesCsv(const Experiment& experiment, std::span<const CellResult> results) {
  const std::vector<std::string> axes = AxisNames(experiment);
  std::string text = "part," + Joined(axes) + "repeat,measure,x,y\n";
  for (const CellResult& result : results) {
    for (std::size_t i = 0; i < result.values.size(); ++i) {
      const MeasuredValue& value = result.values[i];
      if (!value.is_series) continue;
      const std::string fields = CellFields(experiment, result, axes);
      const std::string& name = experiment.parts[result.cell.part].measures[i].name;
      for (std::size_t j = 0; j < value.y.size(); ++j) {
        text += fmt::format("{},{},{},{}\n", fields, CsvField(name), CsvNumber(value.x[j]),
                            CsvNumber(value.y[j]));
      }
    }
  }
  return text;
}

std::string SpendingSentence(const Experiment& experiment) {
  return experiment.public_data ? "The data are public or made up: nothing was spent."
                                : "Every cell that reads records is charged to the ledger that its "
                                  "settings name; 'sordino "
                                  "ledger show' says what was spent.";
}

std::string SummaryPage(const Experiment& experiment, std::span<const CellResult> results,
                        const std::string& command) {
  const auto [seconds, failed] = internal::TotalsOf(results);
  std::string page = fmt::format("# {}\n\n", Escaped(experiment.title));
  if (!experiment.source.empty())
    page += fmt::format("Source: {}.\n\n", Escaped(experiment.source));
  if (!experiment.about.empty()) page += Escaped(experiment.about) + "\n\n";
  if (!experiment.document.empty()) {
    page += fmt::format("**The document says:** {}\n\n", Escaped(experiment.document));
  }
  if (!experiment.differs.empty()) {
    page += fmt::format("**Why results differ:** {}\n\n", Escaped(experiment.differs));
  }
  page += fmt::format("```\n{}\n```\n\n", command);
  page += fmt::format("{} cells, {} repeats, {} in all. {}\n", results.size(), experiment.repeats,
                      HumanDuration(seconds), SpendingSentence(experiment));
  if (failed > 0)
    page += fmt::format("\n**{} of the cells failed** (results.csv says why).\n", failed);
  for (const Picture& picture : experiment.pictures) {
    page += fmt::format("\n![{}]({}.svg)\n", Escaped(picture.title), picture.name);
  }
  for (std::size_t part = 0; part < experiment.parts.size(); ++part) {
    if (experiment.parts.size() > 1) {
      page += fmt::format("\n## {}\n", Escaped(experiment.parts[part].name));
    }
    page += "\n" + PartTable(experiment, part, results);
  }
  return page;
}

void WriteResults(const Experiment& experiment, std::span<const CellResult> results,
                  const std::filesystem::path& folder, const std::string& command) {
  WriteWholeFile(folder / "results.json", ResultsJson(experiment, results));
  WriteWholeFile(folder / "results.csv", ResultsCsv(experiment, results));
  WriteWholeFile(folder / "series.csv", SeriesCsv(experiment, results));
  for (const Picture& picture : experiment.pictures) {
    WriteWholeFile(folder / (picture.name + ".svg"), PictureSvg(experiment, picture, results));
  }
  WriteWholeFile(folder / "summary.md", SummaryPage(experiment, results, command));
}

}  // namespace sordino
