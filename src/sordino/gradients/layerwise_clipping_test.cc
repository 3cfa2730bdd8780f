#include "sordino/gradients/layerwise_clipping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/testing/clipping_test_support.h"

namespace sordino {
namespace {

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
  EXPECT_EQ(groups.coordinates(), (std::vector<std::int64_t>{8, 4, 20}));
  const LayerwiseClipping policy(NamedLayers(), {ClipNorm(1), ClipNorm(2), ClipNorm(3)});
  EXPECT_EQ(policy.Groups(Trained()), (std::vector<std::int64_t>{0, 0, 1, 2}));
  EXPECT_EQ(policy.Bounds(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(policy.Description(), "layerwise clipping at 1, 2, 3");
}

TEST(LayerwiseClipping, FactorTimesNormNeverExceedsTheBoundOfTheLayer) {
  const LayerwiseClipping policy(NamedLayers(), {ClipNorm(1e-3), ClipNorm(1.7), ClipNorm(1e5)});
  for (std::int64_t group = 0; group < 3; ++group) {
    const double bound = policy.Bounds()[static_cast<std::size_t>(group)];
    EXPECT_EQ(Violations(policy, AdversarialNorms(bound), group), 0) << group;
  }
}

TEST(LayerwiseClipping, ClipsEachLayerByItsOwnNorm) {
  const LayerwiseClipping policy(NamedLayers(), {ClipNorm(1), ClipNorm(2), ClipNorm(3)});
  const at::Tensor norms = at::tensor({4.0, 0.5, 1.0, 4.0, 2.0, 6.0}, at::kDouble).view({3, 2});
  const at::Tensor expected = at::tensor({0.25, 1.0, 1.0, 0.5, 1.0, 0.5}, at::kDouble).view({3, 2});
  EXPECT_TRUE(policy.Factors(norms).allclose(expected, 1e-14, 0));
}

TEST(LayerwiseClipping, DerivedBoundsKeepTheTotal) {
  for (const LayerwiseClipping& policy : {LayerwiseClipping::Equal(NamedLayers(), ClipNorm(2)),
                                          LayerwiseClipping::BySize(NamedLayers(), ClipNorm(2))}) {
    double squared = 0;
    for (const double bound : policy.Bounds()) {
      squared += bound * bound;
    }
    EXPECT_NEAR(squared, 4, 1e-13);
  }
  EXPECT_NEAR(LayerwiseClipping::Equal(NamedLayers(), ClipNorm(2)).Bounds()[1], 2 / std::sqrt(3.0),
              1e-14);
  const std::vector<double> by_size =
      LayerwiseClipping::BySize(NamedLayers(), ClipNorm(2)).Bounds();
  EXPECT_NEAR(by_size[0] / by_size[1], std::sqrt(2.0), 1e-14);
}

TEST(LayerwiseClipping, RefusesBoundsThatAreNotOneForEachLayer) {
  EXPECT_EQ(MessageOf([] { LayerwiseClipping(NamedLayers(), {ClipNorm(1)}); }),
            "1 clipping norms were given for 3 layers ('conv1', 'block.0.norm', ''); give one for "
            "each, in this order.");
}

TEST(LayerwiseClipping, RefusesOtherParametersThanThoseItWasMadeFor) {
  const LayerwiseClipping policy = LayerwiseClipping::Equal(NamedLayers(), ClipNorm(1));
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
