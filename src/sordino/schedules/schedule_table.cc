#include "sordino/schedules/schedule_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/exact_count.h"
#include "sordino/base/known_name.h"
#include "sordino/base/quantity.h"
#include "sordino/schedules/internal/schedule_arguments.h"
#include "sordino/tables/text_file.h"

namespace sordino {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::array<std::string_view, 7> kKnownColumns = {
    "noise", "clip", "rate", "learning-rate", "steps", "count", "step"};

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// Spreadsheets put quotes around names, and sometimes around numbers.
std::string_view Unquote(std::string_view field) {
  field = Trim(field);
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
    field = Trim(field.substr(1, field.size() - 2));
  }
  return field;
}

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    fields.push_back(Unquote(line.substr(0, comma)));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

double RealIn(std::string_view column, std::string_view text) {
  const std::optional<double> number = internal::NumberFrom<double>(text);
  if (!number || !std::isfinite(*number)) {
    throw Error(fmt::format("'{}' in column {} is not a finite number; give one such as 0.5.", text,
                            column));
  }
  return *number;
}

// Also written as 6e4.
std::uint64_t WholeIn(std::string_view column, std::string_view text) {
  return ExactCount(RealIn(column, text), text, fmt::format("column {}", column));
}

void CheckValue(std::string_view column, double value) {
  if (column == "noise") static_cast<void>(NoiseMultiplier(value));
  if (column == "clip") static_cast<void>(ClipNorm(value));
  if (column == "rate") static_cast<void>(SamplingRate(value));
  if (column == "learning-rate") {
    CheckRange("the learning rate", value, 0, false, kInfinity, true);
  }
}

}  // namespace

class ScheduleTableParser {
 public:
  explicit ScheduleTableParser(std::string name) { table_.name_ = std::move(name); }

  bool has_header() const { return !columns_.empty(); }

  void ReadHeader(std::size_t number, std::string_view line) {
    table_.header_line_ = number;
    for (const std::string_view field : Fields(line)) {
      const std::string column(field == "count" ? "steps" : field);
      for (const std::string& known : columns_) {
        if (known == column) throw Error(fmt::format("the column '{}' comes twice.", field));
      }
      AddColumn(column);
    }
    if (table_.counts_ && numbered_) {
      throw Error("the columns 'step' and 'steps' are both there; leave out one.");
    }
  }

  void ReadLine(std::size_t number, std::string_view line) {
    const std::vector<std::string_view> fields = Fields(line);
    if (fields.size() != columns_.size()) {
      throw Error(fmt::format("{} fields stand where the header names {}.", fields.size(),
                              columns_.size()));
    }
    for (std::size_t i = 0; i < fields.size(); ++i) ReadField(columns_[i], fields[i]);
    table_.lines_.push_back(number);
  }

  ScheduleTable Finish() { return std::move(table_); }

 private:
  void AddColumn(const std::string& column) {
    if (column == "steps") {
      table_.counts_.emplace();
    } else if (column == "step") {
      numbered_ = true;
    } else if (std::find(kKnownColumns.begin(), kKnownColumns.end(), column) ==
               kKnownColumns.end()) {
      const std::string nearest = NearestName(column, kKnownColumns);
      throw Error(
          fmt::format("the column '{}' is unknown; {} be noise, clip, rate, learning-rate, steps "
                      "or step.",
                      column,
                      nearest.empty() ? std::string("it must")
                                      : fmt::format("did you mean '{}'? It must", nearest)));
    } else {
      table_.columns_[column];
    }
    columns_.push_back(column);
  }

  void ReadField(const std::string& column, std::string_view text) {
    if (column == "steps") {
      table_.counts_->push_back(WholeIn(column, text));
    } else if (column == "step") {
      const std::uint64_t expected = table_.lines_.size() + 1;
      if (WholeIn(column, text) != expected) {
        throw Error(
            fmt::format("step {} stands where step {} belongs; give every step from 1, in order.",
                        text, expected));
      }
    } else {
      const double value = RealIn(column, text);
      CheckValue(column, value);
      table_.columns_[column].push_back(value);
    }
  }

  ScheduleTable table_;
  std::vector<std::string> columns_;
  bool numbered_ = false;
};

ScheduleTable ScheduleTable::Parse(std::string_view text, std::string name) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  ScheduleTableParser parser(name);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    try {
      parser.has_header() ? parser.ReadLine(number, line) : parser.ReadHeader(number, line);
    } catch (const Error& error) {
      throw Error(fmt::format("line {} of {}: {}", number, name, error.what()));
    }
  }
  if (!parser.has_header()) {
    throw Error(
        fmt::format("{} is empty; its first line must name its columns, any of noise, clip, rate, "
                    "learning-rate and steps.",
                    name));
  }
  ScheduleTable table = parser.Finish();
  if (table.size() == 0) {
    throw Error(fmt::format("{} names its columns and no steps; add a line for each step.", name));
  }
  return table;
}

ScheduleTable ScheduleTable::Read(const std::string& path) {
  const std::string text =
      ReadTextFile(path, "merge equal steps into one line with a steps column");
  return Parse(text, path == "-" ? "the schedule" : path);
}

const std::vector<double>* ScheduleTable::Column(std::string_view column) const {
  const auto found = columns_.find(column);
  return found == columns_.end() ? nullptr : &found->second;
}

std::string ScheduleTableText(std::string_view comment, std::string_view column,
                              const std::vector<double>& values) {
  std::string text = fmt::format("# schedule: {}\nstep,{}\n", comment, column);
  for (std::size_t i = 0; i < values.size(); ++i) {
    fmt::format_to(std::back_inserter(text), "{},{}\n", i + 1, values[i]);
  }
  return text;
}

}  // namespace sordino
