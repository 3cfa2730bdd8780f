// Private statistics of a table: what `sordino release` does, without the command line.
//
// A TableRequest names the statistics and everything that must be declared in advance: bounds,
// bins, categories, groups, the cap of rows per user. Nothing is inferred from the data (threat
// 22). The request is checked when the release is made, the columns when the header is known, and
// only then rows are read. epsilon is the total of the request: what no statistic claims for
// itself is split evenly over the others, and delta evenly over the statistics with Gaussian
// noise; the parts compose sequentially.
//
// A malformed row (wrong number of fields, broken quotes, a number that is empty, NaN, infinite,
// beyond the range of doubles or no number at all, a category or group that was not declared) is
// refused with all others, after the last row and before the charge, in a sentence that holds
// neither its line nor its cells (tables/bad_cells.h), or skipped. "*" among declared categories or
// groups takes every value that is not named. A cell that was declared to be missing leaves its row
// out of the statistics of that column, and of all groups. Skipping and missing cells make the
// number of rows that count a private number even under replace-one.
#ifndef SORDINO_MECHANISMS_TABLE_RELEASE_H_
#define SORDINO_MECHANISMS_TABLE_RELEASE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/noise_kind.h"
#include "sordino/base/quantity.h"
#include "sordino/mechanisms/calibration.h"
#include "sordino/mechanisms/release.h"
#include "sordino/mechanisms/sensitivity.h"
#include "sordino/mechanisms/streamed_statistic.h"
#include "sordino/random/generator.h"
#include "sordino/tables/bad_cells.h"
#include "sordino/tables/cell_rules.h"
#include "sordino/tables/csv_reader.h"
#include "sordino/tables/rows_per_user.h"
#include "sordino/tables/table_layout.h"

namespace sordino {

enum class TableStatistic : std::uint8_t {
  kCount,
  kSum,
  kMean,
  kVariance,
  kHistogram,
  kQuantile,
  kVectorMean,
};
std::string_view TableStatisticName(TableStatistic statistic);  // "count", ..., "vector-mean"

struct StatisticRequest {
  TableStatistic kind = TableStatistic::kCount;
  // Empty for a count; a list of columns for a vector mean, as in base/list_text.h.
  std::string column;
  double quantile = 0.5;          // of a quantile
  std::optional<double> epsilon;  // of this statistic; an even share when absent
};

// The bins of a histogram: edges of numeric bins [e_0, e_1), ..., [e_{k-1}, e_k], or categories.
// Numbers outside of all edges count in none.
struct HistogramBins {
  std::vector<double> edges;
  std::vector<std::string> categories;
};

// Every statistic is released for each declared group.
struct GroupByColumn {
  std::string column;
  std::vector<std::string> values;
};

struct TableRequest {
  std::vector<StatisticRequest> statistics;
  std::map<std::string, Bounds> bounds;       // by column
  std::map<std::string, HistogramBins> bins;  // by column
  // Of vector means, by their list of columns: the L2 norm to which their rows are clipped.
  std::map<std::string, double> clip_norms;
  // Means without bounds, and vector means: a declared s with E ||x||^2 <= s^2, by column or list
  // of columns. Rows are then clipped to the norm that makes the error bound of means.h least for
  // `expected_records` rows, a declared number too. Only the error depends on either being right.
  std::map<std::string, double> second_moment_roots;
  std::uint64_t expected_records = 0;
  std::map<std::string, CellRules> cells;  // by column; plain numbers where it is left out
  std::vector<GroupByColumn> group_by;     // groups are the combinations of their values
  std::string user_column;                 // empty: one row is one unit
  std::uint32_t rows_per_user = 1;
  Adjacency adjacency = Adjacency::kAddRemove;
  NoiseKind noise = NoiseKind::kLaplace;
  std::optional<double> epsilon;  // total; may be left out if every statistic has one
  double delta = 0;               // total; 0 exactly for Laplace
  double confidence = kDefaultConfidence;
  MalformedRows malformed = MalformedRows::kRefuse;
  TableLayout layout;
};

struct NamedRelease {
  std::string statistic;
  std::string column;
  std::vector<std::string> group;  // the value of each column of group_by
  std::optional<double> quantile;
  std::vector<std::string> bins;                   // names of the bins of a histogram
  std::vector<std::string> columns = {};           // of a vector mean, one for each value
  std::optional<double> clip_norm = std::nullopt;  // of a mean without bounds, of a vector mean
  Release release = {};
};

struct TableResult {
  std::vector<NamedRelease> releases;
  Epsilon epsilon{0};
  Delta delta{0};
  Event event = Event::None();
  bool is_private = true;
  // About the private data: not for release.
  std::uint64_t skipped_rows = 0;
  std::uint64_t first_skipped_line = 0;
};

namespace internal {
class GroupIndex;
}

class TableRelease {
 public:
  // Throws Error for a request that cannot be met, before anything is read.
  explicit TableRelease(TableRequest request);
  ~TableRelease();

