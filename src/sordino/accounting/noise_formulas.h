// The three closed-form noise multipliers for T steps of sampled SGD at rate q, to reach
// (epsilon, delta), as lecture notes give them:
//
//   basic      qT sqrt(2 ln(1.25 qT / delta)) / epsilon       one Gaussian mechanism a step at
//              epsilon/T and delta/(qT), amplified by q (Dwork and Roth 2014)
//   advanced   q sqrt(T ln(1/delta) ln(T/delta)) / epsilon    strong composition
//   moments    c q sqrt(T ln(1/delta)) / epsilon              Abadi et al. 2016, theorem 1
//
// They show how noise grows with T: advanced / basic falls like 1 / sqrt(T), up to a logarithm.
// The last two are asymptotic and leave their constants open (taken as 1 unless given), so none
// of them is a guarantee; calibration by an accountant is, and stands beside them in the table.
#ifndef SORDINO_ACCOUNTING_NOISE_FORMULAS_H_
#define SORDINO_ACCOUNTING_NOISE_FORMULAS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sordino/base/quantity.h"

namespace sordino {

// steps >= 1, rate > 0, epsilon in (0, inf), delta in (0, 1).
double BasicNoise(SamplingRate rate, std::uint64_t steps, Epsilon epsilon, Delta delta);
double AdvancedNoise(SamplingRate rate, std::uint64_t steps, Epsilon epsilon, Delta delta);
double MomentsNoise(SamplingRate rate, std::uint64_t steps, Epsilon epsilon, Delta delta,
                    double constant = 1);

struct NoiseFormulaRow {
  std::uint64_t steps;
  double basic;
  double advanced;
  double moments;
  double exact;                   // NaN without a calibration function
  double advanced_over_basic;     // falls like 1 / sqrt(steps)
  double ratio_times_sqrt_steps;  // advanced_over_basic * sqrt(steps): nearly level
  double moments_over_basic;
};

// One row for each number of steps; `exact` gives the calibrated noise for a number of steps.
std::vector<NoiseFormulaRow> NoiseFormulaTable(
    SamplingRate rate, Epsilon epsilon, Delta delta, std::span<const std::uint64_t> steps,
    const std::function<double(std::uint64_t)>& exact = nullptr);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_NOISE_FORMULAS_H_
