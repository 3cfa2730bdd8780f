#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <sstream>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/toml_nesting.h"
#include "sordino/experiments/experiment.h"
#include "sordino/experiments/internal/experiment_check.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 12> kExperimentKeys = {
    "title",         "source",  "about",         "document",    "differs", "minutes",
    "quick-minutes", "repeats", "quick-repeats", "public-data", "part",    "picture"};
constexpr std::array<std::string_view, 8> kPartKeys = {"name",  "command", "reads",   "settings",
                                                       "quick", "axis",    "measure", "table"};
constexpr std::array<std::string_view, 4> kAxisKeys = {"name", "values", "quick", "flag"};
constexpr std::array<std::string_view, 6> kMeasureKeys = {"name",    "path", "column",
                                                          "against", "take", "table"};
constexpr std::array<std::string_view, 3> kTableRequestKeys = {"records", "columns", "test"};
constexpr std::array<std::string_view, 16> kPictureKeys = {
    "file",  "name",    "title",   "part",        "x",     "y",     "right",     "by",
    "where", "x-label", "y-label", "right-label", "x-log", "y-log", "right-log", "each-repeat"};

class ExperimentReader {
 public:
  ExperimentReader(const std::string& name, bool quick) {
    experiment_.name = name;
    experiment_.quick = quick;
  }

  Experiment Read(const toml::table& file) {
    CheckKeys(file, kExperimentKeys, "the file");
    experiment_.title = TextOf(file, "title", "");
    experiment_.source = TextOf(file, "source", "");
    experiment_.about = TextOf(file, "about", "");
    experiment_.document = TextOf(file, "document", "");
    experiment_.differs = TextOf(file, "differs", "");
    experiment_.minutes = NumberOf(file, "minutes", 0);
    experiment_.repeats = RepeatsOf(file, "repeats", 1);
    if (experiment_.quick) {
      experiment_.minutes = NumberOf(file, "quick-minutes", experiment_.minutes);
      experiment_.repeats = RepeatsOf(file, "quick-repeats", experiment_.repeats);
    }
    experiment_.public_data = SwitchOf(file, "public-data", false);
    for (const toml::table* const part : TablesOf(file, "part")) ReadPart(*part);
    for (const toml::table* const picture : TablesOf(file, "picture")) ReadPicture(*picture);
    if (experiment_.title.empty()) experiment_.title = experiment_.name;
    return experiment_;
  }

 private:
  [[noreturn]] void Refuse(const toml::node& node, std::string_view sentence) const {
    throw Error(
        fmt::format("{}, line {}: {}", experiment_.name, node.source().begin.line, sentence));
  }

