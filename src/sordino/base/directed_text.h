// Certified numbers in words. What is shown of an upper bound is never below it, and what is shown
// of a lower bound never above it, so that a number copied from the screen still holds.
#ifndef SORDINO_BASE_DIRECTED_TEXT_H_
#define SORDINO_BASE_DIRECTED_TEXT_H_

#include <string>

namespace sordino {

// Seven significant digits, rounded away from the wrong side; "infinity" where there is no number.
std::string UpperText(double value);
std::string LowerText(double value);

}  // namespace sordino

#endif  // SORDINO_BASE_DIRECTED_TEXT_H_
