#include "sordino/experiments/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/sha256.h"
#include "sordino/experiments/internal/number_text.h"

namespace sordino {
namespace {

// Commands that read records, so that running them spends a budget.
constexpr std::array<std::string_view, 6> kSpendingCommands = {
    "train", "tune", "fit", "release", "predict", "audit membership"};
// Those that write a run folder, which is put into the folder of the cell.
constexpr std::array<std::string_view, 3> kRunCommands = {"train", "tune", "fit"};
// What an experiment decides itself.
constexpr std::array<std::string_view, 3> kOwnFlags = {"json", "out", "resume"};
// Those that name a file which the command writes: it lies in the folder of the cell.
constexpr std::array<std::string_view, 9> kWrittenFlags = {
    "card",   "csv",          "declare",     "picture", "record",
    "report", "schedule-out", "tensorboard", "tradeoff"};
constexpr std::size_t kIdLength = 16;

template <std::size_t N>
bool IsOneOf(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "{name}" becomes the value.
void Replace(std::string& text, const std::string& name, const std::string& value) {
  const std::string mark = "{" + name + "}";
  for (std::size_t at = text.find(mark); at != std::string::npos;
       at = text.find(mark, at + value.size())) {
    text.replace(at, mark.size(), value);
  }
}

void Fill(std::string& text, const Part& part, const std::vector<std::string>& labels, int repeat) {
  Replace(text, "repeat", fmt::format("{}", repeat));
  for (std::size_t i = 0; i < labels.size(); ++i) Replace(text, part.axes[i].name, labels[i]);
}

void CheckSettings(const Experiment& experiment, const Part& part, const Settings& settings,
                   const CommandFlags& known) {
  std::vector<std::string_view> names;
  for (const CommandFlag& flag : known.flags) {
    if (!IsOneOf(kOwnFlags, flag.name)) names.push_back(flag.name);
  }
  for (const FlagSetting& setting : settings) {
    if (IsOneOf(kOwnFlags, setting.flag)) {
      throw Error(
          fmt::format("{}: the setting '{}' of '{}' is given by the experiment; leave it out.",
                      experiment.name, setting.flag, part.name));
    }
    const CommandFlag* const flag = known.Find(setting.flag);
    if (flag == nullptr) {
      throw Error(fmt::format(
          "{}: '{}' is not a setting of 'sordino {}'; {}'sordino {} --help' lists them.",
          experiment.name, setting.flag.substr(0, 60), part.command,
          DidYouMean(setting.flag, names), part.command));
    }
    if (setting.is_left_out || flag->is_switch == setting.values.empty()) continue;
    throw Error(fmt::format(
        "{}: the setting '{}' of '{}' {}.", experiment.name, setting.flag, part.name,
        flag->is_switch ? "is a switch; write true, or leave it out" : "needs a value; give one"));
  }
}

// Whether it names a file of the folder that it is in, and no other.
bool IsPlainName(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), allowed);
}

// An experiment of somebody else must not write beside its own folder.
void KeepInsideCell(const Experiment& experiment, const Part& part,
                    std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string_view flag = words[i];
    if (!flag.starts_with("--") || !IsOneOf(kWrittenFlags, flag.substr(2))) continue;
    std::string& name = words[i + 1];
    if (!IsPlainName(name)) {
      throw Error(
          fmt::format("{}: the setting '{}' of '{}' is '{}', and an experiment writes into its own "
                      "folder only; "
                      "give the name of a file, without a folder.",
                      experiment.name, flag.substr(2), part.name, name.substr(0, 60)));
    }
    name.insert(0, "{cell}/");
  }
}

void CheckSpending(const Experiment& experiment, const Part& part, const Settings& settings) {
  if (experiment.public_data || !IsOneOf(kSpendingCommands, part.command)) return;
  const bool charged = std::any_of(settings.begin(), settings.end(),
                                   [](const FlagSetting& s) { return s.flag == "ledger"; });
  if (charged) return;
  throw Error(fmt::format(
      "{}: 'sordino {}' would spend the budget of its data once for each cell, and no ledger "
      "counts "
      "it; give the setting ledger, or write public-data = true where the data are public.",
      experiment.name, part.command));
}

std::int64_t WholeNumber(const Experiment& experiment, std::string_view what,
                         const std::string& text) {
  const std::optional<double> number = internal::NumberIn(text);
  if (!number || *number != std::floor(*number) || !(std::abs(*number) < 1e15)) {
    throw Error(fmt::format("{}: the number of {} of a table is '{}'; give a whole number.",
                            experiment.name, what, text));
  }
  return static_cast<std::int64_t>(*number);
}

bool Mentions(const Settings& settings, const std::string& place) {
  return std::any_of(settings.begin(), settings.end(), [&](const FlagSetting& setting) {
    return std::any_of(setting.values.begin(), setting.values.end(), [&](const std::string& value) {
      return value.find(place) != std::string::npos;
    });
  });
}

