#include "sordino/experiments/internal/cell_group.h"

#include <cmath>

namespace sordino::internal {

std::vector<CellGroup> GroupsOf(std::size_t part, std::span<const CellResult> results) {
  std::vector<CellGroup> groups;
  for (const CellResult& result : results) {
    if (result.cell.part != part) continue;
    // Repeats are neighbours (grid.h).
    if (groups.empty() || groups.back().labels != result.cell.labels) {
      groups.push_back({.labels = result.cell.labels, .cells = {}, .failed = 0});
    }
    if (result.failure.empty()) {
      groups.back().cells.push_back(&result);
    } else {
      ++groups.back().failed;
    }
  }
  return groups;
}

MeasuredValue ValueOf(const Part& part, const CellResult& result, std::string_view measure) {
  MeasuredValue value;
  value.number = std::nan("");
  if (measure == kSecondsMeasure) value.number = result.finished.seconds;
  if (measure == kMemoryMeasure) value.number = result.finished.memory_mb;
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    if (part.measures[i].name == measure) return result.values[i];
  }
  return value;
}

Statistics StatisticsOf(std::span<const double> numbers) {
  Statistics statistics;
  double sum = 0;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    ++statistics.count;
    sum += number;
  }
  statistics.mean = sum / static_cast<double>(statistics.count);
  if (statistics.count < 2) return statistics;
  double squares = 0;
  for (const double number : numbers) {
    if (std::isfinite(number)) squares += (number - statistics.mean) * (number - statistics.mean);
  }
  statistics.deviation = std::sqrt(squares / static_cast<double>(statistics.count - 1));
  return statistics;
}

Statistics StatisticsOf(const Part& part, const CellGroup& group, std::string_view measure) {
  std::vector<double> numbers;
  for (const CellResult* const cell : group.cells) {
    const MeasuredValue value = ValueOf(part, *cell, measure);
    if (!value.is_series) {
      numbers.push_back(value.number);
    } else if (!value.y.empty()) {
      numbers.push_back(value.y.back());
    }
  }
  return StatisticsOf(numbers);
}

}  // namespace sordino::internal
