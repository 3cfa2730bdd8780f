#include "sordino/gradients/automatic_clipping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/testing/clipping_test_support.h"

namespace sordino {
namespace {

TEST(AutomaticClipping, FactorTimesNormNeverExceedsTheBound) {
  for (const double bound : {1e-3, 1.0, 7.0}) {
    for (const double gamma : {1e-12, 0.01, 100.0}) {
      EXPECT_EQ(Violations(AutomaticClipping(ClipNorm(bound), gamma), AdversarialNorms(bound)), 0)
          << bound << ", " << gamma;
    }
  }
}

TEST(AutomaticClipping, IsTheFormulaOfThePaper) {
  const AutomaticClipping policy(ClipNorm(2), 0.5);
  for (const double norm : {0.0, 0.1, 1.0, 33.0, 1e9}) {
    EXPECT_NEAR(FactorOf(policy, norm) * (norm + 0.5), 2, 1e-14) << norm;
  }
  EXPECT_NEAR(FactorOf(AutomaticClipping(ClipNorm(1)), 0), 100, 1e-12);
}

TEST(AutomaticClipping, FactorsFallAndScaledNormsRise) {
  std::vector<double> norms = AdversarialNorms(1);
  std::erase_if(norms, [](double norm) { return norm > 1e300; });
  std::sort(norms.begin(), norms.end());
  const at::Tensor factors = AutomaticClipping(ClipNorm(1)).Factors(Row(norms));
  for (std::size_t i = 1; i < norms.size(); ++i) {
    const double before = factors.data_ptr<double>()[i - 1];
    const double here = factors.data_ptr<double>()[i];
    EXPECT_LE(here, before) << norms[i];
    EXPECT_GE(here * norms[i], before * norms[i - 1] * (1 - 0x1p-50)) << norms[i];
  }
}

TEST(AutomaticClipping, WorksForEachLayer) {
  const std::vector<NamedParameter> parameters = {Parameter("a.weight", {2}),
                                                  Parameter("b.weight", {2})};
  const AutomaticClipping policy(parameters, {ClipNorm(1), ClipNorm(3)}, 1);
  EXPECT_EQ(policy.Groups(parameters), (std::vector<std::int64_t>{0, 1}));
  const at::Tensor factors = policy.Factors(at::tensor({1.0, 2.0}, at::kDouble).view({2, 1}));
  EXPECT_TRUE(factors.allclose(at::tensor({0.5, 1.0}, at::kDouble).view({2, 1}), 1e-14, 0));
  EXPECT_EQ(policy.Description(), "automatic clipping to 1, 3 with stability constant 1");
}

TEST(AutomaticClipping, RefusesAStabilityConstantThatIsNotPositive) {
  for (const double gamma : {0.0, -0.01, 1e-13, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(AutomaticClipping(ClipNorm(1), gamma), Error) << gamma;
  }
}

}  // namespace
}  // namespace sordino
