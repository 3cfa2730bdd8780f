// The L2 sensitivity of a sum of clipped gradients.
//
// Let a batch give clipped vectors v_1, v_2, ... with || v_i restricted to group g || <= bound_g.
// Groups are disjoint coordinates, so || v_i || <= V = sqrt(sum_g bound_g^2).
//
// One example for each vector (micro_batch 1):
//   add-remove, zero-out   one v_i appears or disappears:        || v_i ||       <= V
//   replace-one            one v_i becomes another v_i':         || v_i - v_i' || <= 2V
//
// A vector for each micro_batch > 1 consecutive examples:
//   zero-out, replace-one  the record's micro-batch has another average, clipped to another
//                          vector; all others keep their examples: || v_i - v_i' || <= 2V
//   add-remove             every example after the record moves up by one place, so every later
//                          micro-batch is made of other examples: there is no bound that does not
//                          grow with the batch, and this is an Error. Zero-out is the way to state
//                          the guarantee: the record leaves an empty place in its micro-batch.
//
// The computed sum differs from the exact one; `slack` (rounding.h) bounds by how much, and
// multiplies all of the above by 1 + slack. The result is rounded up.
#ifndef SORDINO_GRADIENTS_INTERNAL_ROUNDING_SUM_SENSITIVITY_H_
#define SORDINO_GRADIENTS_INTERNAL_ROUNDING_SUM_SENSITIVITY_H_

#include <cstdint>
#include <span>

#include "sordino/base/quantity.h"

namespace sordino {

// bounds: of a ClippingPolicy, each in [0, inf). slack >= 0. Also for counts: bounds
// {policy.CountBound()}, slack 0. Throws Error for micro_batch < 1, and as above.
L2Sensitivity SumSensitivity(std::span<const double> bounds, Adjacency adjacency,
                             std::int64_t micro_batch, double slack);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ROUNDING_SUM_SENSITIVITY_H_
