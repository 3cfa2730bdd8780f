// Two sound bounds that cannot both be true.
//
// Every sound method rounds outward, so an upper bound below a lower bound of the same quantity
// means that one of the two is wrong, and nobody knows which. It is an error of this library, never
// of its user. The answer would be a guarantee that may not hold, so there is none: the error names
// both methods and the event.
#ifndef SORDINO_ACCOUNTING_INTERNAL_CONTRADICTION_H_
#define SORDINO_ACCOUNTING_INTERNAL_CONTRADICTION_H_

#include <stdexcept>
#include <string>
#include <string_view>

#include "sordino/base/quantity.h"

namespace sordino {

class ContradictionError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

struct BoundNames {
  std::string_view lower;
  std::string_view upper;
};

// The lower end of an interval of epsilon or delta, at most its upper end. Throws
// ContradictionError where it lies above by more than a relative 1e-12, the outward rounding.
double ConsistentLower(Interval interval, BoundNames names, const std::string& event);
// The same for log delta.
double ConsistentLogLower(Interval interval, BoundNames names, const std::string& event);

// What two engines bound is one number. `value`, found by `engine`, becomes the intersection with
// what `other` found, and `engine` the one that narrowed it last. `consistent` is one of the above.
void Intersect(Interval& value, std::string& engine, Interval found, const char* other,
               double (*consistent)(Interval, BoundNames, const std::string&));

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_CONTRADICTION_H_
