#include "sordino/mechanisms/table_release.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/list_text.h"
#include "sordino/base/stop.h"
#include "sordino/mechanisms/internal/declared_values.h"
#include "sordino/mechanisms/internal/group_index.h"
#include "sordino/mechanisms/internal/histogram_bins.h"
#include "sordino/mechanisms/means.h"
#include "sordino/mechanisms/quantile.h"
#include "sordino/random/discrete_gaussian.h"
#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 7> kStatisticNames = {
    "count", "sum", "mean", "variance", "histogram", "quantile", "vector-mean"};

bool UsesGaussian(const TableRequest& request, const StatisticRequest& statistic) {
  return request.noise == NoiseKind::kGaussian && statistic.kind != TableStatistic::kQuantile;
}

bool NeedsBounds(TableStatistic kind) {
  return kind == TableStatistic::kSum || kind == TableStatistic::kMean ||
         kind == TableStatistic::kVariance || kind == TableStatistic::kQuantile;
}

// The norm to which rows of `dimension` columns are clipped for the least error bound (means.h). k
// rows of a user are as many times as much noise, which is as if there were k times fewer records.
double BestClipNorm(double second_moment_root, std::size_t dimension, std::uint64_t records,
                    const PrivacyUnit& unit, const NoiseBudget& budget) {
  const std::uint64_t units = std::max<std::uint64_t>(1, records / unit.rows);
  if (budget.noise == NoiseKind::kGaussian) {
    return VectorMeanThreshold(units, dimension, second_moment_root, budget.epsilon, budget.delta)
        .value();
  }
  // Each coordinate has the noise of the L1 norm, sqrt(d) times that of one number.
  return ClippedMeanThreshold(units, second_moment_root, budget.epsilon) /
         std::sqrt(static_cast<double>(dimension));
}

}  // namespace

// A column of the table that some statistic reads.
struct TableRelease::Column {
  std::string name;
  bool numeric = false;
  CellRules cells;        // of a numeric one
  std::size_t index = 0;  // in the file
  // Of the current row:
  std::string_view text;
  double number = 0;
  bool missing = false;
};

// What can be wrong with a row, in the order in which it is told.
enum class TableRelease::RowFault : std::uint8_t {
  kBroken,
  kFields,
  kEmpty,
  kNoNumber,
  kUndeclared,
  kNoUser
};

struct TableRelease::Part {
  std::unique_ptr<StreamedStatistic> statistic;
  std::optional<std::size_t> column;  // in columns_
  std::vector<std::size_t> columns;   // of a vector mean
  std::vector<double> row;            // of the current row
  std::optional<double> clip_norm;
  const HistogramBins* bins = nullptr;
  internal::DeclaredValues categories;
  double category = -1;  // of the current row; -1 where its cell is missing
};

std::string_view TableStatisticName(TableStatistic statistic) {
  return kStatisticNames[static_cast<std::size_t>(statistic)];
}

TableRelease::TableRelease(TableRequest request) : request_(std::move(request)) {
  CheckRequest();
  SplitBudget();
  groups_ = std::make_unique<internal::GroupIndex>(request_.group_by);
  if (!request_.user_column.empty()) cap_.emplace(request_.rows_per_user);
  MakeParts();
}

TableRelease::~TableRelease() = default;

void TableRelease::CheckRequest() const {
  if (request_.statistics.empty()) {
    throw Error("nothing was asked for; name at least one statistic, for example a mean.");
  }
  CheckRange("the confidence", request_.confidence, 0, true, 1, true);
  if (request_.noise == NoiseKind::kLaplace && request_.delta != 0) {
    throw Error("Laplace noise has delta 0; leave delta out or ask for Gaussian noise.");
  }
  if (request_.noise == NoiseKind::kGaussian) {
    CheckRange("delta", request_.delta, 0, true, 1, true);
  }
  if (!request_.layout.header && request_.malformed == MalformedRows::kSkip) {
    throw Error(
        "without a header the first record would say which rows are malformed, so none can be "
        "skipped; give the table a header, or leave out --on-error skip.");
  }
  if (request_.adjacency == Adjacency::kZeroOut) {
    throw Error("a table is released under add-remove or replace-one adjacency, not zero-out.");
  }
  for (const StatisticRequest& statistic : request_.statistics) {
    const std::string_view name = TableStatisticName(statistic.kind);
    if ((statistic.kind == TableStatistic::kCount) != statistic.column.empty()) {
      throw Error(
          fmt::format("a {} needs {}.", name, statistic.column.empty() ? "a column" : "no column"));
    }
    CheckRanges(statistic);
    if (statistic.kind == TableStatistic::kHistogram) {
      const auto bins = request_.bins.find(statistic.column);
      if (bins == request_.bins.end()) {
        throw Error(
            fmt::format("the histogram of '{}' needs bins or categories, declared in advance.",
                        statistic.column));
      }
      internal::CheckBins(statistic.column, bins->second);
    }
  }
}

