// Sums and noised values that no clipper and no noise step made, for tests of what takes them.
#ifndef SORDINO_GRADIENTS_TESTING_FORGED_VALUES_H_
#define SORDINO_GRADIENTS_TESTING_FORGED_VALUES_H_

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "sordino/gradients/adaclip.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/noised_value.h"

namespace sordino {

class TestForgery {
 public:
  static BoundedSum Sum(SumParts parts) { return BoundedSum(std::move(parts)); }
  template <typename T>
  static NoisedValue<T> Noised(T value, double standard_deviation) {
    return NoisedValue<T>(std::move(value), standard_deviation);
  }
  static void Restore(AdaClip& policy, const std::vector<at::Tensor>& mean,
                      const std::vector<at::Tensor>& variance) {
    policy.Restore(mean, variance);
  }
};

inline BoundedSum ForgedSum(SumParts parts) { return TestForgery::Sum(std::move(parts)); }
inline NoisedCounts ForgedCounts(std::vector<double> counts, double standard_deviation) {
  return TestForgery::Noised(std::move(counts), standard_deviation);
}
inline NoisedGradients ForgedGradients(std::vector<at::Tensor> gradients,
                                       double standard_deviation) {
  return TestForgery::Noised(std::move(gradients), standard_deviation);
}

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TESTING_FORGED_VALUES_H_
