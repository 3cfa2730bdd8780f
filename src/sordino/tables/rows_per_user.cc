#include "sordino/tables/rows_per_user.h"

#include "sordino/base/error.h"

namespace sordino {

RowsPerUser::RowsPerUser(std::uint32_t cap) : cap_(cap) {
  if (cap == 0) throw Error("the cap of rows per user is at least 1, not 0.");
}

bool RowsPerUser::Keep(std::string_view user) {
  auto found = seen_.find(user);
  if (found == seen_.end()) found = seen_.emplace(std::string(user), 0).first;
  if (found->second == cap_) return false;
  ++found->second;
  return true;
}

}  // namespace sordino