// That no row can move the statistic without limit.
void TableRelease::CheckRanges(const StatisticRequest& statistic) const {
  const std::string_view name = TableStatisticName(statistic.kind);
  const std::string& column = statistic.column;
  const bool is_vector = statistic.kind == TableStatistic::kVectorMean;
  const bool has_moment = request_.second_moment_roots.contains(column) &&
                          (is_vector || statistic.kind == TableStatistic::kMean);
  const bool has_range =
      is_vector ? request_.clip_norms.contains(column) : request_.bounds.contains(column);
  if (!is_vector && !NeedsBounds(statistic.kind)) return;
  if (is_vector) {
    std::vector<std::string> names = SplitList(column);
    std::sort(names.begin(), names.end());
    if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
      throw Error(fmt::format("a vector mean names the column '{}' twice; name it once.", *twice));
    }
  }
  if (has_moment && has_range) {
    throw Error(fmt::format("the {} of '{}' has {} and a second moment; give one of them.", name,
                            column, is_vector ? "a clipping norm" : "bounds"));
  }
  if (has_moment && request_.expected_records == 0) {
    throw Error(
        fmt::format("the {} of '{}' by its second moment needs the number of records that you "
                    "expect; declare it, and not from the data.",
                    name, column));
  }
  if (has_moment || has_range) return;
  if (is_vector) {
    throw Error(
        fmt::format("the {} of '{}' needs a norm to which rows are clipped, because without it one "
                    "row can move it without limit; declare the norm, or a bound on the second "
                    "moment, and not from the data.",
                    name, column));
  }
  throw Error(
      fmt::format("the {} of '{}' needs declared bounds, because without them one row can "
                  "move it without limit; give them as low,high, and not from the data.",
                  name, column));
}

void TableRelease::SplitBudget() {
  double claimed = 0;
  std::size_t open = 0;
  std::size_t gaussian = 0;
  for (const StatisticRequest& statistic : request_.statistics) {
    if (statistic.epsilon) {
      CheckRange("the epsilon of a statistic", *statistic.epsilon, 0, true, kInfinity, true);
      claimed += *statistic.epsilon;
    } else {
      ++open;
    }
    gaussian += UsesGaussian(request_, statistic) ? 1 : 0;
  }
  if (request_.epsilon) CheckRange("epsilon", *request_.epsilon, 0, true, kInfinity, true);
  if (!request_.epsilon && open > 0) {
    throw Error("no epsilon was given; give the total that the release may spend.");
  }
  const double total = request_.epsilon.value_or(claimed);
  const double rest = total - claimed;
  if (claimed > total * (1 + 1e-12) || (open > 0 && !(rest > 0))) {
    throw Error(fmt::format(
        "the statistics claim an epsilon of {} together and the total is {}; raise the total or "
        "lower theirs.",
        claimed, total));
  }
  for (const StatisticRequest& statistic : request_.statistics) {
    // Rounded down, so that the shares never sum to more than the total.
    const double share =
        std::nextafter(rest / static_cast<double>(std::max<std::size_t>(open, 1)), 0);
    epsilons_.push_back(statistic.epsilon.value_or(open == 1 && claimed == 0 ? rest : share));
    deltas_.push_back(
        UsesGaussian(request_, statistic)
            ? (gaussian == 1 ? request_.delta
                             : std::nextafter(request_.delta / static_cast<double>(gaussian), 0))
            : 0);
  }
  epsilon_ = open > 0 ? total : claimed;
  delta_ = gaussian > 0 ? request_.delta : 0;
}

std::size_t TableRelease::UseColumn(const std::string& name, bool numeric) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].name == name && columns_[i].numeric == numeric) return i;
  }
  columns_.emplace_back();
  columns_.back().name = name;
  columns_.back().numeric = numeric;
  if (const auto rules = request_.cells.find(name); rules != request_.cells.end()) {
    columns_.back().cells = rules->second;
  }
  return columns_.size() - 1;
}

