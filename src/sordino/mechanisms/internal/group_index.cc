#include "sordino/mechanisms/internal/group_index.h"

#include <fmt/format.h>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

constexpr std::size_t kMaxGroups = 4096;

}  // namespace

GroupIndex::GroupIndex(std::span<const GroupByColumn> columns) {
  for (const GroupByColumn& given : columns) {
    for (const GroupByColumn& other : columns) {
      if (&other != &given && other.column == given.column) {
        throw Error(fmt::format("the groups of '{}' were declared twice; declare them once.",
                                given.column));
      }
    }
    if (given.values.empty() || given.values.size() > kMaxGroups / size_) {
      throw Error(fmt::format(
          "grouping by '{}' needs between 1 and {} groups in all, declared in advance: groups that "
          "are read from the data would tell who is in it.",
          given.column, kMaxGroups));
    }
    Column column{given.values, {}};
    for (const std::string& value : given.values) {
      if (!column.places.Add(value)) {
        throw Error(fmt::format("the group '{}' was declared twice; name each once.", value));
      }
    }
    size_ *= given.values.size();
    columns_.push_back(std::move(column));
  }
}

std::vector<std::string> GroupIndex::Values(std::size_t group) const {
  std::vector<std::string> values(columns_.size());
  for (std::size_t i = columns_.size(); i-- > 0;) {
    values[i] = columns_[i].values[group % columns_[i].values.size()];
    group /= columns_[i].values.size();
  }
  return values;
}

}  // namespace sordino::internal
