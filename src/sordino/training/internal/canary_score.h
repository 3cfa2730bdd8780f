// What one step tells about a canary of norm V that is drawn with probability q, in noise of
// standard deviation s, when y is seen of it: the logarithm of the likelihood ratio of a run with
// it and of one without it, log(1 - q + q e^((V y - V^2 / 2) / s^2)).
#ifndef SORDINO_TRAINING_INTERNAL_CANARY_SCORE_H_
#define SORDINO_TRAINING_INTERNAL_CANARY_SCORE_H_

#include <cmath>

#include "sordino/base/quantity.h"

namespace sordino::internal {

inline double StepScore(double seen, double norm, double noise, SamplingRate rate) {
  const double q = rate.value();
  const double v = norm / noise;
  const double x = v * (seen / noise) - v * v / 2;
  if (q >= 1) return x;
  return x > 0 ? x + std::log(q + (1 - q) * std::exp(-x)) : std::log1p(q * std::expm1(x));
}

}  // namespace sordino::internal

#endif  // SORDINO_TRAINING_INTERNAL_CANARY_SCORE_H_