void TableRelease::MakeParts() {
  const bool users = !request_.user_column.empty();
  const bool groups = !request_.group_by.empty();
  const auto text_is_missing =
      std::any_of(request_.cells.begin(), request_.cells.end(),
                  [](const auto& column) { return column.second.text_is_missing; });
  const PrivacyUnit unit{.adjacency = request_.adjacency,
                         .rows = users ? request_.rows_per_user : 1,
                         .groups = groups_->size(),
                         .count_is_public = request_.adjacency == Adjacency::kReplaceOne &&
                                            !users && !groups &&
                                            request_.malformed == MalformedRows::kRefuse &&
                                            request_.layout.missing.empty() && !text_is_missing};
  for (const GroupByColumn& group : request_.group_by) {
    group_columns_.push_back(UseColumn(group.column, false));
  }
  if (users) user_column_ = UseColumn(request_.user_column, false);
  for (std::size_t i = 0; i < request_.statistics.size(); ++i) {
    const StatisticRequest& statistic = request_.statistics[i];
    const NoiseBudget budget{
        .epsilon = Epsilon(epsilons_[i]),
        .delta = Delta(deltas_[i]),
        .noise = UsesGaussian(request_, statistic) ? NoiseKind::kGaussian : NoiseKind::kLaplace,
        .confidence = request_.confidence};
    parts_.push_back(MakePart(statistic, unit, budget));
  }
}

TableRelease::Part TableRelease::MakePart(const StatisticRequest& statistic,
                                          const PrivacyUnit& unit, const NoiseBudget& budget) {
  Part part;
  const std::string& column = statistic.column;
  if (statistic.kind == TableStatistic::kCount) {
    part.statistic = MakeCount(unit, budget);
    return part;
  }
  if (statistic.kind == TableStatistic::kHistogram) {
    part.bins = &request_.bins.at(column);
    const bool categorical = !part.bins->categories.empty();
    part.column = UseColumn(column, !categorical);
    for (const std::string& category : part.bins->categories) part.categories.Add(category);
    part.statistic = MakeHistogram(
        categorical ? part.bins->categories.size() : part.bins->edges.size() - 1, unit, budget);
    return part;
  }
  const bool is_vector = statistic.kind == TableStatistic::kVectorMean;
  if (is_vector) {
    for (const std::string& name : SplitList(column)) part.columns.push_back(UseColumn(name, true));
    part.row.resize(part.columns.size());
  } else {
    part.column = UseColumn(column, true);
  }
  const auto moment = request_.second_moment_roots.find(column);
  const bool is_mean = is_vector || statistic.kind == TableStatistic::kMean;
  if (is_mean && moment != request_.second_moment_roots.end()) {
    part.clip_norm = BestClipNorm(moment->second, std::max<std::size_t>(1, part.columns.size()),
                                  request_.expected_records, unit, budget);
  } else if (is_vector) {
    part.clip_norm = request_.clip_norms.at(column);
  }
  if (is_vector) {
    part.statistic = MakeVectorMean(part.columns.size(), ClipNorm(*part.clip_norm), unit, budget);
    return part;
  }
  const Bounds bounds =
      part.clip_norm ? Bounds(-*part.clip_norm, *part.clip_norm) : request_.bounds.at(column);
  switch (statistic.kind) {
    case TableStatistic::kSum:
      part.statistic = MakeSum(bounds, unit, budget);
      break;
    case TableStatistic::kMean:
      part.statistic = MakeMean(bounds, unit, budget);
      break;
    case TableStatistic::kVariance:
      part.statistic = MakeVariance(bounds, unit, budget);
      break;
    default:
      part.statistic = MakeQuantile(statistic.quantile, bounds, unit, budget);
  }
  return part;
}

