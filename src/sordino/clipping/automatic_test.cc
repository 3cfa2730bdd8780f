#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sordino/clipping/testing/start_policy.h"
#include "sordino/gradients/testing/clipping_test_support.h"

namespace sordino {
namespace {

TEST(AutomaticClipping, FactorTimesNormNeverExceedsTheBound) {
  const auto state = StartPolicy("automatic", ClipNorm(1));
  for (const double bound : {1e-3, 1.0, 7.0}) {
    EXPECT_EQ(Violations(state->StepPolicy(ClipNorm(bound)), AdversarialNorms(bound)), 0) << bound;
  }
}

TEST(AutomaticClipping, IsTheFormulaOfThePaper) {
  const auto state = StartPolicy("automatic", ClipNorm(1));
  const ClippingPolicy& policy = state->StepPolicy(ClipNorm(2));
  for (const double norm : {0.0, 0.1, 1.0, 33.0, 1e9}) {
    EXPECT_NEAR(FactorOf(policy, norm) * (norm + 0.01), 2, 1e-14) << norm;
  }
  EXPECT_NEAR(policy.LargestFactor(), 200, 1e-12);
}

TEST(AutomaticClipping, FactorsFallAndScaledNormsRise) {
  std::vector<double> norms = AdversarialNorms(1);
  std::erase_if(norms, [](double norm) { return norm > 1e300; });
  std::sort(norms.begin(), norms.end());
  const auto state = StartPolicy("automatic", ClipNorm(1));
  const at::Tensor factors = state->StepPolicy(ClipNorm(1)).Factors(Row(norms));
  for (std::size_t i = 1; i < norms.size(); ++i) {
    const double before = factors.data_ptr<double>()[i - 1];
    const double here = factors.data_ptr<double>()[i];
    EXPECT_LE(here, before) << norms[i];
    EXPECT_GE(here * norms[i], before * norms[i - 1] * (1 - 0x1p-50)) << norms[i];
  }
}

}  // namespace
}  // namespace sordino
