// The place of a cell among the declared values of a column.
#ifndef SORDINO_MECHANISMS_INTERNAL_DECLARED_VALUES_H_
#define SORDINO_MECHANISMS_INTERNAL_DECLARED_VALUES_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "sordino/base/list_text.h"
#include "sordino/tables/table_columns.h"

namespace sordino::internal {

class DeclaredValues {
 public:
  // As the next place. False where it is there already.
  bool Add(std::string_view value) {
    const auto [added, is_new] = places_.emplace(Trimmed(value), places_.size());
    if (added->first == kOtherCategory) other_ = added->second;
    return is_new;
  }
  // Of a value that is not named it is that of "*"; nothing where that is not declared.
  std::optional<std::size_t> PlaceOf(std::string_view cell) const {
    const auto found = places_.find(Trimmed(cell));
    return found == places_.end() ? other_ : std::optional(found->second);
  }

 private:
  std::map<std::string, std::size_t, std::less<>> places_;
  std::optional<std::size_t> other_;
};

}  // namespace sordino::internal

#endif  // SORDINO_MECHANISMS_INTERNAL_DECLARED_VALUES_H_
