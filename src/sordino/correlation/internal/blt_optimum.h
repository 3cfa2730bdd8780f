// The best buffered linear Toeplitz strategy (BLT; Dvijotham, McMahan, Pillutla, Steinke, Thakurta,
// arXiv 2404.16706; McMahan, Xu, Zhang, arXiv 2408.08868):
//
//   C(x) = 1 + sum_i omega_i x / (1 - theta_i x),   omega_i > 0, 0 < theta_i < 1,
//
// so that c_0 = 1 and c_t = sum_i omega_i theta_i^{t-1}, positive and falling from c_1 on.
//
// Its inverse is of the same form: 1 / C(x) = 1 - sum_i weight_i x / (1 - decay_i x). In z = 1/x,
// C = 1 + sum_i omega_i / (z - theta_i) falls from +inf to -inf between two neighbouring theta, so
// one decay lies between each two and one below all of them, at or above 0 where
// sum_i omega_i / theta_i <= 1, to which the optimum is held; weight_i = -1 / C'(decay_i) > 0.
#ifndef SORDINO_CORRELATION_INTERNAL_BLT_OPTIMUM_H_
#define SORDINO_CORRELATION_INTERNAL_BLT_OPTIMUM_H_

#include <cstdint>
#include <vector>

#include "sordino/correlation/participation.h"
#include "sordino/correlation/strategy.h"

namespace sordino {

struct BltTerm {
  double theta;
  double omega;
};

// At most so many terms, by their theta: two that the optimiser drew together are one, and those
// that it made nothing of are none.
std::vector<BltTerm> BltOptimum(std::int64_t terms, const Participation& participation,
                                CorrelationObjective objective);

// The decays and weights (> 0) of the inverse.
std::vector<NoiseBuffer> BltInverse(const std::vector<BltTerm>& terms);

}  // namespace sordino

#endif  // SORDINO_CORRELATION_INTERNAL_BLT_OPTIMUM_H_
