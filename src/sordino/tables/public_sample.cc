#include "sordino/tables/public_sample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/list_text.h"

namespace sordino {
namespace {

// Text with more values than that is no category, nor is text whose values hardly repeat.
constexpr std::size_t kMostCategories = 50;
constexpr std::size_t kFewCategories = 5;
// So many cells must be numbers for the others to be mistakes among numbers.
constexpr double kNumberShare = 0.8;
constexpr std::size_t kMostLabels = 10;

using Cells = std::vector<std::string_view>;

struct Signs {
  char decimal;
  char thousands;
};
constexpr std::array<Signs, 7> kSigns = {
    {{'.', '\0'}, {',', '\0'}, {'.', ','}, {',', '.'}, {'.', '\''}, {'.', ' '}, {',', ' '}}};
constexpr std::size_t kPoint = 0;
constexpr std::size_t kComma = 1;
constexpr std::size_t kCommaThousands = 2;
constexpr std::size_t kPointThousands = 3;

constexpr std::array<std::string_view, 12> kFormats = {
    "YYYY-MM-DD", "YYYY-MM-DD hh:mm", "YYYY-MM-DD hh:mm:ss", "YYYY-MM-DDThh:mm:ss",
    "YYYY/MM/DD", "DD.MM.YYYY",       "DD.MM.YYYY hh:mm",    "DD.MM.YYYY hh:mm:ss",
    "DD/MM/YYYY", "MM/DD/YYYY",       "DD-MM-YYYY",          "MM-DD-YYYY"};

// The least and the largest number of the cells that are some, and how many are.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  std::size_t count = 0;
};

Range RangeOf(const CellRules& rules, const Cells& cells) {
  Range range;
  for (const std::string_view cell : cells) {
    double number = 0;
    if (ReadCell(rules, cell, &number) != NumberError::kNone) continue;
    range.low = std::min(range.low, number);
    range.high = std::max(range.high, number);
    ++range.count;
  }
  return range;
}

// Outward, to two digits of the width.
void SetRoundBounds(const Range& range, TableColumn& column) {
  const double step = std::pow(10, std::floor(std::log10(range.high - range.low)) - 1);
  // Divided where the step is below 1, so that 0.1 stays 0.1.
  const double inverse = std::round(1 / step);
  const auto at = [&](double steps) { return step < 1 ? steps / inverse : steps * step; };
  column.low = at(std::floor(range.low / step + 1e-9));
  column.high = at(std::ceil(range.high / step - 1e-9));
  if (column.low > range.low) column.low = range.low;
  if (column.high < range.high) column.high = range.high;
}

void SetYearBounds(const Range& range, TableColumn& column) {
  const auto year = [](double days) { return IsoDate(days).substr(0, 4); };
  ParseIsoDate(year(range.low) + "-01-01", &column.low);
  ParseIsoDate(year(range.high) + "-12-31", &column.high);
}

// What stands around the digits of a cell: "kg" of "<72 kg", "CHF" of "CHF 5", but nothing of "A5".
std::string_view UnitAround(std::string_view cell) {
  constexpr std::string_view kOfNumbers = "0123456789.,'+-";
  const std::size_t begin = cell.find_first_of(kOfNumbers);
  const std::size_t end = cell.find_last_of("0123456789");
  if (begin == std::string_view::npos || end == std::string_view::npos) return {};
  std::string_view before = cell.substr(0, begin);
  while (!before.empty() &&
         std::string_view("<>=\u2264\u2265 ").find(before[0]) != std::string::npos) {
    before.remove_prefix(1);
  }
  const std::string_view behind = Trimmed(cell.substr(end + 1));
  if (!behind.empty()) return behind;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return before.empty() || is_letter(before.back()) ? std::string_view() : Trimmed(before);
}

bool IsCensored(std::string_view cell) {
  return cell.starts_with('<') || cell.starts_with('>') || cell.starts_with("\u2264") ||
         cell.starts_with("\u2265");
}

// A column of the sample without its missing cells.
class SampleColumn {
 public:
  SampleColumn(std::string name, const PublicTable& table, std::size_t place)
      : name_(std::move(name)) {
    for (const std::vector<std::string>& row : table.rows) {
      if (LooksMissing(row[place])) continue;
      cells_.push_back(row[place]);
      ++values_[cells_.back()];
    }
    for (std::size_t i = 0; i < kSigns.size(); ++i) {
      shares_[i] = cells_.empty() ? 0
                                  : static_cast<double>(RangeOf(NumberRules(i), cells_).count) /
                                        static_cast<double>(cells_.size());
    }
    largest_ = *std::max_element(shares_.begin(), shares_.end());
    // "<=50K" and ">50K" are classes, not numbers below and above a limit.
    const auto censored = std::count_if(cells_.begin(), cells_.end(), IsCensored);
    if (2 * static_cast<std::size_t>(censored) > cells_.size()) largest_ = 0;
  }

