// How much noise a target (epsilon, delta) asks for, per unit of sensitivity.
//
//   Laplace   scale = 1 / epsilon, pure epsilon-DP for L1 sensitivity 1 (Dwork et al. 2006).
//   classic   sigma = sqrt(2 ln(1.25 / delta)) / epsilon for L2 sensitivity 1. The proof (Dwork
//             and Roth 2014, theorem A.1) needs epsilon <= 1, and beyond that the formula is
//             really too small, so it is refused.
//   analytic  the smallest sigma whose exact curve meets the target, for every epsilon and delta
//             (Balle and Wang 2018; numerics in accounting/gaussian.h). Never too small, and right
//             to 1e-10 relative.
#ifndef SORDINO_MECHANISMS_CALIBRATION_H_
#define SORDINO_MECHANISMS_CALIBRATION_H_

#include <cstdint>

#include "sordino/base/quantity.h"

namespace sordino {

enum class GaussianCalibration : std::uint8_t { kAnalytic, kClassic };

// epsilon in (0, inf).
NoiseMultiplier LaplaceNoise(Epsilon epsilon);
// epsilon in (0, 1], delta in (0, 1); anything else throws Error.
NoiseMultiplier ClassicGaussianNoise(Epsilon epsilon, Delta delta);
// epsilon in [0, inf), delta in (0, 1); anything else throws Error.
NoiseMultiplier AnalyticGaussianNoise(Epsilon epsilon, Delta delta);

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_CALIBRATION_H_
