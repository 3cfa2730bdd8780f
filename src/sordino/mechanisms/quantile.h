// Private quantiles by the exponential mechanism, in constant memory.
//
// The bounds are cut into M = 2^16 cells of equal width, and a row adds one to its cell: 512 KiB a
// group whatever the size of the data, at the price of an answer rounded to w / 2^16. With R_j the
// number of rows left of cell j and n that of all rows, cell j has the utility
//
//   u_j = -max(0, R_j - q n, q n - R_{j+1}),
//
// minus the number of rows by which it misses the rank q n, and is chosen with probability
// proportional to exp(epsilon u_j / (2 D)) (McSherry and Talwar 2007; Smith 2011 for quantiles),
// which is epsilon-DP when D bounds the change of every u_j. Adding a row moves R_j - q n by at
// most D = max(q, 1 - q); replacing one of a public number of rows by 1; k rows of a user count k
// times, and replaced users twice as much. Some cell contains the rank q n, so the largest utility
// is always 0 and nothing is normalised by the data.
//
// Sampling. Utilities are exact integers (q is rounded to a multiple of 2^-30). The exponent is
// capped at 40, a contraction that costs no privacy and adds a chance of at most M e^-40 = 3e-13
// of a useless answer. Weights are integers of 106 bits at most, each within a factor
// 1 +- 2^-45 of the true one, and a cell is drawn from them exactly; 2^-42 of epsilon is set aside
// for that factor. All cells are visited whatever is drawn.
//
// The interval costs budget of its own: half of epsilon goes to the value and a quarter to each
// end, which is a quantile of a rank shifted by t = (8 D' / epsilon) ln(2 M / (1 - confidence)),
// with D' = 1 row a unit's row (the shifted rank is held within [0, n]).
#ifndef SORDINO_MECHANISMS_QUANTILE_H_
#define SORDINO_MECHANISMS_QUANTILE_H_

#include <memory>

#include "sordino/mechanisms/sensitivity.h"
#include "sordino/mechanisms/streamed_statistic.h"

namespace sordino {

// q in (0, 1), epsilon in [1e-6, inf); else Error. The noise of the budget is ignored: the
// mechanism is pure. Release::noise_scale is 2 D / (epsilon / 2), in rows.
std::unique_ptr<StreamedStatistic> MakeQuantile(double q, const Bounds& bounds,
                                                const PrivacyUnit& unit, const NoiseBudget& budget);

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_QUANTILE_H_
