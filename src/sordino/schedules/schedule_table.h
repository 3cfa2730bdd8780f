// A schedule as a CSV file: what holds in each step, or in each run of equal steps.
//
//   rate,noise,steps          step,noise
//   0.01,4,5000               1,3.2     # a comment
//   0.01,2,5000               2,3.1
//
// The first line names the columns, in any order: noise, clip, rate and learning-rate, and at most
// one of steps (how often the line is repeated; count is another name for it) and step (the number
// of the step: 1, 2, ... without a hole). Blank lines and everything after a # are skipped.
// `sordino plan --schedule-out` writes such a file, `sordino account --schedule` and the schedules
// `file:FILE` of a training run read it.
#ifndef SORDINO_SCHEDULES_SCHEDULE_TABLE_H_
#define SORDINO_SCHEDULES_SCHEDULE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/base/output_file.h"

namespace sordino {

class ScheduleTable {
 public:
  // `name` stands for the file in the sentences of Error, which also give the line. Throws Error
  // for numbers outside of their ranges (base/quantity.h), for a hole, and where there is no step.
  static ScheduleTable Parse(std::string_view text, std::string name);
  // "-" is standard input; files over 64 MiB are refused.
  static ScheduleTable Read(const std::string& path);

  const std::string& name() const { return name_; }
  std::size_t size() const { return lines_.size(); }
  // Of the header, and of entry i.
  std::size_t header_line() const { return header_line_; }
  std::size_t line(std::size_t i) const { return lines_[i]; }
  // One number for each entry; nullptr where there is no such column.
  const std::vector<double>* Column(std::string_view column) const;
  // How often each entry is repeated; nullptr where no column says so.
  const std::vector<std::uint64_t>* Counts() const { return counts_ ? &*counts_ : nullptr; }

 private:
  std::string name_;
  std::size_t header_line_ = 0;
  std::map<std::string, std::vector<double>, std::less<>> columns_;
  std::optional<std::vector<std::uint64_t>> counts_;
  std::vector<std::size_t> lines_;

  friend class ScheduleTableParser;
};

inline constexpr OutputKind kScheduleFile = {"a schedule", ".csv", "# schedule"};

// The text of a file with a line for each step.
std::string ScheduleTableText(std::string_view comment, std::string_view column,
                              const std::vector<double>& values);

}  // namespace sordino

#endif  // SORDINO_SCHEDULES_SCHEDULE_TABLE_H_
