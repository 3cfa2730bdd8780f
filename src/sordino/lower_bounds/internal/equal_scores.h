// How many of several equal scores stand above one of them, over all orders in which they can be
// put.
//
// Of `members` + `others` equal scores every order is equally likely. How many members stand above
// the other that is the place-th from the top among the others is beta-binomial with parameters
// place and others - place + 1: the chance of a uniform draw to be above the place-th largest of
// `others` uniform draws is distributed as Beta(place, others - place + 1).
#ifndef SORDINO_LOWER_BOUNDS_INTERNAL_EQUAL_SCORES_H_
#define SORDINO_LOWER_BOUNDS_INTERNAL_EQUAL_SCORES_H_

#include <cstdint>

namespace sordino::internal {

// The largest number that at least `share` of the orders reach. `place` is from 1 to `others`;
// `share` is in (0, 1).
std::int64_t AboveInMostOrders(std::int64_t members, std::int64_t others, std::int64_t place,
                               double share);

}  // namespace sordino::internal

#endif  // SORDINO_LOWER_BOUNDS_INTERNAL_EQUAL_SCORES_H_