  const std::string& name() const { return name_; }
  bool IsNumbers() const { return largest_ >= kNumberShare; }
  bool Fits(std::size_t signs) const { return shares_[signs] == largest_; }
  // Whether the signs follow from this column alone.
  bool Decides() const { return IsNumbers() && !(Fits(kComma) && Fits(kCommaThousands)); }
  bool HasSign(char sign) const {
    return std::any_of(cells_.begin(), cells_.end(), [sign](std::string_view cell) {
      return cell.find(sign) != std::string_view::npos;
    });
  }

  // `comma` and `point`: whether some column shows that they are the sign of decimals.
  DraftColumn Draft(bool comma, bool point) const {
    DraftColumn draft{.name = name_};
    if (cells_.empty()) {
      draft.note = "the sample has no values of it";
    } else if (values_.size() == 1) {
      draft.note = "the sample has one value of it";
    } else if (!DraftBoolean(draft) && !DraftDate(draft) && !DraftNumber(comma, point, draft)) {
      DraftValues(draft);
    }
    return draft;
  }

  // Of the sample, for a label.
  std::vector<std::string> Values() const {
    std::vector<std::string> names;
    for (const auto& [value, count] : values_) names.emplace_back(value);
    return names;
  }

 private:
  CellRules NumberRules(std::size_t signs) const {
    CellRules rules{.decimal = kSigns[signs].decimal, .thousands = kSigns[signs].thousands};
    std::set<std::string_view> units;
    for (const auto& [cell, count] : values_) {
      if (IsCensored(cell)) rules.censored = Censored::kLimit;
      const std::string_view unit = UnitAround(cell);
      if (!unit.empty()) units.insert(unit);
    }
    if (units.size() == 1) rules.units = {{.name = std::string(*units.begin())}};
    return rules;
  }

  TableColumn Declared() const { return {.name = name_}; }

  bool DraftBoolean(DraftColumn& draft) const {
    TableColumn column = Declared();
    column.cells.form = CellForm::kBoolean;
    const Range range = RangeOf(column.cells, cells_);
    const bool digits = values_.contains("0") || values_.contains("1");
    if (digits || range.count != cells_.size() || range.low == range.high) return false;
    draft.declared = column;
    return true;
  }

  bool DraftDate(DraftColumn& draft) const {
    TableColumn column = Declared();
    column.cells.form = CellForm::kDate;
    std::vector<std::string_view> fitting;
    for (const std::string_view format : kFormats) {
      column.cells.date_format = format;
      if (RangeOf(column.cells, cells_).count == cells_.size()) fitting.push_back(format);
    }
    if (fitting.empty()) return false;
    if (fitting.size() > 1) {
      draft.note = fmt::format("dates: write kind = \"date\" with low, high and format = \"{}\"",
                               fmt::join(fitting, "\" or \""));
      return true;
    }
    column.cells.date_format = fitting.front();
    SetYearBounds(RangeOf(column.cells, cells_), column);
    draft.declared = column;
    return true;
  }