  // The names of the columns; throws Error when one that is needed is missing or there twice.
  void SetHeader(const std::vector<std::string>& names);
  // One record.
  void AddRow(const std::vector<std::string_view>& fields, std::uint64_t line);
  // A record that could not be split, and why.
  void AddBroken(std::string_view reason, std::uint64_t line);
  // Throws DataError where there were malformed ones under kRefuse; `table` stands in the sentence.
  void RefuseMalformed(const std::string& table = "the table") const;
  const TableLayout& layout() const { return request_.layout; }
  // What Finish will cost. Known before any row is read, so that a release that a budget does not
  // allow is refused without a look at the data.
  Event event() const;
  // How far in total variation the noise of Finish is at most from that of the event
  // (accounting/failures.h).
  double failure() const;
  // Draws the noise. Once: the budget is spent. Throws as RefuseMalformed does.
  TableResult Finish(Generator& generator);

 private:
  struct Column;
  struct Part;
  void CheckRequest() const;
  void SplitBudget();
  void MakeParts();
  std::size_t UseColumn(const std::string& name, bool numeric);
  void CheckRanges(const StatisticRequest& statistic) const;
  Part MakePart(const StatisticRequest& statistic, const PrivacyUnit& unit,
                const NoiseBudget& budget);
  void AddToPart(Part& part);
  enum class RowFault : std::uint8_t;
  void Malformed(RowFault fault, const Column* column, std::string_view reason, std::uint64_t line,
                 const std::string& detail = "");
  bool ReadNumbers(const std::vector<std::string_view>& fields, std::uint64_t line);
  bool ReadValues(std::uint64_t line);
  bool MayBeUndeclared(const Column& column, std::uint64_t line);

  TableRequest request_;
  std::vector<double> epsilons_;  // one for each statistic
  std::vector<double> deltas_;
  double epsilon_ = 0;
  double delta_ = 0;
  std::vector<Column> columns_;
  std::vector<Part> parts_;
  std::size_t header_size_ = 0;
  std::unique_ptr<internal::GroupIndex> groups_;
  std::vector<std::size_t> group_columns_;
  std::optional<std::size_t> group_;  // of the current row
  std::optional<std::size_t> user_column_;
  std::optional<RowsPerUser> cap_;
  BadCells bad_;  // under kRefuse
  std::uint64_t skipped_ = 0;
  std::uint64_t first_skipped_ = 0;
  bool finished_ = false;
};

// Reads header and rows and finishes; the reader splits at the delimiter of the request's layout.
// `progress` is called now and then with the bytes read; when it returns false the reading stops
// and nothing is released (std::runtime_error). `charge` is called once, after the last row and
// before any noise is drawn, with what the release will cost; where it throws, nothing is released.
TableResult ReleaseCsv(CsvReader& reader, TableRelease& release, Generator& generator,
                       const std::function<bool(std::uint64_t bytes)>& progress,
                       const std::function<void(const Event& event)>& charge = {});

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_TABLE_RELEASE_H_
