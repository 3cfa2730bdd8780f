// How the gradient of one example is scaled so that its norm is bounded.
//
// A policy puts every parameter into a clipping group (one group for flat clipping, one for each
// layer for layerwise clipping), turns the norms of the groups into factors, and states the bound
// on the norm of a scaled gradient that follows:
//
//     || factor(norm) * g ||_2 <= bound(group)   for every g with || g ||_2 = norm.
//
// The Clipper computes norms and sums; it knows no formula of any policy, and a policy sees no
// gradient. An example whose norm is not finite gets the factor 0 from the Clipper, whatever the
// policy says.
#ifndef SORDINO_GRADIENTS_CLIPPING_POLICY_H_
#define SORDINO_GRADIENTS_CLIPPING_POLICY_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sordino/gradients/loss_function.h"

namespace sordino {

class GroupColumn;

// Norms are taken of (g - centre) / scale instead of g, coordinate by coordinate, and so is the
// sum (AdaCliP, arXiv 1908.07643). One tensor for each parameter, in its shape; scale > 0.
struct CoordinateTransform {
  std::vector<at::Tensor> centre;
  std::vector<at::Tensor> scale;
};

// How much larger the parts of a transformed sum are than the sum, for rounding.h.
//
// A sum of factor (g - centre) / scale that is computed as (sum factor g - centre sum factor) /
// scale cancels: the parts of one example have the norm factor || (|g| + |centre|) / scale || <=
// bound + 2 factor || centre / scale ||, with w = (g - centre) / scale and |g| <= scale |w| +
// |centre|. That is at most the number below times the bound, a function of released values only:
// it multiplies both the cancellation and the roundoff of the result. (A sum of transformed
// gradients that were written out has cancellation 1.) Waits for the device.
double TransformCancellation(const CoordinateTransform& transform, double bound,
                             double largest_factor);

class ClippingPolicy {
 public:
  virtual ~ClippingPolicy() = default;

  // The clipping group of each parameter, numbered from 0 without gaps.
  virtual std::vector<std::int64_t> Groups(const std::vector<NamedParameter>& parameters) const = 0;

  // Factors [groups, examples] of the norms [groups, examples] (float64, on the device of the
  // model; entries may be infinite or NaN, their factors are ignored). No synchronisation.
  virtual at::Tensor Factors(const at::Tensor& norms) const = 0;

  // Where Factors is FactorsToBound (clipping_groups.h) of a column: that column. Kernels that have
  // the norms then compute the factors too.
  virtual const GroupColumn* ToBound() const { return nullptr; }

  // Of a norm of 0, the largest one.
  virtual double LargestFactor() const;

  // The bound on the norm of a scaled gradient, for each group.
  virtual std::vector<double> Bounds() const = 0;

  virtual const CoordinateTransform* transform() const { return nullptr; }

  // What an adaptive policy wants to know of a batch, [groups], float64 on the device of the
  // norms, or an undefined tensor. The counts are private: the Clipper adds them up over the
  // physical batches and hands them on in BoundedSum; only noised ones come back to the policy.
  virtual at::Tensor Counts(const at::Tensor& norms) const {
    static_cast<void>(norms);
    return {};
  }

  // The bound on the L2 norm of what one example adds to Counts; 0 when there are none.
  virtual double CountBound() const { return 0; }

  // Everything that Factors depends on beside the norms, for a step that is recorded and replayed
  // (device/recorded_graph.h); empty where it changes from step to step.
  virtual std::vector<double> Numbers() const { return {}; }
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_CLIPPING_POLICY_H_
