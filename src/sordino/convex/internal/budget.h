// From a budget to the noise of Gaussian releases, and what methods share when they plan.
#ifndef SORDINO_CONVEX_INTERNAL_BUDGET_H_
#define SORDINO_CONVEX_INTERNAL_BUDGET_H_

#include <cstdint>

#include "sordino/base/quantity.h"
#include "sordino/convex/method.h"
#include "sordino/theory/empirical_risk.h"

namespace sordino::internal {

// The largest mu for which a release that is mu-GDP, drawn with noise that fails with probability
// `failure` (vector_noise.h), spends at most epsilon at delta. Releases of multipliers z_i have
// mu^2 = sum 1 / z_i^2. Throws Error where delta is too small to pay for the failures.
double GaussianBudget(Epsilon epsilon, Delta delta, double failure);

// 2 where neighbours replace a row, 1 where they add, remove or empty one: the distance of sums of
// vectors of norm 1.
double NeighbourFactor(Adjacency adjacency);
// The same where neighbours differ in a user with several rows (method.h).
double NeighbourFactor(const FitQuestion& question);

// Of a question.
std::int64_t Parameters(const FitQuestion& question);
LossBounds BoundsOf(const FitQuestion& question);
// The bound L on the norm of a row's gradient.
double GradientBound(const FitQuestion& question);
// The assumed norm of the best weights: weight_norm sqrt(K) / R, times B where targets are numbers.
double WeightNorm(const FitQuestion& question);
RiskShape ShapeOf(const FitQuestion& question);

// "method: why not".
PlannedFit Refused(const FitMethod& method, std::string refusal);
PlannedFit Planned(FitPlan plan);

}  // namespace sordino::internal

#endif  // SORDINO_CONVEX_INTERNAL_BUDGET_H_
