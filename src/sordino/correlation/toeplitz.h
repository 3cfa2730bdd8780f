// Lower triangular Toeplitz matrices as power series: a matrix is its first column, a product of
// matrices a product of series, and the inverse of one with few bands a recursion over them.
//
// Rounding. Where every term of a recursion is at least 0, each number has a relative error below
// (its index + 1) (bands + 1) units in the last place; sensitivity.h adds that to what it returns.
#ifndef SORDINO_CORRELATION_TOEPLITZ_H_
#define SORDINO_CORRELATION_TOEPLITZ_H_

#include <cstdint>
#include <span>
#include <vector>

namespace sordino {

// How many numbers there are up to the last one that is not 0; at least 1.
std::int64_t BandsOf(std::span<const double> column);

// The first `steps` numbers of series / column, in steps * bands operations. column[0] is 1; both
// are 0 beyond their ends.
std::vector<double> Divided(std::span<const double> series, std::span<const double> column,
                            std::int64_t steps);
// 1 / column.
std::vector<double> InverseColumn(std::span<const double> column, std::int64_t steps);

// The transposed division: x with sum_t y_t (series / column)_t = sum_t x_t series_t.
std::vector<double> DividedBack(std::span<const double> y, std::span<const double> column);

// Sums of the first 1, 2, ... numbers: the first column of A C^-1 from that of C^-1.
std::vector<double> PrefixSums(std::vector<double> column);
// The squared norms of the rows of a matrix, from its first column.
std::vector<double> RowNorms(std::span<const double> column);

// Coefficients of (1 - x)^power: 1, -power, ... Those of power 1/2 are the inverse of the square
// root of the matrix of ones.
std::vector<double> BinomialSeries(double power, std::int64_t steps);

}  // namespace sordino

#endif  // SORDINO_CORRELATION_TOEPLITZ_H_
