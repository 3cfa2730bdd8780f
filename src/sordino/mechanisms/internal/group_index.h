// The declared groups of a table: every combination of the declared values of one column or more.
#ifndef SORDINO_MECHANISMS_INTERNAL_GROUP_INDEX_H_
#define SORDINO_MECHANISMS_INTERNAL_GROUP_INDEX_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/mechanisms/internal/declared_values.h"
#include "sordino/mechanisms/table_release.h"

namespace sordino::internal {

class GroupIndex {
 public:
  // Throws Error for a column without groups or named twice, for a group that is declared twice,
  // and for too many combinations.
  explicit GroupIndex(std::span<const GroupByColumn> columns);

  // Combinations; 1 where there are no columns.
  std::size_t size() const { return size_; }
  // The place of a cell among the values of a column; nothing where it is none of them.
  std::optional<std::size_t> PlaceOf(std::size_t column, std::string_view cell) const {
    return columns_[column].places.PlaceOf(cell);
  }
  // The combination of `group`, of the columns before this one, with a place of this one.
  std::size_t With(std::size_t group, std::size_t column, std::size_t place) const {
    return group * columns_[column].values.size() + place;
  }
  // The values of a combination, one for each column.
  std::vector<std::string> Values(std::size_t group) const;

 private:
  struct Column {
    std::vector<std::string> values;
    DeclaredValues places;
  };
  std::vector<Column> columns_;
  std::size_t size_ = 1;
};

}  // namespace sordino::internal

#endif  // SORDINO_MECHANISMS_INTERNAL_GROUP_INDEX_H_