void TableRelease::SetHeader(const std::vector<std::string>& names) {
  header_size_ = names.size();
  for (Column& column : columns_) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (Trimmed(names[i]) == column.name) places.push_back(i);
    }
    if (places.size() == 1) {
      column.index = places.front();
      continue;
    }
    if (places.size() > 1) {
      throw Error(
          fmt::format("the column '{}' stands in the header more than once; name columns "
                      "once.",
                      column.name));
    }
    if (!request_.layout.header) {
      throw Error(
          fmt::format("there is no column '{}'; without a header the columns are called 1, "
                      "2, 3 and so on.",
                      column.name));
    }
    // The first line of a file without a header is a record.
    const std::vector<std::string_view> known(names.begin(), names.end());
    const std::string nearest = NearestName(column.name, known);
    throw DataError(
        fmt::format("there is no column '{}' in the header; name it as the first line of "
                    "the file does, or give --no-header.",
                    column.name),
        nearest.empty() ? "no name in the line is near to it"
                        : fmt::format("is it {}?", QuotedText(nearest)));
  }
}

void TableRelease::Malformed(RowFault fault, const Column* column, std::string_view reason,
                             std::uint64_t line, const std::string& detail) {
  if (request_.malformed == MalformedRows::kSkip) {
    if (skipped_++ == 0) first_skipped_ = line;
    return;
  }
  const std::size_t place =
      column == nullptr ? BadCells::kRow
                        : BadCells::PlaceOf(static_cast<std::size_t>(column - columns_.data()));
  bad_.Add(place, static_cast<int>(fault), [&]() -> BadCell {
    const std::string what = column == nullptr
                                 ? std::string(reason)
                                 : fmt::format("its field '{}' {}", column->name, reason);
    return {.what = fmt::format("a row is malformed: {}", what),
            .sentence = fmt::format(
                "a row is malformed: {}; correct it, skip such rows with --on-error skip, or "
                "declare missing values with --missing.",
                what),
            .detail = fmt::format("it is line {}{}", line, detail)};
  });
}

void TableRelease::RefuseMalformed(const std::string& table) const { bad_.Refuse(table); }

void TableRelease::AddBroken(std::string_view reason, std::uint64_t line) {
  Malformed(RowFault::kBroken, nullptr, reason, line);
}

// False where the row is malformed. All of its cells are looked at, unless it is skipped.
bool TableRelease::ReadNumbers(const std::vector<std::string_view>& fields, std::uint64_t line) {
  bool good = true;
  for (Column& column : columns_) {
    column.text = fields[column.index];
    if (!column.numeric) continue;
    column.missing = request_.layout.IsMissing(column.text);
    if (column.missing) continue;
    const NumberError error = ReadCell(column.cells, column.text, &column.number);
    column.missing = error == NumberError::kMissing;
    if (error == NumberError::kNone || column.missing) continue;
    Malformed(error == NumberError::kEmpty ? RowFault::kEmpty : RowFault::kNoNumber, &column,
              NumberErrorText(error), line);
    if (request_.malformed == MalformedRows::kSkip) return false;
    good = false;
  }
  return good;
}

// Whether the cell of a row may be none of the declared values. Where it may not, the row is
// malformed.
bool TableRelease::MayBeUndeclared(const Column& column, std::uint64_t line) {
  if (request_.layout.IsMissing(column.text)) return true;
  const bool is_empty = Trimmed(column.text).empty();
  Malformed(is_empty ? RowFault::kEmpty : RowFault::kUndeclared, &column,
            is_empty ? "is empty"
                     : "holds a value that is not declared (* declares all that are not named)",
            line);
  return false;
}

// The group and the categories of a row. False where it is malformed.
bool TableRelease::ReadValues(std::uint64_t line) {
  const bool skips = request_.malformed == MalformedRows::kSkip;
  bool good = true;
  group_ = 0;
  for (std::size_t i = 0; i < group_columns_.size(); ++i) {
    const Column& column = columns_[group_columns_[i]];
    const std::optional<std::size_t> place = groups_->PlaceOf(i, column.text);
    good = (place || MayBeUndeclared(column, line)) && good;
    if (!good && skips) return false;
    if (group_) group_ = place ? std::optional(groups_->With(*group_, i, *place)) : std::nullopt;
  }
  for (Part& part : parts_) {
    if (part.bins == nullptr || part.bins->categories.empty()) continue;
    const Column& column = columns_[*part.column];
    const std::optional<std::size_t> place = part.categories.PlaceOf(column.text);
    good = (place || MayBeUndeclared(column, line)) && good;
    if (!good && skips) return false;
    part.category = place ? static_cast<double>(*place) : -1;
  }
  return good;
}