// Whether the values of the axis change no command: each of them is the same command once more.
bool IsRepetition(const Part& part, const Axis& axis) {
  const std::string place = "{" + axis.name + "}";
  bool is_mentioned = Mentions(part.settings, place) ||
                      part.table.records.find(place) != std::string::npos ||
                      part.table.columns.find(place) != std::string::npos;
  for (const Axis& other : part.axes) {
    for (const AxisValue& value : other.values) {
      is_mentioned = is_mentioned || Mentions(value.settings, place);
    }
  }
  return !is_mentioned &&
         std::all_of(axis.values.begin(), axis.values.end(),
                     [](const AxisValue& value) { return value.settings.empty(); });
}

class CellMaker {
 public:
  // `cells` are those of earlier parts, and get those of this one.
  CellMaker(const Experiment& experiment, std::size_t part, const CommandFlags& known,
            const std::string& device, std::vector<Cell>& cells)
      : experiment_(experiment),
        part_(experiment.parts[part]),
        index_(part),
        known_(known),
        device_(device),
        cells_(cells) {
    for (const Axis& axis : part_.axes) is_repetition_.push_back(IsRepetition(part_, axis));
  }

  // The axes like the digits of a number, the last one fastest; repeats innermost.
  void Make() {
    std::vector<std::size_t> digits(part_.axes.size(), 0);
    for (;;) {
      for (int repeat = 1; repeat <= experiment_.repeats; ++repeat) {
        cells_.push_back(part_.reads.empty() ? MakeCell(digits, repeat)
                                             : MakeReadingCell(digits, repeat));
      }
      std::size_t axis = digits.size();
      while (axis > 0 && ++digits[axis - 1] == part_.axes[axis - 1].values.size()) {
        digits[--axis] = 0;
      }
      if (axis == 0) return;
    }
  }

 private:
  Cell MakeCell(const std::vector<std::size_t>& digits, int repeat) const {
    Cell cell;
    cell.part = index_;
    cell.repeat = repeat;
    Settings settings = part_.settings;
    for (std::size_t i = 0; i < digits.size(); ++i) {
      const AxisValue& value = part_.axes[i].values[digits[i]];
      cell.labels.push_back(value.label);
      CheckSettings(experiment_, part_, value.settings, known_);
      for (const FlagSetting& setting : value.settings) SetSetting(settings, setting);
    }
    CheckSettings(experiment_, part_, settings, known_);
    CheckSpending(experiment_, part_, settings);
    if (!device_.empty() && known_.Find("device") != nullptr) {
      SetSetting(settings, {.flag = "device", .values = {device_}});
    }
    cell.words = WordsOf(settings);
    for (std::string& word : cell.words) Fill(word, part_, cell.labels, repeat);
    PutEarlierCells(cell);
    KeepInsideCell(experiment_, part_, cell.words);
    if (!part_.table.records.empty()) cell.table = TableOf(cell);
    cell.id = IdOf(cell);
    return cell;
  }

  Cell MakeReadingCell(const std::vector<std::size_t>& digits, int repeat) const {
    Cell cell;
    cell.part = index_;
    cell.repeat = repeat;
    for (std::size_t i = 0; i < digits.size(); ++i) {
      cell.labels.push_back(part_.axes[i].values[digits[i]].label);
    }
    cell.reads = EarlierCell(*experiment_.FindPart(part_.reads), cell);
    cell.id = cells_[*cell.reads].id;
    return cell;
  }

  // The cell of that part with the same labels on its axes and of the same repeat.
  std::size_t EarlierCell(const Part& earlier, const Cell& cell) const {
    std::vector<std::string> labels;
    for (const Axis& axis : earlier.axes) {
      const Axis* const own = part_.FindAxis(axis.name);
      if (own == nullptr) {
        throw Error(fmt::format(
            "{}: '{}' uses the cells of '{}', which has the axis '{}'; give it that axis, too.",
            experiment_.name, part_.name, earlier.name, axis.name));
      }
      labels.push_back(cell.labels[static_cast<std::size_t>(own - part_.axes.data())]);
    }
    const auto found = std::find_if(cells_.begin(), cells_.end(), [&](const Cell& other) {
      return &experiment_.parts[other.part] == &earlier && other.repeat == cell.repeat &&
             other.labels == labels;
    });
    if (found == cells_.end()) {
      throw Error(fmt::format(
          "{}: '{}' uses the cells of '{}', and an axis of both has other values there; give both "
          "the same.",
          experiment_.name, part_.name, earlier.name));
    }
    return static_cast<std::size_t>(found - cells_.begin());
  }

  // {PART.run} and {PART.cell} become folders below {cells}.
  void PutEarlierCells(Cell& cell) const {
    for (std::string& word : cell.words) {
      for (std::size_t p = 0; p < index_; ++p) {
        const Part& earlier = experiment_.parts[p];
        if (!earlier.reads.empty() || word.find("{" + earlier.name + ".") == std::string::npos) {
          continue;
        }
        const std::size_t needed = EarlierCell(earlier, cell);
        const std::string folder = "{cells}/" + cells_[needed].id;
        Replace(word, earlier.name + ".run", folder + "/run");
        Replace(word, earlier.name + ".cell", folder);
        cell.needs.push_back(needed);
      }
      if (word.find(".run}") == std::string::npos && word.find(".cell}") == std::string::npos) {
        continue;
      }
      throw Error(fmt::format(
          "{}: the setting '{}' of '{}' names the cell of a part that does not come before it.",
          experiment_.name, word.substr(0, 60), part_.name));
    }
  }

