// User-level privacy: at most `cap` rows of each user enter a statistic.
//
// The first `cap` rows of a user in the order of the file are kept and the rest dropped. The choice
// looks at no value and at no other user, so adding or removing a user, with all of that user's
// rows, changes at most `cap` rows of what is kept: sensitivities are multiplied by the cap.
//
// Users are distinguished by the exact text of their name, without blanks at its ends, which the
// readers of tables leave out: a hash that merged two of them would let one user push out another's
// rows. Memory grows with the number of distinct users, about 100 bytes each.
#ifndef SORDINO_TABLES_ROWS_PER_USER_H_
#define SORDINO_TABLES_ROWS_PER_USER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sordino {

class RowsPerUser {
 public:
  // cap at least 1; else Error.
  explicit RowsPerUser(std::uint32_t cap);

  // Whether this row is among the first `cap` of its user. Call it once for each row.
  bool Keep(std::string_view user);

  std::uint32_t cap() const { return cap_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::uint32_t cap_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> seen_;
};

}  // namespace sordino

#endif  // SORDINO_TABLES_ROWS_PER_USER_H_