  void CheckKeys(const toml::table& table, std::span<const std::string_view> known,
                 std::string_view where) const {
    for (const auto& [key, node] : table) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      Refuse(node, UnknownKey(key.str(), where, known));
    }
  }

  // A value of a setting as it stands on a command line.
  std::string Word(const toml::node& node, std::string_view key) const {
    if (const auto text = node.value_exact<std::string>()) {
      if (text->empty()) Refuse(node, fmt::format("{} is empty; give a value.", key));
      return *text;
    }
    if (const auto whole = node.value_exact<std::int64_t>()) return fmt::format("{}", *whole);
    if (const auto real = node.value_exact<double>(); real && std::isfinite(*real)) {
      return fmt::format("{}", *real);
    }
    Refuse(node, fmt::format("{} must be a text in quotes or a finite number.", key));
  }

  std::string TextOf(const toml::table& table, std::string_view key,
                     const std::optional<std::string>& otherwise) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) {
      if (!otherwise) Refuse(table, fmt::format("there is no '{}'; give one.", key));
      return *otherwise;
    }
    const auto text = node->value_exact<std::string>();
    if (!text || text->empty()) Refuse(*node, fmt::format("{} must be a text in quotes.", key));
    return *text;
  }

  double NumberOf(const toml::table& table, std::string_view key, double otherwise) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return otherwise;
    const auto whole = node->value_exact<std::int64_t>();
    const double number =
        whole ? static_cast<double>(*whole) : node->value_exact<double>().value_or(std::nan(""));
    if (!(number >= 0) || !std::isfinite(number)) {
      Refuse(*node, fmt::format("{} must be a number from 0.", key));
    }
    return number;
  }

  int RepeatsOf(const toml::table& table, std::string_view key, int otherwise) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return otherwise;
    const std::int64_t repeats = node->value_exact<std::int64_t>().value_or(0);
    if (repeats < 1 || repeats > kMaxRepeats) {
      Refuse(*node, fmt::format("{} must be a whole number from 1 to {}.", key, kMaxRepeats));
    }
    return static_cast<int>(repeats);
  }

  bool SwitchOf(const toml::table& table, std::string_view key, bool otherwise) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return otherwise;
    const auto value = node->value_exact<bool>();
    if (!value) Refuse(*node, fmt::format("{} must be true or false.", key));
    return *value;
  }

  std::vector<const toml::table*> TablesOf(const toml::table& table, std::string_view key) const {
    std::vector<const toml::table*> tables;
    const toml::node* const node = table.get(key);
    if (node == nullptr) return tables;
    if (!node->is_array_of_tables()) {
      Refuse(*node, fmt::format("'{0}' must be sections, one [[{0}]] for each.", key));
    }
    for (const toml::node& entry : *node->as_array()) tables.push_back(entry.as_table());
    return tables;
  }

  std::vector<std::string> TextsOf(const toml::table& table, std::string_view key) const {
    std::vector<std::string> texts;
    const toml::node* const node = table.get(key);
    if (node == nullptr) return texts;
    if (node->is_string()) return {TextOf(table, key, std::nullopt)};
    if (!node->is_array()) Refuse(*node, fmt::format("{} must be a list of texts.", key));
    for (const toml::node& entry : *node->as_array()) texts.push_back(Word(entry, key));
    return texts;
  }

  FlagSetting ReadSetting(std::string_view flag, const toml::node& node) const {
    FlagSetting setting{.flag = std::string(flag), .values = {}};
    if (const auto on = node.value_exact<bool>()) {
      setting.is_left_out = !*on;
      return setting;
    }
    if (!node.is_array()) {
      setting.values.push_back(Word(node, flag));
      return setting;
    }
    for (const toml::node& entry : *node.as_array()) setting.values.push_back(Word(entry, flag));
    if (setting.values.empty()) Refuse(node, fmt::format("the list of {} is empty.", flag));
    return setting;
  }

  void ReadSettings(const toml::table& part, std::string_view key, Settings& settings) const {
    const toml::node* const node = part.get(key);
    if (node == nullptr) return;
    if (!node->is_table()) Refuse(*node, fmt::format("{0} must be a section, [part.{0}].", key));
    for (const auto& [flag, value] : *node->as_table()) {
      SetSetting(settings, ReadSetting(flag.str(), value));
    }
  }

  AxisValue ReadAxisValue(const std::string& flag, const toml::node& node) const {
    const toml::table* const set = node.as_table();
    if (set == nullptr) {
      AxisValue value{.label = Word(node, "a value of an axis"), .settings = {}};
      if (!flag.empty()) value.settings.push_back({.flag = flag, .values = {value.label}});
      return value;
    }
    AxisValue value{.label = TextOf(*set, "label", std::nullopt), .settings = {}};
    for (const auto& [key, setting] : *set) {
      if (key.str() != "label") value.settings.push_back(ReadSetting(key.str(), setting));
    }
    return value;
  }

  void ReadAxis(const toml::table& table, Part& part) const {
    CheckKeys(table, kAxisKeys, "[[part.axis]]");
    Axis axis{.name = TextOf(table, "name", std::nullopt), .values = {}};
    const std::string flag = SwitchOf(table, "flag", true) ? axis.name : "";
    const bool other = experiment_.quick && table.contains("quick");
    const toml::node* const values = table.get(other ? "quick" : "values");
    if (values == nullptr || !values->is_array() || values->as_array()->empty()) {
      Refuse(values == nullptr ? table : *values,
             fmt::format("the axis '{}' has no values; give a list with one or more.", axis.name));
    }
    for (const toml::node& value : *values->as_array()) {
      axis.values.push_back(ReadAxisValue(flag, value));
    }
    part.axes.push_back(std::move(axis));
  }

  void ReadMeasure(const toml::table& table, Part& part) const {
    CheckKeys(table, kMeasureKeys, "[[part.measure]]");
    Measure measure{.name = TextOf(table, "name", std::nullopt),
                    .path = TextOf(table, "path", ""),
                    .column = TextOf(table, "column", ""),
                    .against = TextOf(table, "against", ""),
                    .take = TextOf(table, "take", ""),
                    .in_table = SwitchOf(table, "table", true)};
    if (!measure.take.empty() && measure.take != kTakeRises) {
      Refuse(table, fmt::format("take of '{}' is '{}'; it can be '{}', or left out.", measure.name,
                                measure.take, kTakeRises));
    }
    if (measure.path.empty() == measure.column.empty()) {
      Refuse(table,
             fmt::format("the measure '{}' needs a path or a column, one of them.", measure.name));
    }
    if (!measure.column.empty() && measure.against.empty()) measure.against = "step";
    part.measures.push_back(std::move(measure));
  }

  void ReadTableRequest(const toml::node& node, Part& part) const {
    const toml::table* const table = node.as_table();
    if (table == nullptr) Refuse(node, "table must be a section, [part.table].");
    CheckKeys(*table, kTableRequestKeys, "[part.table]");
    const auto word = [&](std::string_view key) {
      const toml::node* const value = table->get(key);
      if (value == nullptr) Refuse(node, fmt::format("[part.table] has no '{}'; give one.", key));
      return Word(*value, key);
    };
    part.table = {.records = word("records"),
                  .columns = word("columns"),
                  .test_records = static_cast<std::int64_t>(NumberOf(*table, "test", 0))};
  }

  void ReadPart(const toml::table& table) {
    CheckKeys(table, kPartKeys, "[[part]]");
    Part part;
    part.name = TextOf(table, "name", "");
    part.command = TextOf(table, "command", "");
    part.reads = TextOf(table, "reads", "");
    if (part.command.empty() == part.reads.empty()) {
      Refuse(table,
             "a part needs a command, or reads an earlier part; give one of the keys 'command' and "
             "'reads'.");
    }
    if (!part.reads.empty() && (table.contains("settings") || table.contains("table"))) {
      Refuse(table, "a part that reads another one runs nothing; leave out settings and table.");
    }
    if (part.name.empty()) part.name = part.command.empty() ? part.reads : part.command;
    ReadSettings(table, "settings", part.settings);
    if (experiment_.quick) ReadSettings(table, "quick", part.settings);
    for (const toml::table* const axis : TablesOf(table, "axis")) ReadAxis(*axis, part);
    for (const toml::table* const measure : TablesOf(table, "measure")) ReadMeasure(*measure, part);
    if (const toml::node* const request = table.get("table")) ReadTableRequest(*request, part);
    experiment_.parts.push_back(std::move(part));
  }

  void ReadPicture(const toml::table& table) {
    CheckKeys(table, kPictureKeys, "[[picture]]");
    Picture picture;
    picture.name = TextOf(table, "name", std::nullopt);
    picture.title = TextOf(table, "title", experiment_.title);
    picture.part =
        TextOf(table, "part", experiment_.parts.empty() ? "" : experiment_.parts.front().name);
    picture.file = TextOf(table, "file", "");
    picture.x = TextOf(table, "x", "");
    picture.y = TextsOf(table, "y");
    picture.right = TextsOf(table, "right");
    picture.by = TextsOf(table, "by");
    picture.x_label = TextOf(table, "x-label", picture.x);
    picture.y_label = TextOf(table, "y-label", picture.y.empty() ? "" : picture.y.front());
    picture.right_label =
        TextOf(table, "right-label", picture.right.empty() ? "" : picture.right.front());
    picture.x_log = SwitchOf(table, "x-log", false);
    picture.y_log = SwitchOf(table, "y-log", false);
    picture.right_log = SwitchOf(table, "right-log", false);
    picture.each_repeat = SwitchOf(table, "each-repeat", false);
    if (const toml::node* const where = table.get("where")) {
      if (!where->is_table()) Refuse(*where, "where must be a table, {axis = \"label\"}.");
      for (const auto& [axis, label] : *where->as_table()) {
        picture.where.emplace_back(axis.str(), Word(label, "where"));
      }
    }
    experiment_.pictures.push_back(std::move(picture));
  }

  Experiment experiment_;
};

}  // namespace

Experiment ParseExperiment(std::string_view text, const std::string& name, bool quick) {
  if (text.size() > kMaxExperimentBytes) {
    throw Error(fmt::format("the experiment '{}' has {} bytes; at most {} are read.", name,
                            text.size(), kMaxExperimentBytes));
  }
  CheckTomlNesting(text, name);
  try {
    Experiment experiment = ExperimentReader(name, quick).Read(toml::parse(text, name));
    experiment.text = text;
    internal::CheckExperiment(experiment);
    return experiment;
  } catch (const toml::parse_error& error) {
    throw Error(
        fmt::format("{}, line {}: {}.", name, error.source().begin.line, error.description()));
  }
}

Experiment ReadExperiment(const std::filesystem::path& file, bool quick) {
  std::ifstream in(file, std::ios::binary);
  std::error_code error;
  if (!in || std::filesystem::is_directory(file, error)) {
    throw Error(
        fmt::format("the experiment '{}' cannot be read; is it a TOML file?", file.string()));
  }
  std::string text(kMaxExperimentBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return ParseExperiment(text, file.stem().string(), quick);
}

}  // namespace sordino
