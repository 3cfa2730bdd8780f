// Norms that break clipping, and an exact check of the promise of a ClippingPolicy.
#ifndef SORDINO_GRADIENTS_TESTING_CLIPPING_TEST_SUPPORT_H_
#define SORDINO_GRADIENTS_TESTING_CLIPPING_TEST_SUPPORT_H_

#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sordino/gradients/clipping_policy.h"

namespace sordino {

// Zero, subnormal, tiny, huge, and everything near the bound.
inline std::vector<double> AdversarialNorms(double bound) {
  std::vector<double> norms = {
      0,     std::numeric_limits<double>::denorm_min(), 1e-310, 1e-300, 1e-20, 0.3, 1, 3, 1e20,
      1e300, std::numeric_limits<double>::max()};
  double below = bound;
  double above = bound;
  for (int ulp = 0; ulp < 20; ++ulp) {
    norms.push_back(below);
    norms.push_back(above);
    below = std::nextafter(below, 0);
    above = std::nextafter(above, std::numeric_limits<double>::infinity());
  }
  std::mt19937_64 random(17);
  std::uniform_real_distribution<double> exponent(-30, 30);
  for (int i = 0; i < 500; ++i) {
    norms.push_back(bound * std::exp2(exponent(random)));
  }
  return norms;
}

inline at::Tensor Row(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).view({1, -1});
}

// The number of norms for which factor * norm > bound. The fused multiply-add rounds
// factor * norm - bound once, so its sign is that of exact arithmetic.
inline int Violations(const ClippingPolicy& policy, const std::vector<double>& norms,
                      std::int64_t group = 0) {
  const std::vector<double> bounds = policy.Bounds();
  const auto groups = static_cast<std::int64_t>(bounds.size());
  const at::Tensor all = Row(norms).expand({groups, static_cast<std::int64_t>(norms.size())});
  const at::Tensor factors = policy.Factors(all.contiguous()).contiguous();
  int violations = 0;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const double factor =
        factors.data_ptr<double>()[group * all.size(1) + static_cast<std::int64_t>(i)];
    const double excess = std::fma(factor, norms[i], -bounds[static_cast<std::size_t>(group)]);
    violations += factor >= 0 && excess <= 0 ? 0 : 1;
  }
  return violations;
}

inline double FactorOf(const ClippingPolicy& policy, double norm) {
  return policy.Factors(Row({norm})).item<double>();
}

inline NamedParameter Parameter(const std::string& name, const std::vector<std::int64_t>& sizes) {
  return {name, at::ones(sizes).set_requires_grad(true)};
}

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TESTING_CLIPPING_TEST_SUPPORT_H_
