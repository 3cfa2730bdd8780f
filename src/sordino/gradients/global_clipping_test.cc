#include "sordino/gradients/global_clipping.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/testing/clipping_test_support.h"

namespace sordino {
namespace {

GlobalClipping Global(double bound, double threshold) {
  return GlobalClipping(GlobalBound{.bound = ClipNorm(bound), .threshold = ClipNorm(threshold)});
}

TEST(GlobalClipping, FactorTimesNormNeverExceedsTheBound) {
  for (const double bound : {1e-3, 0.7, 1.0, 3.0}) {
    for (const double threshold : {0.5, 1.0, 3.0, 1e7}) {
      EXPECT_EQ(Violations(Global(bound, threshold), AdversarialNorms(threshold)), 0)
          << bound << " of " << threshold;
    }
  }
}

TEST(GlobalClipping, ScalesAllWithinTheThresholdAlikeAndDropsTheRest) {
  const GlobalClipping policy = Global(1, 10);
  const double common = FactorOf(policy, 0);
  EXPECT_NEAR(common, 0.1, 1e-15);
  for (const double norm : {1e-300, 1.0, 9.9, 10.0}) {
    EXPECT_EQ(FactorOf(policy, norm), common) << norm;
  }
  for (const double norm : {std::nextafter(10.0, 11.0), 11.0, 1e300, HUGE_VAL}) {
    EXPECT_EQ(FactorOf(policy, norm), 0) << norm;
  }
  EXPECT_EQ(FactorOf(policy, std::nan("")), 0);
}

TEST(GlobalClipping, ReachesTheBoundAtTheThreshold) {
  EXPECT_NEAR(FactorOf(Global(2, 8), 8) * 8, 2, 1e-14);
}

TEST(GlobalClipping, TreatsEachLayerByItsOwnThreshold) {
  const std::vector<NamedParameter> parameters = {Parameter("a.weight", {2}),
                                                  Parameter("b.weight", {2})};
  const GlobalClipping policy(parameters, {{.bound = ClipNorm(1), .threshold = ClipNorm(2)},
                                           {.bound = ClipNorm(3), .threshold = ClipNorm(30)}});
  EXPECT_EQ(policy.Groups(parameters), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(policy.Bounds(), (std::vector<double>{1, 3}));
  const at::Tensor norms = at::tensor({1.0, 20.0, 1.0, 20.0}, at::kDouble).view({2, 2});
  const at::Tensor expected = at::tensor({0.5, 0.0, 0.1, 0.1}, at::kDouble).view({2, 2});
  EXPECT_TRUE(policy.Factors(norms).allclose(expected, 1e-14, 0));
  EXPECT_EQ(Violations(policy, AdversarialNorms(30), 1), 0);
  EXPECT_EQ(policy.Description(), "global clipping at 1, 3 of gradients up to 2, 30");
  EXPECT_THROW(GlobalClipping(parameters, {{.bound = ClipNorm(1), .threshold = ClipNorm(2)}}),
               Error);
}

TEST(GlobalClipping, RefusesAFactorThatIsNotANormalNumber) {
  EXPECT_THROW(Global(1e-200, 1e200), Error);
  EXPECT_THROW(Global(1e200, 1e-200), Error);
}

}  // namespace
}  // namespace sordino
