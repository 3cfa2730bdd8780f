#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/clipping/testing/start_policy.h"
#include "sordino/gradients/testing/clipping_test_support.h"

namespace sordino {
namespace {

std::unique_ptr<ClippingState> StartGlobal(double bound, double threshold) {
  return StartPolicy({"global", {{"clip-threshold", threshold}}}, ClipNorm(bound));
}

TEST(GlobalClipping, FactorTimesNormNeverExceedsTheBound) {
  for (const double bound : {1e-3, 0.5, 0.7, 1.0, 3.0}) {
    for (const double threshold : {3.0, 7.1, 1e7}) {
      EXPECT_EQ(Violations(StartGlobal(bound, threshold)->StepPolicy(ClipNorm(bound)),
                           AdversarialNorms(threshold)),
                0)
          << bound << " of " << threshold;
    }
  }
}

TEST(GlobalClipping, ScalesAllWithinTheThresholdAlikeAndDropsTheRest) {
  const auto state = StartGlobal(1, 10);
  const ClippingPolicy& policy = state->StepPolicy(ClipNorm(1));
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
  EXPECT_NEAR(FactorOf(StartGlobal(2, 8)->StepPolicy(ClipNorm(2)), 8) * 8, 2, 1e-14);
}

TEST(GlobalClipping, MovesTheThresholdWithTheBound) {
  const auto state = StartGlobal(2, 8);
  const ClippingPolicy& policy = state->StepPolicy(ClipNorm(1));
  EXPECT_EQ(policy.Bounds(), std::vector<double>{1});
  EXPECT_NEAR(FactorOf(policy, 4), 0.25, 1e-14);
  EXPECT_EQ(FactorOf(policy, 4.1), 0);
}

TEST(GlobalClipping, TreatsEachLayerByItsOwnThreshold) {
  const std::vector<NamedParameter> parameters = {Parameter("a.weight", {2}),
                                                  Parameter("b.weight", {2})};
  const auto state =
      StartPolicy({"global-layerwise", {{"clip-threshold", 8.0}}}, ClipNorm(2), parameters);
  const ClippingPolicy& policy = state->StepPolicy(ClipNorm(2));
  const double bound = 2 / std::sqrt(2.0);
  EXPECT_EQ(policy.Groups(parameters), (std::vector<std::int64_t>{0, 1}));
  ASSERT_EQ(policy.Bounds().size(), 2);
  EXPECT_NEAR(policy.Bounds()[0], bound, 1e-14);
  EXPECT_NEAR(policy.Bounds()[1], bound, 1e-14);
  const at::Tensor norms =
      at::tensor({4.1 * bound, 3.9 * bound, 1.0, 4.1 * bound}, at::kDouble).view({2, 2});
  const at::Tensor expected = at::tensor({0.0, 0.25, 0.25, 0.0}, at::kDouble).view({2, 2});
  EXPECT_TRUE(policy.Factors(norms).allclose(expected, 1e-14, 0));
  EXPECT_EQ(Violations(policy, AdversarialNorms(4 * bound), 1), 0);
}

TEST(GlobalClipping, RefusesAThresholdBelowTheBoundAndAFactorThatIsNotANormalNumber) {
  EXPECT_THROW(StartGlobal(2, 1), Error);
  EXPECT_THROW(StartGlobal(1e-160, 1e150)->StepPolicy(ClipNorm(1e-160)), Error);
}

}  // namespace
}  // namespace sordino
