// A value that no record should hold.
#ifndef SORDINO_BASE_TESTING_NOT_A_NUMBER_H_
#define SORDINO_BASE_TESTING_NOT_A_NUMBER_H_

#include <limits>

namespace sordino {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace sordino

#endif  // SORDINO_BASE_TESTING_NOT_A_NUMBER_H_
