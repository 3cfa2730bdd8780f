#include "sordino/mechanisms/internal/group_index.h"

#include <fmt/format.h>

#include "sordino/base/error.h"
#include "sordino/base/list_text.h"

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
    for (std::size_t i = 0; i < given.values.size(); ++i) {
      if (!column.index.emplace(Trimmed(given.values[i]), i).second) {
        throw Error(
            fmt::format("the group '{}' was declared twice; name each once.", given.values[i]));
      }
    }
    size_ *= given.values.size();
    columns_.push_back(std::move(column));
  }
}

std::optional<std::size_t> GroupIndex::Find(std::span<const std::string_view> cells) const {
  std::size_t group = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto found = columns_[i].index.find(Trimmed(cells[i]));
    if (found == columns_[i].index.end()) return std::nullopt;
    group = group * columns_[i].values.size() + found->second;
  }
  return group;
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
