// The declared groups of a table: every combination of the declared values of one column or more.
#ifndef SORDINO_MECHANISMS_INTERNAL_GROUP_INDEX_H_
#define SORDINO_MECHANISMS_INTERNAL_GROUP_INDEX_H_

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sordino/mechanisms/table_release.h"

namespace sordino::internal {

class GroupIndex {
 public:
  // Throws Error for a column without groups or named twice, for a group that is declared twice,
  // and for too many combinations.
  explicit GroupIndex(std::span<const GroupByColumn> columns);

  // Combinations; 1 where there are no columns.
  std::size_t size() const { return size_; }
  // The combination of a row, from one cell for each column; nothing for one that is not declared.
  std::optional<std::size_t> Find(std::span<const std::string_view> cells) const;
  // The values of a combination, one for each column.
  std::vector<std::string> Values(std::size_t group) const;

 private:
  struct Column {
    std::vector<std::string> values;
    std::map<std::string, std::size_t, std::less<>> index;
  };
  std::vector<Column> columns_;
  std::size_t size_ = 1;
};

}  // namespace sordino::internal

#endif  // SORDINO_MECHANISMS_INTERNAL_GROUP_INDEX_H_
