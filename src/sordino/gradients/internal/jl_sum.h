// The parts of a sum by estimated norms (jl_clipping.h).
#ifndef SORDINO_GRADIENTS_INTERNAL_JL_SUM_H_
#define SORDINO_GRADIENTS_INTERNAL_JL_SUM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/jl_clipping.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

// What a batch adds up to: float64 gradients and counts, without sensitivities.
SumParts JlTotals(const LossFunction& loss, const Batch& batch,
                  const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                  const JlOptions& options, const JlDirections& directions);

// Throws what is wrong with the model by the made-up examples of the options.
void CheckJl(const LossFunction& loss, const std::vector<NamedParameter>& parameters,
             const ClippingPolicy& policy, const JlOptions& options,
             const JlDirections& directions);

// How many times the bound of its group a scaled gradient may be, but for the failure probability
// of the options, for all of so many estimates together: phi / (1 - rho phi) with the rounding of
// the backward pass. Throws Error where phi is too close to the rounding of an estimate.
double JlExcess(const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                const JlOptions& options, double estimates);

// What JlNorms returns (jl_clipping.h).
at::Tensor JlEstimates(const LossFunction& loss, const Batch& batch,
                       const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                       std::int64_t count, const JlDirections& directions);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_JL_SUM_H_
