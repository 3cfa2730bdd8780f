// Factors from a file (schedule_table.h), one for each step: the column that the schedule is of.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/schedules/schedule_shape.h"
#include "sordino/schedules/schedule_table.h"

namespace sordino {
namespace {

constexpr std::int64_t kMaxFileSteps = 1'000'000'000;

class FileCurve : public ScheduleCurve {
 public:
  FileCurve(std::string path, const ScheduleTable& table, const std::vector<double>& values)
      : path_(std::move(path)) {
    const std::vector<std::uint64_t>* const counts = table.Counts();
    std::int64_t steps = 0;
    for (std::size_t i = 0; i < table.size(); ++i) {
      const std::uint64_t count = counts == nullptr ? 1 : (*counts)[i];
      if (count == 0) continue;
      if (count > static_cast<std::uint64_t>(kMaxFileSteps - steps)) {
        throw Error(fmt::format("{} has more than {} steps; give fewer.", path_, kMaxFileSteps));
      }
      steps += static_cast<std::int64_t>(count);
      ends_.push_back(steps);
      values_.push_back(values[i]);
    }
    if (steps == 0) throw Error(fmt::format("{} has no step; give at least one.", path_));
  }

  double Factor(std::int64_t step, std::int64_t) const override {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), step);
    return values_[static_cast<std::size_t>(end - ends_.begin())];
  }
  bool IsConstant() const override {
    return std::all_of(values_.begin(), values_.end(), [](double value) { return value == 1; });
  }
  std::optional<std::int64_t> Length() const override { return ends_.back(); }
  std::string Arguments() const override { return path_; }

 private:
  std::string path_;
  std::vector<std::int64_t> ends_;  // of runs of equal steps: the first step after each
  std::vector<double> values_;
};

class File : public ScheduleShape {
 public:
  File()
      : ScheduleShape({.name = "file",
                       .help = "from a CSV file with a line for each step: its column `noise`, "
                               "`clip`, `rate` or `learning-rate`"}) {}
  std::string_view Arguments() const override { return "FILE"; }
  std::string_view Note() const override { return ""; }
  std::shared_ptr<const ScheduleCurve> Parse(std::string_view arguments,
                                             std::string_view column) const override {
    if (arguments.empty() || arguments == "-") return nullptr;
    const std::string path(arguments);
    const ScheduleTable table = ScheduleTable::Read(path);
    const std::vector<double>* const values = table.Column(column);
    if (values == nullptr) {
      throw Error(
          fmt::format("the schedule of {} has no column '{}'; add one with a number for each step.",
                      path, column));
    }
    return std::make_shared<FileCurve>(path, table, *values);
  }
};

}  // namespace

const ScheduleShape& FileSchedule() {
  static const File component;
  return component;
}

}  // namespace sordino
