// What is declared about the columns of a table, before a row of it is read.
//
//   age:numeric:0:120            a number, clamped to the bounds
//   city:categorical:Bern|Basel  one of these values
//   sick:label:no~n|yes~y        the class, in the order of the names; n and y are other spellings
//   cost:target:0:5000           the number that a model predicts, clamped to the bounds
//   id:user                      whose row it is
//   note:text:1024               free text, whose words are hashed into so many features
//   birth:date:1920-01-01:2020-12-31:format=DD.MM.YYYY    a number of days, clamped
//   smoker:boolean:nein|ja       0 or 1; without the words yes and no, true and false and the like
//   weight:numeric:0:300:unit=kg:decimal=,                by rules for its cells (cell_rules.h)
//
// Names and values are written as in all lists (base/list_text.h): income:label:"a|b"|c. The
// category "*" takes every value that is not named, an empty cell too.
#ifndef SORDINO_TABLES_TABLE_COLUMNS_H_
#define SORDINO_TABLES_TABLE_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/tables/cell_rules.h"

namespace sordino {

inline constexpr std::string_view kOtherCategory = "*";
inline constexpr std::int64_t kMaxTextBuckets = 65'536;
// In schemas, of columns that are not read.
inline constexpr std::string_view kIgnoredKind = "ignored";

enum class ColumnRole : std::uint8_t { kNumeric, kCategorical, kLabel, kTarget, kUser, kText };

// Another way in which a value stands in the table.
struct ValueSpelling {
  std::string text;
  std::size_t value = 0;  // its place among the values
};

struct TableColumn {
  std::string name;
  ColumnRole role = ColumnRole::kNumeric;
  double low = 0;  // kNumeric, kTarget; of dates in days since 1970-01-01
  double high = 1;
  std::vector<std::string> values = {};  // kCategorical, kLabel
  std::vector<ValueSpelling> spellings = {};
  std::int64_t buckets = 0;  // kText: features that words are hashed into, 2 to kMaxTextBuckets
  CellRules cells = {};      // kNumeric, kTarget

  // Numbers that an example has for the column.
  std::int64_t Features() const;
  bool HasBounds() const { return role == ColumnRole::kNumeric || role == ColumnRole::kTarget; }
  bool HasValues() const { return role == ColumnRole::kCategorical || role == ColumnRole::kLabel; }
  // The place of the value that a cell without blanks at its ends stands for; values.size() for
  // none.
  std::size_t ValueOf(std::string_view cell) const;
};

// What a column can be declared as: the roles in the order of the enumeration, "numeric", ..., and
// behind them "date" and "boolean", which are numeric.
std::span<const std::string_view> ColumnKindNames();
void SetColumnKind(TableColumn& column, std::size_t kind);
std::string_view ColumnKindName(const TableColumn& column);

// Throws Error unless the bounds are finite and in order, or there are two different values or
// more, and the rules for its cells hold together: of a column however it was declared.
void CheckColumn(const TableColumn& column);
// Throws Error unless names differ, and there is at most one label or target and one user.
void CheckColumns(std::span<const TableColumn> columns);

// Adds a value with its spellings, the first of which is its name.
void AddValue(TableColumn& column, std::vector<std::string> spellings);

// "age:numeric:0:120". Throws Error unless every column is well formed and they hold together.
std::vector<TableColumn> ParseColumns(const std::vector<std::string>& declared);
// What ParseColumns reads back to the same column.
std::string ColumnText(const TableColumn& column);

}  // namespace sordino

#endif  // SORDINO_TABLES_TABLE_COLUMNS_H_
