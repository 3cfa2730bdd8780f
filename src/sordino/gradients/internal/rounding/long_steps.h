// Exact sums of whole numbers that together may be more than an int64 holds, and what they are for.
//
// A batch of more than B examples, where there are more records than was declared (clipper.cc).
// Whether it comes may depend on one record, so that the sum must stay within the sensitivity of
// rounding.h, whose notation this is. Each unit is summed by itself, beside a copy of itself with
// the factor 0, in the same way and with the same cancellation as in a batch of B; what it adds is
// rounded to a grid f of 2^59 steps for the bound V, and the steps are added up as integers.
//  - Both neighbours have more than B. What a unit adds is a function of that unit: the sums differ
//    by x of step 3, with two roundings of its own sum and f sqrt(d) / 2, and by the conversion of
//    the integers to float64, 2^-52 times their norm. 2 B phi covers that up to 2^13 B examples:
//    u_result is 4 u, or N above is more than 12,000.
//  - One has B, the other B + 1. The first is off by B (epsilon + phi) at most, by step 4. In the
//    second a unit shares no product and no float32 sum with others, so that it is off by two
//    roundings and f sqrt(d) / 2, no more than half of epsilon + phi, and B + 1 <= 2 B units by no
//    more than the second half of the bound.
// (NeighbouringBatches.LargerThanDeclared* and ChunkedClipper.LargerBatchesThanDeclared* test it.)
#ifndef SORDINO_GRADIENTS_INTERNAL_ROUNDING_LONG_STEPS_H_
#define SORDINO_GRADIENTS_INTERNAL_ROUNDING_LONG_STEPS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sordino {

// The value is high 2^32 + low. Two of them are added by adding both parts; up to 2^31 numbers that
// were added give no overflow.
struct LongSteps {
  at::Tensor low;
  at::Tensor high;

  static LongSteps Zeros(std::int64_t coordinates, at::Device device);
  // int64 [coordinates]
  void Add(const at::Tensor& steps);
  // The nearest int64 of magnitude 2^61 at most. No two values are moved apart.
  at::Tensor Saturated() const;
  // float64, to the nearest but for one rounding more.
  at::Tensor Float64() const;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_ROUNDING_LONG_STEPS_H_
