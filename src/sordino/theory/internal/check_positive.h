// A range that most numbers of the theory have.
#ifndef SORDINO_THEORY_INTERNAL_CHECK_POSITIVE_H_
#define SORDINO_THEORY_INTERNAL_CHECK_POSITIVE_H_

#include <string_view>

#include "sordino/base/quantity.h"

namespace sordino::internal {

// Throws Error unless the value is above 0 and finite.
inline void CheckPositive(std::string_view what, double value) {
  CheckRange(what, value, 0, true, kInfinity, true);
}

}  // namespace sordino::internal

#endif  // SORDINO_THEORY_INTERNAL_CHECK_POSITIVE_H_
