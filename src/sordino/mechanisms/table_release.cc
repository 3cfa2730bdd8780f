#include "sordino/mechanisms/table_release.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>
#include <stdexcept>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/stop.h"
#include "sordino/mechanisms/quantile.h"
#include "sordino/random/discrete_gaussian.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 6> kStatisticNames = {"count",    "sum",       "mean",
                                                             "variance", "histogram", "quantile"};
constexpr std::array<std::string_view, 5> kNumberErrors = {
    "", "is empty", "is not a number", "is not finite", "is too large or too small for a double"};
constexpr std::size_t kMostGroups = 4096;
constexpr std::size_t kMostBins = std::size_t{1} << 16;
bool UsesGaussian(const TableRequest& request, const StatisticRequest& statistic) {
  return request.noise == NoiseKind::kGaussian && statistic.kind != TableStatistic::kQuantile;
}

bool NeedsBounds(TableStatistic kind) {
  return kind == TableStatistic::kSum || kind == TableStatistic::kMean ||
         kind == TableStatistic::kVariance || kind == TableStatistic::kQuantile;
}

std::string_view TrimBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The bin of a value between edges, or -1.
double EdgeBin(const std::vector<double>& edges, double value) {
  if (value < edges.front() || value > edges.back()) return -1;
  if (value == edges.back()) return static_cast<double>(edges.size() - 2);
  const auto above = std::upper_bound(edges.begin(), edges.end(), value);
  return static_cast<double>(above - edges.begin() - 1);
}

void CheckBins(const std::string& column, const HistogramBins& bins) {
  if (!bins.categories.empty()) {
    const std::set<std::string> distinct(bins.categories.begin(), bins.categories.end());
    if (distinct.size() != bins.categories.size()) {
      throw Error(fmt::format("A category of '{}' was declared twice; name each once.", column));
    }
  } else {
    for (std::size_t i = 0; i + 1 < bins.edges.size(); ++i) {
      if (!(bins.edges[i] < bins.edges[i + 1]) || !std::isfinite(bins.edges[i + 1])) {
        throw Error(
            fmt::format("The edges of the bins of '{}' must be finite and increase.", column));
      }
    }
  }
  const std::size_t count =
      bins.categories.empty() ? bins.edges.size() : bins.categories.size() + 1;
  if (count < 3 || count > kMostBins) {
    throw Error(
        fmt::format("The histogram of '{}' needs between 2 and {} bins.", column, kMostBins - 1));
  }
}

}  // namespace

// A column of the table that some statistic reads.
struct TableRelease::Column {
  std::string name;
  bool numeric = false;
  std::size_t index = 0;  // in the file
  double number = 0;      // of the current row
  std::string_view text;
};

struct TableRelease::Part {
  std::unique_ptr<StreamedStatistic> statistic;
  std::optional<std::size_t> column;  // in columns_
  const HistogramBins* bins = nullptr;
  std::map<std::string_view, std::size_t> categories;
};

std::string_view TableStatisticName(TableStatistic statistic) {
  return kStatisticNames[static_cast<std::size_t>(statistic)];
}

NumberError ParseNumber(std::string_view field, double* number) {
  field = TrimBlanks(field);
  if (field.empty()) return NumberError::kEmpty;
  if (field.size() > 1 && field.front() == '+' && field[1] != '-') field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), *number);
  if (end != field.data() + field.size()) return NumberError::kNotANumber;
  if (error == std::errc::result_out_of_range) return NumberError::kOutOfRange;
  if (error != std::errc()) return NumberError::kNotANumber;
  return std::isfinite(*number) ? NumberError::kNone : NumberError::kNotFinite;
}

TableRelease::TableRelease(TableRequest request) : request_(std::move(request)) {
  CheckRequest();
  SplitBudget();
  for (std::size_t i = 0; i < request_.groups.size(); ++i) {
    if (!group_index_.emplace(request_.groups[i], i).second) {
      throw Error(
          fmt::format("The group '{}' was declared twice; name each once.", request_.groups[i]));
    }
  }
  if (!request_.user_column.empty()) cap_.emplace(request_.rows_per_user);
  MakeParts();
}

TableRelease::~TableRelease() = default;

