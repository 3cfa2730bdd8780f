// A record clipped in L2 norm, on a grid: the rows of private means of vectors.
#ifndef SORDINO_MECHANISMS_INTERNAL_CLIPPED_ROW_H_
#define SORDINO_MECHANISMS_INTERNAL_CLIPPED_ROW_H_

#include <cstddef>
#include <span>

#include "sordino/mechanisms/internal/additive_statistic.h"

namespace sordino::internal {

// The largest norm that a row of `dimension` numbers, clipped to tau, has in steps of the grid.
// Coordinates are rounded towards zero, which shortens a vector; the norm and the quotient carry
// dimension + 4 roundings together.
double LongestRow(double tau, double step, std::size_t dimension);

// Adds the clipped record to `sums`, in steps. A record that is not finite adds nothing.
void AddClippedRow(std::span<const double> record, double tau, double step, Int128* sums);

}  // namespace sordino::internal

#endif  // SORDINO_MECHANISMS_INTERNAL_CLIPPED_ROW_H_
