#include "sordino/gradients/jl_clipping.h"

#include <c10/util/StringUtil.h>

#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/quantity.h"
#include "sordino/gradients/internal/jl_sum.h"
#include "sordino/gradients/internal/rounding/rounding.h"
#include "sordino/gradients/internal/rounding/sum_sensitivity.h"

namespace sordino {

double JlSensitivityFactor(std::int64_t directions, double failure_probability) {
  if (directions < 1) {
    throw Error(c10::str("Norms are estimated from at least 1 direction, not ", directions, "."));
  }
  if (!(failure_probability > 0 && failure_probability <= 0.5)) {
    throw Error(c10::str("The failure probability of estimated norms lies above 0 and at most at ",
                         "0.5, not at ", failure_probability, "; try 1e-9."));
  }
  const boost::math::chi_squared distribution(static_cast<double>(directions));
  double quantile = boost::math::quantile(distribution, failure_probability);
  // The quantile is computed to some ulps; a smaller one is on the safe side.
  quantile *= 1 - 1e-12;
  while (quantile > 0 && boost::math::cdf(distribution, quantile) > failure_probability) {
    quantile *= 1 - 1e-9;
  }
  const double factor = std::sqrt(static_cast<double>(directions) / quantile) * (1 + 1e-15);
  if (!std::isfinite(factor)) {
    throw Error(c10::str("With ", directions, " directions the failure probability ",
                         failure_probability, " cannot be met; use more directions."));
  }
  return factor;
}

JlResult JlClippedSum(const LossFunction& loss, const Batch& batch,
                      const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                      const JlOptions& options, const JlDirections& directions) {
  const std::vector<double> bounds = policy.Bounds();
  for (const double bound : bounds) {
    CheckRange("the clipping bound", bound, kSmallestBound, false, kInfinity, true);
  }
  const double records = options.adjacency == Adjacency::kReplaceOne ? 2 : 1;
  const double excess =
      JlExcess(parameters, policy, options, records * static_cast<double>(bounds.size()));
  // Of a batch that is larger than was declared no two examples share a pass, and the sum is
  // rounded after the noise: what the others add does not depend on who is there (long_steps.h).
  const bool is_surplus = Examples(batch) > options.largest_batch;
  JlOptions own = options;
  if (is_surplus) own.physical_batch = 1;
  SumParts result = JlTotals(loss, batch, parameters, policy, own, directions);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const at::ScalarType type = parameters[p].value.scalar_type();
    result.noised_types.push_back(type);
    if (!is_surplus) result.gradients[p] = result.gradients[p].to(type);
  }
  result.sensitivity = SumSensitivity(bounds, options.adjacency, 1, excess - 1 + options.rounding);
  if (policy.CountBound() > 0) {
    result.count_sensitivity =
        SumSensitivity(std::vector<double>{policy.CountBound()}, options.adjacency, 1, 0);
  }
  result.adjacency = options.adjacency;
  return {BoundedSum(std::move(result)), options.failure_probability.value()};
}

at::Tensor JlNorms(const LossFunction& loss, const Batch& batch,
                   const std::vector<NamedParameter>& parameters, const ClippingPolicy& policy,
                   std::int64_t count, const JlDirections& directions) {
  return JlEstimates(loss, batch, parameters, policy, count, directions);
}

}  // namespace sordino