  std::vector<std::string> WordsOf(const Settings& settings) const {
    std::vector<std::string> words;
    for (std::size_t begin = 0; begin < part_.command.size();) {
      const std::size_t end = std::min(part_.command.find(' ', begin), part_.command.size());
      words.push_back(part_.command.substr(begin, end - begin));
      begin = end + 1;
    }
    for (const FlagSetting& setting : settings) {
      if (known_.Find(setting.flag)->is_place) {
        words.insert(words.end(), setting.values.begin(), setting.values.end());
      }
    }
    for (const FlagSetting& setting : settings) {
      if (known_.Find(setting.flag)->is_place) continue;
      words.push_back("--" + setting.flag);
      words.insert(words.end(), setting.values.begin(), setting.values.end());
    }
    if (IsOneOf(kRunCommands, part_.command)) {
      words.emplace_back("--out");
      words.emplace_back("{run}");
    }
    words.emplace_back("--json");
    return words;
  }

  DrawnTable TableOf(const Cell& cell) const {
    std::string records = part_.table.records;
    std::string columns = part_.table.columns;
    Fill(records, part_, cell.labels, cell.repeat);
    Fill(columns, part_, cell.labels, cell.repeat);
    DrawnTable table{.records = WholeNumber(experiment_, "records", records),
                     .columns = WholeNumber(experiment_, "columns", columns),
                     .test_records = part_.table.test_records};
    CheckDrawnTable(table);
    return table;
  }

  std::string IdOf(const Cell& cell) const {
    std::string text = fmt::format("{}\n{}\n", part_.name, cell.repeat);
    for (std::size_t i = 0; i < cell.labels.size(); ++i) {
      if (is_repetition_[i]) text += fmt::format("{} {}\n", part_.axes[i].name, cell.labels[i]);
    }
    if (cell.table) text += fmt::format("{} {}\n", cell.table->Name(), cell.table->test_records);
    for (const std::string& word : cell.words) text += fmt::format("{}:{}\n", word.size(), word);
    return Sha256Hex(text).substr(0, kIdLength);
  }

  const Experiment& experiment_;
  const Part& part_;
  std::size_t index_;
  const CommandFlags& known_;
  const std::string& device_;
  std::vector<Cell>& cells_;
  std::vector<bool> is_repetition_;  // of each axis
};

}  // namespace

const CommandFlag* CommandFlags::Find(std::string_view name) const {
  const auto found = std::find_if(flags.begin(), flags.end(),
                                  [&](const CommandFlag& flag) { return flag.name == name; });
  return found == flags.end() ? nullptr : &*found;
}

std::vector<Cell> MakeCells(const Experiment& experiment, const FindCommand& find,
                            const std::string& device) {
  std::vector<Cell> cells;
  cells.reserve(experiment.CellCount());
  for (std::size_t part = 0; part < experiment.parts.size(); ++part) {
    const std::string& command = experiment.parts[part].command;
    if (!experiment.parts[part].reads.empty()) {
      CellMaker(experiment, part, {}, device, cells).Make();
      continue;
    }
    const std::optional<CommandFlags> known = find(command);
    if (!known || known->Find("json") == nullptr) {
      throw Error(fmt::format(
          "{}: '{}' is not a command that an experiment can run; take one that has --json, such as "
          "train, fit, account or calibrate.",
          experiment.name, command));
    }
    CellMaker(experiment, part, *known, device, cells).Make();
  }
  return cells;
}

Part MeasuredPart(const Part& part, const Cell& cell) {
  Part measured = part;
  for (Measure& measure : measured.measures) {
    Fill(measure.path, part, cell.labels, cell.repeat);
    Fill(measure.against, part, cell.labels, cell.repeat);
  }
  return measured;
}

std::vector<std::string> PlacedWords(const Cell& cell, const CellPlaces& places) {
  std::vector<std::string> words = cell.words;
  for (std::string& word : words) {
    if (places.data.empty() && word.find("{data}") != std::string::npos) {
      throw Error(
          "the experiment reads files below the folder of datasets, and SORDINO_DATA is not set; "
          "set "
          "it to that folder.");
    }
    Replace(word, "run", places.run.string());
    Replace(word, "cell", places.run.parent_path().string());
    Replace(word, "cells", places.run.parent_path().parent_path().string());
    Replace(word, "data", places.data);
    if (!cell.table) continue;
    Replace(word, "table", TablePath(places.tables, *cell.table).string());
    Replace(word, "test", TestTablePath(places.tables, *cell.table).string());
    Replace(word, "schema", SchemaPath(places.tables, *cell.table).string());
  }
  return words;
}

}  // namespace sordino