  bool DraftNumber(bool comma, bool point, DraftColumn& draft) const {
    if (!IsNumbers()) return false;
    std::size_t signs = 0;
    while (!Fits(signs)) ++signs;
    if (signs == kPoint && comma && HasSign('.') && Fits(kPointThousands)) signs = kPointThousands;
    if (!Decides() && signs != kPoint) {
      if (comma == point) {
        draft.note =
            "numbers: is 1,234 a thousand? write kind = \"numeric\" with low, high and thousands = "
            "\",\" or decimal = \",\"";
        return true;
      }
      signs = comma ? kComma : kCommaThousands;
    }
    TableColumn column = Declared();
    column.cells = NumberRules(signs);
    const Range range = RangeOf(column.cells, cells_);
    if (range.low == range.high) return false;  // one number, spelled in several ways
    column.cells.text_is_missing = range.count < cells_.size();
    if (column.cells.text_is_missing) draft.note = "some cells of the sample are no numbers";
    SetRoundBounds(range, column);
    draft.declared = column;
    return true;
  }

  void DraftValues(DraftColumn& draft) const {
    const bool repeats = values_.size() <= kFewCategories || 2 * values_.size() <= cells_.size();
    if (values_.size() > kMostCategories || !repeats) {
      draft.note = "text with many values; if it tells whose row it is, write kind = \"user\"";
      return;
    }
    TableColumn column = Declared();
    column.role = ColumnRole::kCategorical;
    column.values = Values();
    if (column.values.front() != kOtherCategory) column.values.emplace_back(kOtherCategory);
    draft.declared = column;
  }

  std::string name_;
  Cells cells_;
  std::map<std::string_view, std::size_t> values_;
  std::array<double, kSigns.size()> shares_{};
  double largest_ = 0;
};

// "id", "patient_id", "PatientID": numbers that are names.
bool IsNameOfUsers(std::string_view name) {
  return name == "id" || name == "ID" || name.ends_with("_id") || name.ends_with("-id") ||
         name.ends_with(" id") || name.ends_with("Id") || (name.size() > 2 && name.ends_with("ID"));
}

void AddMissing(const PublicTable& table, std::vector<std::string>& missing) {
  std::set<std::string> found;
  for (const std::vector<std::string>& row : table.rows) {
    for (const std::string& cell : row) {
      if (LooksMissing(cell)) found.insert(cell);
    }
  }
  missing.insert(missing.end(), found.begin(), found.end());
}

// A number with few whole values is a label too.
bool IsLabel(const DraftColumn& draft, const SampleColumn& column) {
  if (draft.declared->HasValues() || draft.declared->cells.form == CellForm::kBoolean) return true;
  const std::vector<std::string> values = column.Values();
  return values.size() <= kMostLabels && !column.HasSign('.') && !column.HasSign(',');
}

std::vector<SampleColumn> ColumnsOf(const PublicTable& table) {
  std::vector<SampleColumn> columns;
  for (std::size_t i = 0; i < table.names.size(); ++i) {
    columns.emplace_back(table.names[i], table, i);
  }
  return columns;
}

void MakePredicted(DraftColumn& draft, const SampleColumn* column) {
  if (!draft.declared || draft.declared->cells.form == CellForm::kDate) {
    throw Error(fmt::format(
        "the column '{}' can be neither a label nor a target: {}.", draft.name,
        draft.declared ? "it holds dates" : "neither its values nor its bounds are known"));
  }
  TableColumn& declared = *draft.declared;
  if (column == nullptr ? !declared.HasBounds() : IsLabel(draft, *column)) {
    if (column != nullptr) declared = {.name = draft.name, .values = column->Values()};
    std::erase(declared.values, std::string(kOtherCategory));
    declared.role = ColumnRole::kLabel;
  } else {
    declared.role = ColumnRole::kTarget;
    declared.cells.text_is_missing = false;
  }
  CheckColumn(declared);
  draft.note = "what a model shall tell";
}

// What a codebook tells of a column whose cells the sample shows: it has no words for decimal
// signs, and may leave units and the format of dates out.
DraftColumn Joined(const DraftColumn& shown, DraftColumn told) {
  if (!shown.declared) {
    if (told.note.empty() && told.declared->HasBounds()) told.note = shown.note;
    return told;
  }
  CellRules& cells = told.declared->cells;
  const CellRules& seen = shown.declared->cells;
  if (!told.declared->HasBounds() || !shown.declared->HasBounds() || cells.form != seen.form) {
    return told;
  }
  if (cells.form == CellForm::kDate && cells.date_format == CellRules().date_format) {
    cells.date_format = seen.date_format;
  } else if (cells.form == CellForm::kNumber) {
    const std::vector<CellUnit> units = cells.units.empty() ? seen.units : cells.units;
    cells = seen;
    cells.units = units;
    cells.text_is_missing = seen.text_is_missing && told.declared->role == ColumnRole::kNumeric;
  }
  return told;
}

}  // namespace

