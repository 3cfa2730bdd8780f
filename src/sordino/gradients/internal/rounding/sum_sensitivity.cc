#include "sordino/gradients/internal/rounding/sum_sensitivity.h"

#include <cmath>
#include <string>

#include "sordino/base/check.h"
#include "sordino/base/error.h"

namespace sordino {

L2Sensitivity SumSensitivity(std::span<const double> bounds, Adjacency adjacency,
                             std::int64_t micro_batch, double slack) {
  if (micro_batch < 1) {
    throw Error("the micro-batch size is " + std::to_string(micro_batch) +
                "; it must be at least 1, which clips every example by itself.");
  }
  if (micro_batch > 1 && adjacency == Adjacency::kAddRemove) {
    throw Error("micro-batches of " + std::to_string(micro_batch) +
                " examples have no bounded sensitivity under add-remove adjacency, because a "
                "record that is removed moves all later examples to other micro-batches; use "
                "zero-out or replace-one adjacency, or a micro-batch size of 1.");
  }
  SORDINO_CHECK(slack >= 0, "the rounding slack is a number and not negative");
  double norm = 0;
  for (const double bound : bounds) {
    SORDINO_CHECK(bound >= 0 && bound < kInfinity, "a clipping bound is finite and not negative");
    norm = std::hypot(norm, bound);
  }
  // hypot is accurate to one ulp; of a single bound it is exact.
  if (bounds.size() > 1) {
    norm *= 1 + static_cast<double>(bounds.size() + 2) * 0x1p-52;
  }
  const bool replaced = adjacency == Adjacency::kReplaceOne || micro_batch > 1;
  const double exact = replaced ? 2 * norm : norm;
  return L2Sensitivity(slack > 0 ? exact * (1 + slack) * (1 + 0x1p-50) : exact);
}

}  // namespace sordino
