// Sums and noised values that no clipper and no noise step made, for tests of what takes them.
#ifndef SORDINO_GRADIENTS_TESTING_FORGED_VALUES_H_
#define SORDINO_GRADIENTS_TESTING_FORGED_VALUES_H_

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/fixed_point_sum.h"
#include "sordino/gradients/noised_value.h"

namespace sordino {

class TestForgery {
 public:
  static BoundedSum Sum(SumParts parts) { return BoundedSum(std::move(parts)); }
  static FixedPointShard Shard(at::Tensor steps, std::int64_t begin, std::int64_t coordinates,
                               double granularity, L2Sensitivity sensitivity) {
    return {std::move(steps),      begin,      coordinates, granularity, sensitivity,
            Adjacency::kAddRemove, at::kDouble};
  }
  template <typename T>
  static NoisedValue<T> Noised(T value, double standard_deviation) {
    return NoisedValue<T>(std::move(value), standard_deviation);
  }
  template <typename Policy>
  static void Restore(Policy& policy, const std::vector<std::vector<at::Tensor>>& saved) {
    policy.Restore(saved);
  }
};

inline BoundedSum ForgedSum(SumParts parts) { return TestForgery::Sum(std::move(parts)); }
// Of float64 gradients, under add-remove adjacency.
inline FixedPointShard ForgedShard(at::Tensor steps, std::int64_t begin, std::int64_t coordinates,
                                   double granularity, L2Sensitivity sensitivity) {
  return TestForgery::Shard(std::move(steps), begin, coordinates, granularity, sensitivity);
}
inline NoisedCounts ForgedCounts(std::vector<double> counts, double standard_deviation) {
  return TestForgery::Noised(std::move(counts), standard_deviation);
}
inline NoisedGradients ForgedGradients(std::vector<at::Tensor> gradients,
                                       double standard_deviation) {
  return TestForgery::Noised(std::move(gradients), standard_deviation);
}

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TESTING_FORGED_VALUES_H_
