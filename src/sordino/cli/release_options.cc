#include "sordino/cli/release_options.h"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <string_view>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/list_text.h"
#include "sordino/base/quantity.h"
#include "sordino/mechanisms/table_declaration.h"
#include "sordino/tables/cell.h"
#include "sordino/tables/table_schema.h"

namespace sordino {
namespace {

double Number(std::string_view flag, std::string_view text) {
  double number = 0;
  if (ParseNumber(text, &number) != NumberError::kNone) {
    throw Error(
        fmt::format("'{}' in {} is not a finite number; give one, such as 8 or 0.5.", text, flag));
  }
  return number;
}

// The columns for which a flag without COL= can speak.
using Columns = std::set<std::string>;

// Splits "[COL=]rest". Without a column the flag speaks for the only one there is.
std::pair<std::string, std::string> ColumnAndRest(std::string_view flag, const std::string& text,
                                                  const Columns& columns) {
  if (auto named = SplitName(text, '=')) {
    if (!columns.contains(named->first)) {
      throw Error(fmt::format(
          "{} {} is for a column '{}', and no statistic that needs it was asked for; put a value "
          "that has an equals sign in double quotes.",
          flag, text, named->first));
    }
    return {std::move(named->first), std::string(named->second)};
  }
  if (columns.size() != 1) {
    throw Error(fmt::format(
        "{} {} does not say which column it is for, and {} columns could be meant; write {} "
        "COLUMN={}.",
        flag, text, columns.size(), flag, text));
  }
  return {*columns.begin(), text};
}

template <typename Map, typename Value>
void PutOnce(std::string_view flag, Map& map, const std::string& column, Value value) {
  if (!map.emplace(column, std::move(value)).second) {
    throw Error(fmt::format("{} was given twice for '{}'.", flag, column));
  }
}

void AddColumns(TableRequest& request, TableStatistic kind, const std::vector<std::string>& names) {
  for (const std::string& name : names) request.statistics.push_back({kind, name, 0.5, {}});
}

void AddQuantiles(TableRequest& request, const std::vector<std::string>& quantiles) {
  for (const std::string& text : quantiles) {
    const std::size_t colon = text.rfind(':');
    if (colon == std::string::npos) {
      throw Error(
          fmt::format("--quantile {} lacks the rank; write {}:0.5 for the median.", text, text));
    }
    request.statistics.push_back({TableStatistic::kQuantile,
                                  text.substr(0, colon),
                                  Number("--quantile", text.substr(colon + 1)),
                                  {}});
  }
}

void AddBounds(TableRequest& request, const std::vector<std::string>& flags) {
  Columns columns;
  for (const StatisticRequest& statistic : request.statistics) {
    if (!statistic.column.empty() && statistic.kind != TableStatistic::kVectorMean) {
      columns.insert(statistic.column);
    }
  }
  for (const std::string& text : flags) {
    const auto [column, rest] = ColumnAndRest("--bounds", text, columns);
    const std::vector<std::string> ends = SplitList(rest);
    if (ends.size() != 2) {
      throw Error(fmt::format("--bounds {} is not a range; write it as low,high.", text));
    }
    PutOnce("--bounds", request.bounds, column,
            Bounds(Number("--bounds", ends[0]), Number("--bounds", ends[1])));
  }
}

// What means have instead of bounds.
void AddClipping(TableRequest& request, const ReleaseOptions& options) {
  const Columns vectors(options.vector_means.begin(), options.vector_means.end());
  Columns means(options.means.begin(), options.means.end());
  means.insert(vectors.begin(), vectors.end());
  for (const std::string& text : options.clip_norms) {
    const auto [column, rest] = ColumnAndRest("--clip-norm", text, vectors);
    const double norm = Number("--clip-norm", rest);
    CheckRange("--clip-norm", norm, 0, true, kInfinity, true);
    PutOnce("--clip-norm", request.clip_norms, column, norm);
  }
  for (const std::string& text : options.second_moments) {
    const auto [column, rest] = ColumnAndRest("--second-moment", text, means);
    const double root = Number("--second-moment", rest);
    CheckRange("--second-moment", root, 0, true, kInfinity, true);
    PutOnce("--second-moment", request.second_moment_roots, column, root);
  }
  if (!options.expected_records) return;
  if (options.second_moments.empty()) {
    throw Error(
        "--expected-records says where a mean with --second-moment is clipped; give both, or "
        "leave it out.");
  }
  if (*options.expected_records == 0) {
    throw Error("--expected-records is 0; give the number of rows that you expect, at least 1.");
  }
  request.expected_records = *options.expected_records;
}

HistogramBins ParseBins(const TableRequest& request, const std::string& column,
                        const std::string& text) {
  const std::vector<std::string> parts = SplitList(text);
  HistogramBins bins;
  if (parts.size() > 1) {
    for (const std::string& part : parts) bins.edges.push_back(Number("--bins", part));
    return bins;
  }
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < kFewestBins ||
      count > kMostBins) {
    throw Error(fmt::format(
        "--bins {} is neither a number of bins from 2 to 65535 nor a list of edges.", text));
  }
  const auto bounds = request.bounds.find(column);
  if (bounds == request.bounds.end()) {
    throw Error(fmt::format("{} equal bins for '{}' need its --bounds.", count, column));
  }
  return EqualBins(bounds->second, count);
}

void AddBins(TableRequest& request, const ReleaseOptions& options) {
  const Columns columns(options.histograms.begin(), options.histograms.end());
  for (const std::string& text : options.bins) {
    const auto [column, rest] = ColumnAndRest("--bins", text, columns);
    PutOnce("--bins", request.bins, column, ParseBins(request, column, rest));
  }
  for (const std::string& text : options.categories) {
    const auto [column, rest] = ColumnAndRest("--categories", text, columns);
    PutOnce("--bins or --categories", request.bins, column,
            HistogramBins{.edges = {}, .categories = SplitList(rest)});
  }
}

// "mean:age", "count", "quantile:age:0.5": the name of a statistic in --spend.
bool IsNamed(const StatisticRequest& statistic, const std::string& name) {
  std::string full(TableStatisticName(statistic.kind));
  if (!statistic.column.empty()) full += ":" + statistic.column;
  if (name == full) return true;
  return statistic.kind == TableStatistic::kQuantile &&
         name == fmt::format("{}:{}", full, statistic.quantile);
}

void AddSpending(TableRequest& request, const std::vector<std::string>& flags) {
  for (const std::string& text : flags) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos) {
      throw Error(fmt::format("--spend {} lacks its epsilon; write --spend mean:age=0.2.", text));
    }
    const std::string name = text.substr(0, equals);
    bool found = false;
    for (StatisticRequest& statistic : request.statistics) {
      if (!IsNamed(statistic, name)) continue;
      if (found || statistic.epsilon) {
        throw Error(fmt::format("--spend {} fits more than one statistic or comes twice.", text));
      }
      statistic.epsilon = Number("--spend", text.substr(equals + 1));
      found = true;
    }
    if (!found) {
      throw Error(fmt::format(
          "--spend {} names no statistic that was asked for; write it as count, mean:age or "
          "quantile:age:0.5.",
          text));
    }
  }
}

