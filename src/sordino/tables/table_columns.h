// What is declared about the columns of a table, before a row of it is read.
//
//   age:numeric:0:120            a number, clamped to the bounds
//   city:categorical:Bern|Basel  one of these values
//   sick:label:no|yes            the class, in the order of the names
//   id:user                      whose row it is
//
// Names and values are written as in all lists (base/list_text.h): income:label:"a|b"|c. The
// category "*" takes every value that is not named, an empty cell too.
#ifndef SORDINO_TABLES_TABLE_COLUMNS_H_
#define SORDINO_TABLES_TABLE_COLUMNS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sordino {

inline constexpr std::string_view kOtherCategory = "*";

enum class ColumnRole : std::uint8_t { kNumeric, kCategorical, kLabel, kUser };

struct TableColumn {
  std::string name;
  ColumnRole role = ColumnRole::kNumeric;
  double low = 0;  // kNumeric
  double high = 1;
  std::vector<std::string> values;  // kCategorical, kLabel

  // Numbers that an example has for the column.
  std::int64_t Features() const;
};

// Of every role, in the order of the enumeration: "numeric", ...
std::span<const std::string_view> ColumnRoleNames();

// Throws Error unless the bounds are finite and in order, or there are two different values or
// more: of a column however it was declared.
void CheckColumn(const TableColumn& column);
// Throws Error unless names differ, and there is at most one label and one user.
void CheckColumns(std::span<const TableColumn> columns);

// "age:numeric:0:120". Throws Error unless every column is well formed and they hold together.
std::vector<TableColumn> ParseColumns(const std::vector<std::string>& declared);
// What ParseColumns reads back to the same column.
std::string ColumnText(const TableColumn& column);

}  // namespace sordino

#endif  // SORDINO_TABLES_TABLE_COLUMNS_H_