void TableRelease::CheckRequest() const {
  if (request_.statistics.empty()) {
    throw Error("Nothing was asked for; name at least one statistic, for example a mean.");
  }
  CheckRange("the confidence", request_.confidence, 0, true, 1, true);
  if (request_.noise == NoiseKind::kLaplace && request_.delta != 0) {
    throw Error("Laplace noise has delta 0; leave delta out or ask for Gaussian noise.");
  }
  if (request_.noise == NoiseKind::kGaussian) {
    CheckRange("delta", request_.delta, 0, true, 1, true);
  }
  if (request_.adjacency == Adjacency::kZeroOut) {
    throw Error("A table is released under add-remove or replace-one adjacency, not zero-out.");
  }
  if (!request_.group_column.empty() &&
      (request_.groups.empty() || request_.groups.size() > kMostGroups)) {
    throw Error(fmt::format(
        "Grouping by '{}' needs between 1 and {} groups, declared in advance: groups that are read "
        "from the data would tell who is in it.",
        request_.group_column, kMostGroups));
  }
  for (const StatisticRequest& statistic : request_.statistics) {
    const std::string_view name = TableStatisticName(statistic.kind);
    if ((statistic.kind == TableStatistic::kCount) != statistic.column.empty()) {
      throw Error(
          fmt::format("A {} needs {}.", name, statistic.column.empty() ? "a column" : "no column"));
    }
    if (NeedsBounds(statistic.kind) && !request_.bounds.contains(statistic.column)) {
      throw Error(
          fmt::format("The {} of '{}' needs declared bounds, because without them one row can move "
                      "it as far as "
                      "it likes; give them as low,high, and not from the data.",
                      name, statistic.column));
    }
    if (statistic.kind == TableStatistic::kHistogram) {
      const auto bins = request_.bins.find(statistic.column);
      if (bins == request_.bins.end()) {
        throw Error(
            fmt::format("The histogram of '{}' needs bins or categories, declared in advance.",
                        statistic.column));
      }
      CheckBins(statistic.column, bins->second);
    }
  }
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
    throw Error("No epsilon was given; give the total that the release may spend.");
  }
  const double total = request_.epsilon.value_or(claimed);
  const double rest = total - claimed;
  if (claimed > total * (1 + 1e-12) || (open > 0 && !(rest > 0))) {
    throw Error(fmt::format(
        "The statistics claim an epsilon of {} together and the total is {}; raise the total or "
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
  return columns_.size() - 1;
}

void TableRelease::MakeParts() {
  const bool users = !request_.user_column.empty();
  const bool groups = !request_.group_column.empty();
  const PrivacyUnit unit{.adjacency = request_.adjacency,
                         .rows = users ? request_.rows_per_user : 1,
                         .groups = groups ? request_.groups.size() : 1,
                         .count_is_public = request_.adjacency == Adjacency::kReplaceOne &&
                                            !users && !groups &&
                                            request_.malformed == MalformedRows::kRefuse};
  if (groups) group_column_ = UseColumn(request_.group_column, false);
  if (users) user_column_ = UseColumn(request_.user_column, false);
  for (std::size_t i = 0; i < request_.statistics.size(); ++i) {
    const StatisticRequest& statistic = request_.statistics[i];
    const NoiseBudget budget{
        .epsilon = Epsilon(epsilons_[i]),
        .delta = Delta(deltas_[i]),
        .noise = UsesGaussian(request_, statistic) ? NoiseKind::kGaussian : NoiseKind::kLaplace,
        .confidence = request_.confidence};
    Part part;
    if (statistic.kind == TableStatistic::kHistogram) {
      part.bins = &request_.bins.at(statistic.column);
      const bool categorical = !part.bins->categories.empty();
      part.column = UseColumn(statistic.column, !categorical);
      for (std::size_t bin = 0; bin < part.bins->categories.size(); ++bin) {
        part.categories.emplace(part.bins->categories[bin], bin);
      }
      part.statistic = MakeHistogram(
          categorical ? part.bins->categories.size() : part.bins->edges.size() - 1, unit, budget);
    } else if (statistic.kind == TableStatistic::kCount) {
      part.statistic = MakeCount(unit, budget);
    } else {
      part.column = UseColumn(statistic.column, true);
      const Bounds& bounds = request_.bounds.at(statistic.column);
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
    }
    parts_.push_back(std::move(part));
  }
}

void TableRelease::SetHeader(const std::vector<std::string_view>& names) {
  header_size_ = names.size();
  for (Column& column : columns_) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (TrimBlanks(names[i]) == column.name) places.push_back(i);
    }
    if (places.size() == 1) {
      column.index = places.front();
      continue;
    }
    if (places.size() > 1) {
      throw Error(fmt::format("The column '{}' stands {} times in the header; name columns once.",
                              column.name, places.size()));
    }
    const std::string nearest = NearestName(column.name, names);
    throw Error(fmt::format("There is no column '{}' in the header; {}", column.name,
                            nearest.empty() ? std::string("check the first line of the file.")
                                            : fmt::format("did you mean '{}'?", nearest)));
  }
}