void AddUnit(TableRequest& request, const ReleaseOptions& options) {
  if (options.user.empty() && options.rows_per_user) {
    throw Error("--rows-per-user needs --user, the column that tells users apart.");
  }
  if (!options.user.empty() && !options.rows_per_user) {
    throw Error(
        "--user needs --rows-per-user, the number of rows of each user that may count; choose it "
        "without looking at the data.");
  }
  request.user_column = options.user;
  request.rows_per_user = options.rows_per_user.value_or(1);
}

void AddGroups(TableRequest& request, const ReleaseOptions& options, const TableSchema* schema) {
  for (const std::string& text : options.group_by) {
    if (auto named = SplitName(text, '='); named && !named->first.empty()) {
      request.group_by.push_back({std::move(named->first), SplitList(named->second)});
      continue;
    }
    const std::string column = SplitList(text).front();
    const TableColumn* const declared = schema == nullptr ? nullptr : schema->Find(column);
    if (declared == nullptr || declared->values.empty()) {
      throw Error(
          fmt::format("--group-by {} does not declare its groups; write --group-by COLUMN=a,b,c, "
                      "or declare the values of the column in a schema.",
                      text));
    }
    request.group_by.push_back({column, ValuesOf(*declared)});
  }
}

ReleaseOptions WithUserOf(ReleaseOptions options, const TableSchema* schema) {
  if (schema != nullptr) TakeSchemaUser(*schema, &options.user, &options.rows_per_user);
  return options;
}

