// Objective perturbation: the minimum of a convex objective with a random linear term.
//
// For records x_1 ... x_n with convex, twice differentiable losses l(theta; x) the mechanism
// releases
//
//     theta* = argmin sum_i l(theta; x_i) + (lambda / 2) |theta|^2 + b . theta
//
// for b ~ N(0, sigma^2 I).
//
// Conditions, for every record x and every theta:
//   - |grad l(theta; x)| <= L;
//   - grad l(theta; x) lies in a subspace of m dimensions that x alone decides (not theta);
//   - the Hessian of l(.; x) has rank at most m and a trace of at most beta.
// A generalised linear model f(theta . x) has m = 1, L = max |f'| |x| and beta = max f'' |x|^2:
// logistic regression with |x| <= 1 has L = 1 and beta = 1/4. A softmax over K classes has
// m = K - 1 (the gradient is x times a vector whose entries sum to 0), L = sqrt(2) |x| and, since
// the trace of diag(p) - p p^T is 1 - |p|^2, beta = (1 - 1/K) |x|^2.
//
// Theorem. Let J = m log(1 + beta / (m lambda)). Under add-remove and zero-out theta* is
// (epsilon, delta)-DP for every epsilon >= 0 with
//
//     delta(epsilon) = E (1 - exp(epsilon - J - (2 L sigma r + L^2) / (2 sigma^2)))_+
//
// where r has the chi distribution with m degrees of freedom. Under replace-one it holds with 2 L
// in the place of L and 2 m degrees of freedom in the place of m for r (J is the same).
//
// Proof. theta is the minimum for exactly one b, which is b(theta) = - sum_i grad l(theta; x_i) -
// lambda theta, and the density of theta* at theta is that of b there times det H(theta), with H
// the Hessian of the sum plus lambda I. Let D' be D and one more record x; write g = grad l(theta;
// x) and A for its Hessian. With b' = b - g the logarithm of the ratio of the densities of D' and D
// at theta is
//
//     (|b|^2 - |b'|^2) / (2 sigma^2) + log det(H + A) / det H
//         = (2 b' . g + |g|^2) / (2 sigma^2) + log det(I + H^{-1/2} A H^{-1/2}).
//
// The matrix in the last term has at most m eigenvalues that are not 0; they are not negative and
// their sum is at most tr(A) / lambda <= beta / lambda, because H is at least lambda I. So its
// logarithm lies between 0 and m log(1 + beta / (m lambda)) = J, by the concavity of the logarithm.
// g lies in m dimensions that are fixed before b' is drawn, so 2 b' . g <= 2 L sigma r for the norm
// sigma r of b' in them. Under D' therefore the loss is at most (2 L sigma r + L^2) / (2 sigma^2) +
// J, and in the other direction, where b takes the place of b' and the determinants change places,
// at most the same without J. delta(epsilon) = E (1 - e^{epsilon - loss})_+ grows with the loss.
// Replacing x by y: with H_0 the Hessian without both, det(H_0 + A_x) / det(H_0 + A_y) <= det(H_0 +
// A_x) / det H_0 <= e^J; the gradients differ by at most 2 L, in 2 m dimensions.
//
// For m = 1 this is the profile of Redberg, Koskela and Wang (arXiv 2401.00583) with J = log(1 +
// beta / lambda) in the place of their -log(1 - beta / lambda): smaller, and for every lambda > 0.
//
// The proof needs the exact minimum. Whoever stops near it has to pay for the distance.
#ifndef SORDINO_MECHANISMS_OBJECTIVE_PERTURBATION_H_
#define SORDINO_MECHANISMS_OBJECTIVE_PERTURBATION_H_

#include <cstdint>
#include <optional>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino {

struct PerturbedObjective {
  double gradient_bound = 1;    // L
  double trace_bound = 0.25;    // beta
  double regularisation = 0;    // lambda, beside the sum of the losses
  std::int64_t directions = 1;  // m
  Adjacency adjacency = Adjacency::kAddRemove;

  // For rows of norm at most `row_norm`, the column of ones included.
  static PerturbedObjective Logistic(double row_norm, double regularisation, Adjacency adjacency);
  static PerturbedObjective Softmax(std::int64_t classes, double row_norm, double regularisation,
                                    Adjacency adjacency);
};

// J.
double LogDeterminantBound(const PerturbedObjective& objective);

// An upper bound on delta(epsilon) for noise of standard deviation sigma, within 1e-3 of it
// (relative); for one direction the closed form. Throws Error for numbers that are not positive and
// finite.
double ObjectiveDelta(const PerturbedObjective& objective, double sigma, Epsilon epsilon);

// The least sigma for which delta(epsilon) is at most delta, to 1e-6 and never below it; nullopt
// where none is (epsilon <= J, however large the noise; delta = 0).
std::optional<double> ObjectiveNoise(const PerturbedObjective& objective, Epsilon epsilon,
                                     Delta delta);

// Pure epsilon: b has the density exp(-rate |b|) up to a constant, its direction is uniform and its
// norm has the gamma distribution with as many degrees of freedom as theta has entries. As above
// the loss is at most rate |g| + J, so
//
//     rate = (epsilon - J) / L          under add-remove and zero-out,
//     rate = (epsilon - J) / (2 L)      under replace-one.
//
// Where epsilon <= J there is none: regularise more. (Chaudhuri, Monteleoni and Sarwate, JMLR 2011,
// have (epsilon - 2 J) / (2 L) under replace-one, with half of epsilon as the fallback.)
std::optional<double> PureObjectiveRate(const PerturbedObjective& objective, Epsilon epsilon);

// The published constants of Chaudhuri et al. for n records and regularisation Lambda of the mean
// loss, whose second derivative is at most c: the epsilon' of the noise exp(-epsilon' |b| / 2) and
// the regularisation Delta that is added.
struct PublishedObjectiveSplit {
  double epsilon = 0;
  double added_regularisation = 0;
};
PublishedObjectiveSplit PublishedPureObjective(Epsilon epsilon, double records,
                                               double regularisation, double curvature);

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_OBJECTIVE_PERTURBATION_H_