void TableRelease::Malformed(std::string_view reason, std::string_view column, std::uint64_t line) {
  if (request_.malformed == MalformedRows::kSkip) {
    if (skipped_++ == 0) first_skipped_ = line;
    return;
  }
  const std::string what =
      column.empty() ? std::string(reason) : fmt::format("its field '{}' {}", column, reason);
  throw Error(fmt::format(
      "Line {} is malformed: {}; correct it, or skip such rows with --on-error skip.", line, what));
}

void TableRelease::AddBroken(std::string_view reason, std::uint64_t line) {
  Malformed(reason, "", line);
}

void TableRelease::AddRow(const std::vector<std::string_view>& fields, std::uint64_t line) {
  SORDINO_CHECK(header_size_ > 0 && !finished_, "rows come between the header and the release");
  if (fields.size() != header_size_) {
    Malformed(fmt::format("it has {} fields where the header has {}", fields.size(), header_size_),
              "", line);
    return;
  }
  for (Column& column : columns_) {
    column.text = fields[column.index];
    if (!column.numeric) continue;
    const NumberError error = ParseNumber(column.text, &column.number);
    if (error != NumberError::kNone) {
      Malformed(kNumberErrors[static_cast<std::size_t>(error)], column.name, line);
      return;
    }
  }
  if (user_column_ && !cap_->Keep(columns_[*user_column_].text)) return;
  std::size_t group = 0;
  if (group_column_) {
    const auto found = group_index_.find(TrimBlanks(columns_[*group_column_].text));
    if (found == group_index_.end()) return;
    group = found->second;
  }
  for (Part& part : parts_) {
    double value = 0;
    if (part.column) {
      const Column& column = columns_[*part.column];
      value = column.number;
      if (part.bins != nullptr && column.numeric) {
        value = EdgeBin(part.bins->edges, column.number);
      } else if (part.bins != nullptr) {
        const auto found = part.categories.find(TrimBlanks(column.text));
        value = found == part.categories.end() ? -1 : static_cast<double>(found->second);
      }
    }
    part.statistic->Add(group, value);
  }
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
    std::vector<std::string> bins;
    if (part.bins != nullptr) {
      bins = part.bins->categories;
      const std::vector<double>& edges = part.bins->edges;
      for (std::size_t j = 0; bins.size() + 1 < edges.size(); ++j) {
        const bool last = j + 2 == edges.size();
        bins.push_back(fmt::format("[{},{}{}", edges[j], edges[j + 1], last ? "]" : ")"));
      }
    }
    std::vector<Release> releases = part.statistic->Finish(generator);
    for (std::size_t group = 0; group < releases.size(); ++group) {
      result.releases.push_back(
          {.statistic = std::string(TableStatisticName(statistic.kind)),
           .column = statistic.column,
           .group = request_.group_column.empty() ? "" : request_.groups[group],
           .quantile = statistic.kind == TableStatistic::kQuantile
                           ? std::optional<double>(statistic.quantile)
                           : std::nullopt,
           .bins = bins,
           .release = std::move(releases[group])});
    }
  }
  return result;
}

TableResult ReleaseCsv(CsvReader& reader, TableRelease& release, Generator& generator,
                       const std::function<bool(std::uint64_t bytes)>& progress,
                       const std::function<void(const Event& event)>& charge) {
  if (!reader.Next() || !reader.broken().empty()) {
    throw Error("The file has no header; its first line must name the columns.");
  }
  release.SetHeader(reader.fields());
  constexpr std::uint64_t kRowsBetween = 1 << 14;
  std::uint64_t rows = 0;
  while (reader.Next()) {
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
  if (charge) charge(release.event());
  return release.Finish(generator);
}

}  // namespace sordino
