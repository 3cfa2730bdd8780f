#include "sordino/gradients/flat_clipping.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/testing/clipping_test_support.h"

namespace sordino {
namespace {

TEST(FlatClipping, FactorTimesNormNeverExceedsTheBound) {
  for (const double bound : {1e-10, 0.1, 1.0, 1.5, 7.0, 1e10, std::nextafter(2.0, 0.0)}) {
    EXPECT_EQ(Violations(FlatClipping(ClipNorm(bound)), AdversarialNorms(bound)), 0) << bound;
  }
}

// A policy that clips a little above the bound that it states.
class LooseClipping : public FlatClipping {
 public:
  LooseClipping(ClipNorm bound, double excess)
      : FlatClipping(bound), wider_(ClipNorm(bound.value() * excess)) {}
  at::Tensor Factors(const at::Tensor& norms) const override { return wider_.Factors(norms); }

 private:
  FlatClipping wider_;
};

TEST(FlatClipping, AClipOnePercentAboveTheBoundIsFound) {
  EXPECT_GT(Violations(LooseClipping(ClipNorm(1), 1.01), AdversarialNorms(1)), 100);
  // And so is one that is off by a few units in the last place.
  EXPECT_GT(Violations(LooseClipping(ClipNorm(1), 1 + 0x1p-48), AdversarialNorms(1)), 100);
  EXPECT_EQ(Violations(LooseClipping(ClipNorm(1), 1), AdversarialNorms(1)), 0);
}

TEST(FlatClipping, LeavesGradientsWithinTheBoundAlone) {
  const FlatClipping policy(ClipNorm(2));
  for (const double norm : {0.0, 1e-310, 1e-300, 1.0, 1.999999}) {
    EXPECT_EQ(FactorOf(policy, norm), 1) << norm;
  }
}

TEST(FlatClipping, ScalesLargeGradientsToTheBound) {
  const FlatClipping policy(ClipNorm(2));
  for (const double norm : {2.5, 1e5, 1e300}) {
    EXPECT_NEAR(FactorOf(policy, norm) * norm, 2, 1e-14) << norm;
  }
}

TEST(FlatClipping, FactorsFallAndScaledNormsRise) {
  std::vector<double> norms = AdversarialNorms(1);
  std::erase_if(norms, [](double norm) { return norm > 1e300; });
  std::sort(norms.begin(), norms.end());
  const at::Tensor factors = FlatClipping(ClipNorm(1)).Factors(Row(norms));
  for (std::size_t i = 1; i < norms.size(); ++i) {
    const double before = factors.data_ptr<double>()[i - 1];
    const double here = factors.data_ptr<double>()[i];
    EXPECT_LE(here, before) << norms[i];
    EXPECT_GE(here * norms[i], before * norms[i - 1] * (1 - 0x1p-49)) << norms[i];
  }
}

TEST(FlatClipping, HasOneGroupAndOneBound) {
  const FlatClipping policy(ClipNorm(1.5));
  EXPECT_EQ(policy.Groups({Parameter("a.weight", {2}), Parameter("b.weight", {2})}),
            (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(policy.Bounds(), std::vector<double>{1.5});
  EXPECT_EQ(policy.Description(), "flat clipping at 1.5");
  EXPECT_EQ(policy.CountBound(), 0);
  EXPECT_FALSE(policy.Counts(Row({1})).defined());
}

TEST(FlatClipping, TakesAnEmptyBatch) {
  const at::Tensor factors = FlatClipping(ClipNorm(1)).Factors(at::zeros({1, 0}, at::kDouble));
  EXPECT_EQ(factors.sizes(), (std::vector<std::int64_t>{1, 0}));
}

TEST(FlatClipping, StopsOnNormsThatAreNotItsOwn) {
  const FlatClipping policy(ClipNorm(1));
  EXPECT_DEATH(policy.Factors(at::zeros({2, 3}, at::kDouble)), "norms");
  EXPECT_DEATH(policy.Factors(at::zeros({1, 3}, at::kFloat)), "norms");
}

}  // namespace
}  // namespace sordino
