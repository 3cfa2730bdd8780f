// Policies that do what flat clipping does not, for tests of who calls a policy.
#ifndef SORDINO_GRADIENTS_TESTING_TEST_POLICIES_H_
#define SORDINO_GRADIENTS_TESTING_TEST_POLICIES_H_

#include <ATen/TensorOperators.h>
#include <ATen/ops/le.h>

#include <vector>

#include "sordino/gradients/norm_clipping.h"

namespace sordino {

// C / (n + gamma): factors beyond 1, which no kernel knows.
class SteepClipping : public FlatClipping {
 public:
  SteepClipping(ClipNorm bound, double gamma)
      : FlatClipping(bound), below_(BelowBound(bound.value())), gamma_(gamma) {}
  at::Tensor Factors(const at::Tensor& norms) const override { return below_ / (norms + gamma_); }
  const GroupColumn* ToBound() const override { return nullptr; }
  std::vector<double> Numbers() const override { return {below_, gamma_}; }

 private:
  double below_;
  double gamma_;
};

// Counts the examples within the bound, each by +1/2 or -1/2.
class CountingClipping : public FlatClipping {
 public:
  using FlatClipping::FlatClipping;
  at::Tensor Counts(const at::Tensor& norms) const override {
    return at::le(norms, Bounds().front()).to(at::kDouble).sub_(0.5).sum(1);
  }
  double CountBound() const override { return 0.5; }
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TESTING_TEST_POLICIES_H_
