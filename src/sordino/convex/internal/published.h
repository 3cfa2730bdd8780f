// Constants of the literature, for comparison: the methods of this module use exact ones, which are
// smaller.
#ifndef SORDINO_CONVEX_INTERNAL_PUBLISHED_H_
#define SORDINO_CONVEX_INTERNAL_PUBLISHED_H_

#include "sordino/base/quantity.h"

namespace sordino {

// Objective perturbation with Gaussian noise (Kifer, Smith and Thakurta, COLT 2012, theorem 2): the
// deviation of b for a bound L on the gradient, and the regularisation it needs for a bound beta on
// the second derivative, add-remove.
double KiferNoise(double gradient_bound, Epsilon epsilon, Delta delta);
double KiferRegularisation(double curvature, Epsilon epsilon);

// Approximate minima perturbation (Iyengar et al., IEEE S&P 2019) with the constants of its
// authors: epsilon_out = 0.01 epsilon, delta_out = 0.01 delta, epsilon_p = 0.9 of the rest,
// gradient norm 1 / n^2 of the mean loss, replace-one, curvature at most L^2.
struct PublishedMinima {
  double regularisation = 0;   // Lambda, beside the sum
  double objective_noise = 0;  // of b, beside the mean
  double output_noise = 0;
};
PublishedMinima IyengarMinima(double records, double gradient_bound, Epsilon epsilon, Delta delta);

// AdaSSP (Wang, UAI 2018) for bounds 1: the noise on each of the three statistics, and the
// regularisation before the least eigenvalue is subtracted.
struct PublishedAdassp {
  double noise = 0;
  double regularisation = 0;
};
PublishedAdassp WangAdassp(double features, Epsilon epsilon, Delta delta, double failure);

}  // namespace sordino

#endif  // SORDINO_CONVEX_INTERNAL_PUBLISHED_H_
