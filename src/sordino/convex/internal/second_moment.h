// The matrix X^T X of a table with Gaussian noise.
//
// One row moves it by x x^T, of Frobenius norm |x|^2 <= R^2; replacing x by y by |x x^T - y y^T| <=
// sqrt(2) R^2, since the inner product of the two is (x . y)^2 >= 0. A user of k rows moves it by
// at most k R^2. The upper triangle alone is released: its norm is no larger. Two computed matrices
// are further apart by at most twice the rounding, gamma_(b + n/b) n R^2 (gradient_sum.h).
#ifndef SORDINO_CONVEX_INTERNAL_SECOND_MOMENT_H_
#define SORDINO_CONVEX_INTERNAL_SECOND_MOMENT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sordino/convex/method.h"
#include "sordino/random/generator.h"

namespace sordino::internal {

// Features beyond which methods that release the matrix refuse.
inline constexpr std::int64_t kMaxMomentFeatures = 4096;

at::Tensor SecondMoment(const Problem& problem);
double SecondMomentSensitivity(const FitQuestion& question);
// Draws for d features.
double SecondMomentDraws(std::int64_t features);

struct NoisedMoment {
  at::Tensor matrix;     // symmetric
  double deviation = 0;  // of each entry
};
NoisedMoment AddSymmetricNoise(const at::Tensor& matrix, double sensitivity, double multiplier,
                               Generator& generator);

}  // namespace sordino::internal

#endif  // SORDINO_CONVEX_INTERNAL_SECOND_MOMENT_H_
