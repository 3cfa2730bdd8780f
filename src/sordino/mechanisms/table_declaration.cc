#include "sordino/mechanisms/table_declaration.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/list_text.h"

namespace sordino {

HistogramBins EqualBins(const Bounds& bounds, std::uint64_t count) {
  if (count < kFewestBins || count > kMostBins) {
    throw Error(fmt::format("{} is no number of bins; give one from {} to {}.", count, kFewestBins,
                            kMostBins));
  }
  HistogramBins bins;
  for (std::uint64_t i = 0; i < count; ++i) {
    bins.edges.push_back(bounds.low() +
                         bounds.width() * (static_cast<double>(i) / static_cast<double>(count)));
  }
  bins.edges.push_back(bounds.high());
  return bins;
}

const std::vector<std::string>& ValuesOf(const TableColumn& column) {
  if (!column.spellings.empty()) {
    throw Error(
        fmt::format("the schema gives values of the column '{}' several spellings, which 'release' "
                    "does not join; declare its categories or groups in the request.",
                    column.name));
  }
  return column.values;
}

void TakeSchemaBounds(TableRequest& request, const TableSchema& schema) {
  for (const StatisticRequest& statistic : request.statistics) {
    const bool is_vector = statistic.kind == TableStatistic::kVectorMean;
    // A norm that was asked for stands in the place of the bounds, not of how cells are read.
    const bool has_norm = is_vector || (statistic.kind == TableStatistic::kMean &&
                                        request.second_moment_roots.contains(statistic.column));
    for (const std::string& name :
         is_vector ? SplitList(statistic.column) : std::vector{statistic.column}) {
      const TableColumn* const column = schema.Find(name);
      if (column == nullptr || !column->HasBounds()) continue;
      request.cells.try_emplace(name, column->cells);
      if (!has_norm) request.bounds.try_emplace(name, column->low, column->high);
    }
  }
}

void TakeSchemaBins(TableRequest& request, const TableSchema& schema) {
  for (const StatisticRequest& statistic : request.statistics) {
    const TableColumn* const column = schema.Find(statistic.column);
    if (column != nullptr && statistic.kind == TableStatistic::kHistogram &&
        !column->values.empty()) {
      request.bins.try_emplace(statistic.column,
                               HistogramBins{.edges = {}, .categories = ValuesOf(*column)});
    }
  }
}

void TakeSchemaUser(const TableSchema& schema, std::string* user,
                    std::optional<std::uint32_t>* rows_per_user) {
  for (const TableColumn& column : schema.columns) {
    if (column.role == ColumnRole::kUser && user->empty()) *user = column.name;
  }
  if (schema.rows_per_user > 0 && !*rows_per_user) {
    constexpr std::int64_t kMaxRows = std::numeric_limits<std::uint32_t>::max();
    *rows_per_user = static_cast<std::uint32_t>(std::min(schema.rows_per_user, kMaxRows));
  }
}

char DelimiterOf(const std::string& file) {
  for (const char* const ending : {".tsv", ".tsv.gz", ".tsv.xz"}) {
    if (file.ends_with(ending)) return '\t';
  }
  return TableLayout().delimiter;
}

std::string DescribeRelease(const TableRequest& request, const std::string& file) {
  std::string text = "release ";
  for (const StatisticRequest& statistic : request.statistics) {
    if (&statistic != &request.statistics.front()) text += ", ";
    text += TableStatisticName(statistic.kind);
    if (statistic.kind == TableStatistic::kQuantile) text += fmt::format(" {}", statistic.quantile);
    if (!statistic.column.empty()) text += " of " + statistic.column;
  }
  for (const GroupByColumn& group : request.group_by) {
    text += (&group == request.group_by.data() ? " by " : " and ") + group.column;
  }
  return file == "-" ? text : text + " from " + file;
}

}  // namespace sordino
