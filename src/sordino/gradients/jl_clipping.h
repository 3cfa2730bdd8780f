// Clipping by estimated norms: DP-SGD-JL (Bu, Gopi, Kulkarni, Lee, Shen, Tantipongpipat, "Fast and
// Memory Efficient Differentially Private-SGD via JL Projections", arXiv 2102.03013).
//
// For a Gaussian direction v over the parameters, <g, v> ~ N(0, ||g||^2). One forward pass in
// forward mode gives <g_i, v> for every example i of a batch; r independent directions give
//
//     E_i = sqrt( (1/r) sum_k <g_i, v_k>^2 ),     E_i^2 / ||g_i||^2  ~  chi^2_r / r,
//
// an unbiased estimate of the squared norm with relative standard deviation sqrt(2/r). Factors are
// taken from the estimates, and one ordinary backward pass of sum_i factor_i loss_i gives the sum:
// no per-example gradient, no rule for any layer, any model whose operations libtorch can
// differentiate forward.
//
// Sensitivity. A policy promises factor(n) n <= C. With the estimate in place of the norm,
//
//     || factor(E_i) g_i ||  =  factor(E_i) E_i ||g_i|| / E_i  <=  C ||g_i|| / E_i  <=  C phi,
//     phi(r, beta) = sqrt( r / q ),   q the beta-quantile of chi^2_r,
//
// but with probability beta over the directions. Factors of other examples depend on their own
// gradients and on the directions only, so under add/remove (and zero-out) the sums of neighbours
// with the same directions differ by that one term. Hence, for the set V of directions where the
// bound holds for the differing record, P(V) >= 1 - beta, and any event S on (directions, output),
//     P(M(D) in S) <= beta + E[1_V (e^eps P(M(D') in S | v) + delta)] <= e^eps P(M(D') in S)
//                     + delta + beta:
// the failure probability is added to delta, once for each step (the directions of a step are
// drawn after the parameters that its gradients are taken at, so this holds under composition),
// whatever else of the directions becomes known afterwards. With Poisson sampling the differing
// record is in the batch with the sampling rate q only, and q beta a step is enough. With several
// clipping groups every group of the record has its own estimate, and under replace-one both
// records do: beta is shared out evenly among them (union bound), so what a caller asks for is
// what a step costs. One set of directions serves all parts that a batch is
// cut into: fresh ones for each part would depend on the cut, which one more record moves. The
// directions must be fresh at each step and must not be known to whoever chooses the data (a
// gradient orthogonal to all of them is not clipped): they come from a secret stream, for each step
// anew.
//
// An example whose estimate or gradient is not finite contributes nothing. In the graph it would
// spoil the sum (0 * inf), so another example is put in its place, with the factor 0. Examples run
// isolated, and whether one is finite is a function of that example alone as long as the model
// draws no random numbers; a model that does (dropout) is refused.
//
// Rounding. Forward and reverse mode round differently, and no bound holds for every model. An
// error of the computed <g_i, v_k> of at most rho ||g_i|| makes E_i smaller by at most
// rho ||g_i|| (triangle inequality), so that ||g_i|| / E_i <= phi / (1 - rho phi); the sensitivity
// is computed with rho = 1e-4 for float32 and 1e-10 for float64, and 2^-40 sqrt(d) more for d
// parameters because directions may lie on a grid of 2^-40. Every batch is checked: for
// the last direction, sum_i factor_i <g_i, v> by forward mode and <sum_i factor_i g_i, v> by
// reverse mode must agree to that. The same rho is allowed for the backward pass. With a
// coordinate transform the error is relative to ||g_i / scale||, which may exceed the bound K-fold
// (TransformCancellation): both allowances then grow to rho K. An ordinary backward pass adds up
// the rows of all examples in the precision of the model, and these rows are not seen here. How
// much the sum of the others may move by rounding when one example is added is therefore assumed,
// not proven as it is for exact norms (rounding.h): at most `rounding` times the bound, which is
// part of the sensitivity. Half precision is refused.
//
// Cost of a step: r forward passes in forward mode (each about 2 to 3 plain ones) and one ordinary
// forward and backward pass; with G clipping groups r G and one with G backward passes, because a
// group's norm needs directions that are zero elsewhere. Besides the ordinary memory, two copies
// of the parameters.
#ifndef SORDINO_GRADIENTS_JL_CLIPPING_H_
#define SORDINO_GRADIENTS_JL_CLIPPING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

// Where the directions of a step come from. A direction is asked for again for each part of a
// batch.
class JlDirections {
 public:
  virtual ~JlDirections() = default;
  // [coordinates], float64, on the CPU: independent and N(0, 1), or such rounded to a grid of
  // 2^-40; independent of those of other numbers, and the same whenever the same number is asked
  // for. From 0 on.
  virtual at::Tensor Draw(std::int64_t number, std::int64_t coordinates) const = 0;
};

struct JlOptions {
  // r >= 1. More directions: slower, and a sensitivity nearer to that of exact norms.
  std::int64_t directions;
  // beta in (0, 1/2]: the probability, in one step, that the sensitivity does not hold.
  Delta failure_probability;
  Adjacency adjacency = Adjacency::kAddRemove;
  // Examples in one pass; 0 takes the batch as it is.
  std::int64_t physical_batch = 0;
  // The largest batch that is expected, public; a larger one is summed example by example.
  std::int64_t largest_batch = 4096;
  // Share of the bound that the rounding of the joint sum may add to the sensitivity (assumed).
  double rounding = 0.01;
  // Compare the losses with those of an ordinary forward pass (operation_comparison.h). May be left
  // out for a model that was checked before.
  bool compare = true;
  // As those of GradientOptions: the comparison is of these, and a record that fails adds nothing.
  Batch made_up = {};
};

struct JlResult {
  BoundedSum sum;
  // To be added to the delta of the step when it is accounted for.
  double failure_probability = 0;
};

// phi(r, beta) > 1, rounded upwards. Throws Error outside r >= 1, 0 < beta <= 1/2.
double JlSensitivityFactor(std::int64_t directions, double failure_probability);

// The clipped sum over the batch by estimated norms; zeros with the same sensitivity when it is
// empty. Throws Error for a model that draws random numbers. An example whose estimate or gradient
// is not finite contributes nothing.
JlResult JlClippedSum(const LossFunction& loss, const Batch& batch,
                      const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                      const JlOptions& options, const JlDirections& directions);

// The estimates E_i by clipping group, [groups, examples], float64: for tests and for audits of
// public data. They are private values.
at::Tensor JlNorms(const LossFunction& loss, const Batch& batch,
                   const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                   std::int64_t count, const JlDirections& directions);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_JL_CLIPPING_H_
