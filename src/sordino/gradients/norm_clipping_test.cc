#include "sordino/gradients/norm_clipping.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
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

using ::testing::HasSubstr;

// Three layers; the frozen one has no bound.
std::vector<NamedParameter> NamedLayers() {
  NamedParameter frozen = Parameter("frozen.weight", {50});
  frozen.value.set_requires_grad(false);
  return {Parameter("conv1.weight", {2, 3}), Parameter("conv1.bias", {2}),
          Parameter("block.0.norm.weight", {4}), Parameter("scale", {20}), frozen};
}

std::vector<NamedParameter> Trained() {
  std::vector<NamedParameter> parameters = NamedLayers();
  parameters.pop_back();
  return parameters;
}

std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(LayerwiseClipping, ALayerIsTheParametersOfOneModule) {
  const ClippingGroups groups = ClippingGroups::ByLayer(NamedLayers());
  EXPECT_EQ(groups.layers(), (std::vector<std::string>{"conv1", "block.0.norm", ""}));
  const NormClipping policy(ClippingGroups::ByLayer(NamedLayers()),
                            {ClipNorm(1), ClipNorm(2), ClipNorm(3)});
  EXPECT_EQ(policy.Groups(Trained()), (std::vector<std::int64_t>{0, 0, 1, 2}));
  EXPECT_EQ(policy.Bounds(), (std::vector<double>{1, 2, 3}));
}

TEST(LayerwiseClipping, FactorTimesNormNeverExceedsTheBoundOfTheLayer) {
  const NormClipping policy(ClippingGroups::ByLayer(NamedLayers()),
                            {ClipNorm(1e-3), ClipNorm(1.7), ClipNorm(1e5)});
  for (std::int64_t group = 0; group < 3; ++group) {
    const double bound = policy.Bounds()[static_cast<std::size_t>(group)];
    EXPECT_EQ(Violations(policy, AdversarialNorms(bound), group), 0) << group;
  }
}

TEST(LayerwiseClipping, ClipsEachLayerByItsOwnNorm) {
  const NormClipping policy(ClippingGroups::ByLayer(NamedLayers()),
                            {ClipNorm(1), ClipNorm(2), ClipNorm(3)});
  const at::Tensor norms = at::tensor({4.0, 0.5, 1.0, 4.0, 2.0, 6.0}, at::kDouble).view({3, 2});
  const at::Tensor expected = at::tensor({0.25, 1.0, 1.0, 0.5, 1.0, 0.5}, at::kDouble).view({3, 2});
  EXPECT_TRUE(policy.Factors(norms).allclose(expected, 1e-14, 0));
}

TEST(LayerwiseClipping, EqualBoundsKeepTheTotal) {
  const NormClipping policy = NormClipping::Layerwise(NamedLayers(), ClipNorm(2));
  for (const double bound : policy.Bounds()) EXPECT_NEAR(bound, 2 / std::sqrt(3.0), 1e-14);
  EXPECT_EQ(policy.Bounds().size(), 3);
}

TEST(LayerwiseClipping, RefusesBoundsThatAreNotOneForEachLayer) {
  EXPECT_EQ(MessageOf([] { NormClipping(ClippingGroups::ByLayer(NamedLayers()), {ClipNorm(1)}); }),
            "1 clipping norms were given for 3 layers ('conv1', 'block.0.norm', ''); give one for "
            "each, in this order.");
}

TEST(LayerwiseClipping, RefusesOtherParametersThanThoseItWasMadeFor) {
  const NormClipping policy = NormClipping::Layerwise(NamedLayers(), ClipNorm(1));
  EXPECT_THAT(MessageOf([&] {
                std::vector<NamedParameter> more = Trained();
                more.push_back(Parameter("head.weight", {3}));
                policy.Groups(more);
              }),
              HasSubstr("'head.weight' is in none of the 3 layers"));
  EXPECT_THAT(MessageOf([&] { policy.Groups({Parameter("conv1.weight", {3})}); }),
              HasSubstr("layer 'block.0.norm' has a clipping bound and no parameter"));
  EXPECT_THAT(MessageOf([] { ClippingGroups::ByLayer({}); }), HasSubstr("0 parameters"));
}

}  // namespace
}  // namespace sordino
