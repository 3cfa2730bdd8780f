#include "sordino/base/exact_count.h"

#include <fmt/format.h>

#include <cmath>

#include "sordino/base/error.h"

namespace sordino {

std::uint64_t ExactCount(double number, std::string_view text, std::string_view where) {
  if (!(number >= 0 && number <= static_cast<double>(kMaxExactCount)) ||
      number != std::floor(number)) {
    throw Error(
        fmt::format("'{}' in {} is not a whole number; give one from 0 to 2^53.", text, where));
  }
  return static_cast<std::uint64_t>(number);
}

}  // namespace sordino
