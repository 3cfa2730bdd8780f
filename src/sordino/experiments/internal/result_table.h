// What was measured in a part of an experiment as a table of texts.
#ifndef SORDINO_EXPERIMENTS_INTERNAL_RESULT_TABLE_H_
#define SORDINO_EXPERIMENTS_INTERNAL_RESULT_TABLE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sordino/experiments/experiment.h"
#include "sordino/experiments/runner.h"

namespace sordino::internal {

struct ResultTable {
  struct Row {
    std::vector<std::string> cells;  // labels, then means over the repeats with deviations
    std::size_t failed = 0;          // repeats
  };
  std::vector<std::string> head;
  std::vector<Row> rows;
};

// A row for each combination of the axes of the part with this index.
ResultTable ResultTableOf(const Experiment& experiment, std::size_t part,
                          std::span<const CellResult> results);

// Seconds of all cells, and how many failed.
struct ResultTotals {
  double seconds = 0;
  std::size_t failed = 0;
};
ResultTotals TotalsOf(std::span<const CellResult> results);

}  // namespace sordino::internal

#endif  // SORDINO_EXPERIMENTS_INTERNAL_RESULT_TABLE_H_
