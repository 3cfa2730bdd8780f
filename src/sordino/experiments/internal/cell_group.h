// Cells that differ in their repeat only, and the statistics of what was measured of them.
#ifndef SORDINO_EXPERIMENTS_INTERNAL_CELL_GROUP_H_
#define SORDINO_EXPERIMENTS_INTERNAL_CELL_GROUP_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/experiments/experiment.h"
#include "sordino/experiments/runner.h"

namespace sordino::internal {

struct CellGroup {
  std::vector<std::string> labels;
  std::vector<const CellResult*> cells;  // those that finished
  std::size_t failed = 0;
};

// The groups of a part, in the order of its cells.
std::vector<CellGroup> GroupsOf(std::size_t part, std::span<const CellResult> results);

// NaN where the measure has no finite number in this cell.
MeasuredValue ValueOf(const Part& part, const CellResult& result, std::string_view measure);

struct Statistics {
  std::size_t count = 0;  // of the finite ones
  double mean = 0;        // NaN without any
  double deviation = 0;   // of one of them, by n - 1; 0 for less than two
};
Statistics StatisticsOf(std::span<const double> numbers);
// Of a measure over the cells of a group; of a series its last point.
Statistics StatisticsOf(const Part& part, const CellGroup& group, std::string_view measure);

}  // namespace sordino::internal

#endif  // SORDINO_EXPERIMENTS_INTERNAL_CELL_GROUP_H_