TableLayout LayoutOf(const ReleaseOptions& options, const TableSchema* schema) {
  TableLayout layout;
  layout.delimiter = DelimiterOf(options.file);
  if (schema != nullptr) {
    layout.header = schema->header.value_or(true);
    layout.encoding = schema->encoding.value_or(layout.encoding);
    layout.delimiter = schema->delimiter.value_or(layout.delimiter);
    layout.quote = schema->quote.value_or(layout.quote);
    layout.missing = schema->missing;
  }
  if (options.no_header) layout.header = false;
  if (!options.encoding.empty()) layout.encoding = ParseEncoding(options.encoding);
  if (!options.delimiter.empty()) layout.delimiter = ParseDelimiter(options.delimiter);
  if (!options.quote.empty()) layout.quote = ParseQuote(options.quote);
  if (!options.missing.empty()) layout.missing = SplitList(options.missing);
  return layout;
}

}  // namespace

TableRequest MakeTableRequest(const ReleaseOptions& given) {
  const std::optional<TableSchema> file =
      given.schema.empty() ? std::nullopt : std::optional(ReadSchema(given.schema));
  const TableSchema* const schema = file ? &*file : nullptr;
  const ReleaseOptions options = WithUserOf(given, schema);
  TableRequest request;
  request.layout = LayoutOf(options, schema);
  if (options.count) request.statistics.push_back({TableStatistic::kCount, "", 0.5, {}});
  AddColumns(request, TableStatistic::kSum, options.sums);
  AddColumns(request, TableStatistic::kMean, options.means);
  AddColumns(request, TableStatistic::kVariance, options.variances);
  AddColumns(request, TableStatistic::kHistogram, options.histograms);
  AddQuantiles(request, options.quantiles);
  AddColumns(request, TableStatistic::kVectorMean, options.vector_means);
  AddClipping(request, options);
  AddBounds(request, options.bounds);
  if (schema != nullptr) TakeSchemaBounds(request, *schema);
  AddBins(request, options);
  if (schema != nullptr) TakeSchemaBins(request, *schema);
  AddSpending(request, options.spend);
  AddUnit(request, options);
  AddGroups(request, options, schema);
  request.adjacency = ParseAdjacency(options.adjacency);
  request.epsilon = options.epsilon;
  request.delta = options.delta.value_or(0);
  // Far below any use; the quantiles of the noise overflow near the smallest numbers.
  if (request.delta > 0 && request.delta < 1e-300) {
    throw Error(fmt::format("--delta is {:g}; give 1e-300 or more.", request.delta));
  }
  request.noise = options.noise.empty()
                      ? (options.delta ? NoiseKind::kGaussian : NoiseKind::kLaplace)
                      : ParseNoiseKind(options.noise);
  if (request.noise == NoiseKind::kGaussian && !options.delta) {
    throw Error("Gaussian noise needs --delta, well below one over the number of rows.");
  }
  if (options.confidence) request.confidence = *options.confidence;
  request.malformed = ParseMalformedRows("--on-error", options.on_error);
  return request;
}

}  // namespace sordino
