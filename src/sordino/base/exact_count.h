// Whole numbers in doubles: every one up to 2^53 is exact, so that no greater count is accepted
// where counts are computed with as doubles.
#ifndef SORDINO_BASE_EXACT_COUNT_H_
#define SORDINO_BASE_EXACT_COUNT_H_

#include <cstdint>
#include <string_view>

namespace sordino {

inline constexpr std::uint64_t kMaxExactCount = std::uint64_t{1} << 53;

// The number as a count. Throws Error where it is negative, above 2^53 or not whole, with the text
// that was given and where, such as a flag.
std::uint64_t ExactCount(double number, std::string_view text, std::string_view where);

}  // namespace sordino

#endif  // SORDINO_BASE_EXACT_COUNT_H_
