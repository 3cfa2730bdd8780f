#include "sordino/experiments/internal/result_table.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/experiments/internal/cell_group.h"

namespace sordino::internal {
namespace {

std::string StatisticsText(const Statistics& statistics) {
  if (statistics.count == 0) return "–";
  // Repeats of what has no randomness differ in the rounding of their mean alone.
  if (statistics.deviation <= 1e-12 * std::abs(statistics.mean)) {
    return fmt::format("{:.5g}", statistics.mean);
  }
  return fmt::format("{:.5g} ± {:.2g}", statistics.mean, statistics.deviation);
}

}  // namespace

ResultTable ResultTableOf(const Experiment& experiment, std::size_t index,
                          std::span<const CellResult> results) {
  const Part& part = experiment.parts[index];
  std::vector<std::string> measures;
  for (const Measure& measure : part.measures) {
    if (measure.in_table) measures.push_back(measure.name);
  }
  if (part.reads.empty()) measures.emplace_back(kSecondsMeasure);
  ResultTable table;
  for (const Axis& axis : part.axes) table.head.push_back(axis.name);
  table.head.insert(table.head.end(), measures.begin(), measures.end());
  for (const CellGroup& group : GroupsOf(index, results)) {
    ResultTable::Row row{.cells = group.labels, .failed = group.failed};
    for (const std::string& measure : measures) {
      row.cells.push_back(StatisticsText(StatisticsOf(part, group, measure)));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

ResultTotals TotalsOf(std::span<const CellResult> results) {
  ResultTotals totals;
  for (const CellResult& result : results) {
    totals.seconds += result.finished.seconds;
    totals.failed += result.failure.empty() ? 0U : 1U;
  }
  return totals;
}

}  // namespace sordino::internal