void TableRelease::AddRow(const std::vector<std::string_view>& fields, std::uint64_t line) {
  SORDINO_CHECK(header_size_ > 0 && !finished_, "rows come between the header and the release");
  if (fields.size() != header_size_) {
    Malformed(
        RowFault::kFields, nullptr, "it has another number of fields than the first line", line,
        fmt::format(" with {} fields, and the first line has {}", fields.size(), header_size_));
    return;
  }
  const bool has_numbers = ReadNumbers(fields, line);
  if (!has_numbers && request_.malformed == MalformedRows::kSkip) return;
  if (!ReadValues(line) || !has_numbers) return;
  if (user_column_) {
    const std::string_view user = Trimmed(columns_[*user_column_].text);
    if (user.empty() || request_.layout.IsMissing(user)) {
      Malformed(RowFault::kNoUser, &columns_[*user_column_], "names no user", line);
      return;
    }
    if (!cap_->Keep(user)) return;
  }
  if (!group_) return;
  for (Part& part : parts_) AddToPart(part);
}

// The current row.
void TableRelease::AddToPart(Part& part) {
  if (!part.columns.empty()) {
    for (std::size_t i = 0; i < part.columns.size(); ++i) {
      const Column& column = columns_[part.columns[i]];
      if (column.missing) return;
      part.row[i] = column.number;
    }
    part.statistic->AddVector(*group_, part.row);
    return;
  }
  double value = 0;
  if (part.column) {
    const Column& column = columns_[*part.column];
    if (column.missing) return;
    value = column.number;
    if (part.bins != nullptr && column.numeric) {
      value = internal::EdgeBin(part.bins->edges, column.number);
    } else if (part.bins != nullptr) {
      value = part.category;
    }
  }
  part.statistic->Add(*group_, value);
}

Event TableRelease::event() const {
  std::vector<Event> events;
  events.reserve(parts_.size());
  for (const Part& part : parts_) events.push_back(part.statistic->event());
  return Event::Compose(std::move(events), request_.adjacency);
}

double TableRelease::failure() const {
  double failure = 0;
  for (const Part& part : parts_) failure += part.statistic->failure();
  return failure;
}

TableResult TableRelease::Finish(Generator& generator) {
  SORDINO_CHECK(!finished_, "a release is finished once, because its budget is spent once");
  RefuseMalformed();
  finished_ = true;
  TableResult result;
  result.epsilon = Epsilon(epsilon_);
  result.delta = Delta(delta_);
  result.is_private = generator.IsPrivate();
  result.skipped_rows = skipped_;
  result.first_skipped_line = first_skipped_;
  result.event = event();
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const StatisticRequest& statistic = request_.statistics[i];
    const Part& part = parts_[i];
    const std::vector<std::string> bins =
        part.bins == nullptr ? std::vector<std::string>() : internal::BinNames(*part.bins);
    std::vector<Release> releases = part.statistic->Finish(generator);
    for (std::size_t group = 0; group < releases.size(); ++group) {
      result.releases.push_back({.statistic = std::string(TableStatisticName(statistic.kind)),
                                 .column = statistic.column,
                                 .group = groups_->Values(group),
                                 .quantile = statistic.kind == TableStatistic::kQuantile
                                                 ? std::optional<double>(statistic.quantile)
                                                 : std::nullopt,
                                 .bins = bins,
                                 .columns = statistic.kind == TableStatistic::kVectorMean
                                                ? SplitList(statistic.column)
                                                : std::vector<std::string>(),
                                 .clip_norm = part.clip_norm,
                                 .release = std::move(releases[group])});
    }
  }
  return result;
}

TableResult ReleaseCsv(CsvReader& reader, TableRelease& release, Generator& generator,
                       const std::function<bool(std::uint64_t bytes)>& progress,
                       const std::function<void(const Event& event)>& charge) {
  TableRows records(reader, release.layout());
  release.SetHeader(records.names());
  constexpr std::uint64_t kRowsBetween = 1 << 14;
  std::uint64_t rows = 0;
  while (records.Next()) {
    if (reader.broken().empty()) {
      release.AddRow(reader.fields(), reader.line());
    } else {
      release.AddBroken(reader.broken(), reader.line());
    }
    if (++rows % kRowsBetween == 0 && !progress(reader.bytes())) {
      throw Stopped("stopped; nothing was released.");
    }
  }
  progress(reader.bytes());
  release.RefuseMalformed(reader.name());
  if (charge) charge(release.event());
  return release.Finish(generator);
}

}  // namespace sordino