std::vector<DraftColumn> DraftColumns(PublicTable& table) {
  AddMissing(table, table.layout.missing);
  const std::vector<SampleColumn> columns = ColumnsOf(table);
  bool comma = false;
  bool point = false;
  for (const SampleColumn& column : columns) {
    if (!column.Decides()) continue;
    point = point || (column.HasSign('.') && (column.Fits(kPoint) || column.Fits(kCommaThousands)));
    comma = comma || (column.HasSign(',') && (column.Fits(kComma) || column.Fits(kPointThousands)));
  }
  std::vector<DraftColumn> drafts;
  for (const SampleColumn& column : columns) {
    drafts.push_back(column.Draft(comma, point));
    if (!IsNameOfUsers(column.name())) continue;
    drafts.back().declared.reset();
    drafts.back().note = "if it tells whose row it is: kind = \"user\", and rows-per-user above";
  }
  return drafts;
}

PublicSchema SchemaFromPublic(const PublicSources& sources) {
  PublicTable table;
  std::vector<DraftColumn> drafts;
  std::vector<SampleColumn> columns;
  if (!sources.sample.empty()) {
    table = ReadPublicTable(sources.sample, sources.layout);
    drafts = DraftColumns(table);
    columns = ColumnsOf(table);
  }
  if (!sources.codebook.empty()) {
    for (DraftColumn& told : ReadCodebook(sources.codebook, {}, table.layout.missing)) {
      const auto found = std::find_if(drafts.begin(), drafts.end(), [&](const DraftColumn& draft) {
        return draft.name == told.name;
      });
      if (found == drafts.end()) {
        drafts.push_back(std::move(told));
      } else if (told.declared) {
        *found = Joined(*found, std::move(told));
      }
    }
    table.is_text = table.is_text && !sources.sample.empty();
  }
  if (!sources.predicted.empty()) {
    const auto found = std::find_if(drafts.begin(), drafts.end(), [&](const DraftColumn& draft) {
      return draft.name == sources.predicted;
    });
    if (found == drafts.end()) {
      throw Error(
          fmt::format("the public data have no column '{}' to predict; name one that is there.",
                      sources.predicted));
    }
    const auto place = static_cast<std::size_t>(found - drafts.begin());
    MakePredicted(*found, place < columns.size() ? &columns[place] : nullptr);
  }
  const std::string source =
      fmt::format("Made from a public {}, and nothing of the private table was read.",
                  sources.codebook.empty() ? "sample"
                  : sources.sample.empty() ? "codebook"
                                           : "sample and codebook");
  PublicSchema schema;
  schema.text = SchemaText(drafts, table.layout, table.is_text, source);
  schema.columns = std::move(drafts);
  return schema;
}

}  // namespace sordino
