// sordino::Error: a user's mistake, told in one sentence.
//
// The sentence says what was given, what is allowed and what to do. The command line prints it
// and exits with 2. Expected failures (no noise meets this budget) are returned values instead,
// and a broken privacy invariant stops the program (check.h).
#ifndef SORDINO_BASE_ERROR_H_
#define SORDINO_BASE_ERROR_H_

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sordino {

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& sentence) : std::runtime_error(sentence) {}
};

// The known name that is nearest to `given` in edit distance, or an empty string when none is
// near enough to be what was meant.
std::string NearestName(std::string_view given, std::span<const std::string_view> known);

}  // namespace sordino

#endif  // SORDINO_BASE_ERROR_H_
