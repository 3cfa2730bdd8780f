#include "sordino/models/internal/mobilenet.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/models/safetensors.h"
#include "sordino/models/testing/pretrained_file.h"

namespace sordino::internal {
namespace {

namespace fs = std::filesystem;

const ModelShape kCifarImages{.input = {3, 32, 32}, .classes = 10};

TEST(MobileNet, TrainsEverythingUnlessTheBackboneIsFrozen) {
  const auto all = MakeModel("mobilenet", kCifarImages, {}, c10::kCPU);
  EXPECT_FALSE(all->HasFeatures());
  EXPECT_EQ(all->Description(), "mobilenet: 691,218 parameters, of which 691,218 are trained");
  const auto some = MakeModel("mobilenet", kCifarImages, {.freeze = {"backbone.stem"}}, c10::kCPU);
  EXPECT_FALSE(some->HasFeatures());
  const auto probe = MakeModel("mobilenet", kCifarImages, {.freeze = {"backbone"}}, c10::kCPU);
  EXPECT_TRUE(probe->HasFeatures());
  EXPECT_EQ(probe->Description(), "mobilenet: 691,218 parameters, of which 12,810 are trained");

  at::manual_seed(1);
  const at::Tensor images = at::rand({3, 3, 32, 32});
  const at::Tensor expected = all->Forward(images);
  EXPECT_EQ(expected.sizes(), (at::IntArrayRef{3, 10}));
  EXPECT_TRUE(probe->Forward(probe->Features(images)).allclose(expected, 1e-3, 1e-4));
}

TEST(MobileNet, FeaturesAreCentredRowsOfOneNormForEveryExampleByItself) {
  const auto model = MakeModel("mobilenet", kCifarImages, {.freeze = {"backbone"}}, c10::kCPU);
  at::manual_seed(2);
  const at::Tensor images = at::rand({34, 3, 32, 32});  // more than a chunk
  const at::Tensor features = model->Features(images);
  EXPECT_EQ(features.sizes(), (at::IntArrayRef{34, kMobileNetFeatures}));
  EXPECT_LT(features.mean(1).abs().max().item<double>(), 5e-5);
  EXPECT_LT((features.norm(2, {1}) - kMobileNetNorm).abs().max().item<double>(), 1e-3);
  for (const std::int64_t i : {0, 33}) {
    EXPECT_TRUE(model->Features(images.slice(0, i, i + 1))
                    .allclose(features.slice(0, i, i + 1), 1e-3, 1e-4));
  }
  EXPECT_EQ(model->Features(images.slice(0, 0, 0)).size(0), 0);
}

TEST(MobileNet, FeaturesTellImagesApart) {
  const auto model = MakeModel("mobilenet", kCifarImages, {.freeze = {"backbone"}}, c10::kCPU);
  at::manual_seed(6);
  const at::Tensor features = model->Features(at::rand({2, 3, 32, 32}));
  EXPECT_GT((features[0] - features[1]).norm().item<double>(), 0.05);
}

TEST(MobileNet, GreyImagesAreSeenAsColourImages) {
  const ModelOptions frozen{.freeze = {"backbone"}};
  const auto grey = MakeModel("mobilenet", {.input = {1, 28, 28}, .classes = 3}, frozen, c10::kCPU);
  const auto colour =
      MakeModel("mobilenet", {.input = {3, 28, 28}, .classes = 3}, frozen, c10::kCPU);
  at::manual_seed(3);
  const at::Tensor images = at::rand({1, 1, 28, 28});
  EXPECT_TRUE(
      grey->Features(images).allclose(colour->Features(images.expand({1, 3, 28, 28})), 1e-3, 1e-4));
}

TEST(MobileNet, TheDeclaredNormalisationIsUndone) {
  const ModelOptions frozen{.freeze = {"backbone"}};
  ModelShape normalised = kCifarImages;
  normalised.mean = {0.5, 0.5, 0.5};
  normalised.deviation = {0.5, 0.5, 0.5};
  at::manual_seed(4);
  const at::Tensor pixels = at::rand({1, 3, 32, 32});
  EXPECT_TRUE(
      MakeModel("mobilenet", normalised, frozen, c10::kCPU)
          ->Features((pixels - 0.5) / 0.5)
          .allclose(MakeModel("mobilenet", kCifarImages, frozen, c10::kCPU)->Features(pixels), 1e-3,
                    1e-4));
}

TEST(MobileNet, BorderOfEvenSidesIsOnTheRightAndAtTheBottom) {
  // A convolution of stride 2 with SAME padding looks at pixels 2i, 2i+1 and 2i+2 of an even side:
  // the first pixel is under the first weight of one output alone. So a stem that keeps only its
  // first weight gives the image at even places, and what stands at odd places is not seen.
  const ModelShape large{.input = {3, 128, 128}, .classes = 2};
  const auto model = MakeModel("mobilenet", large, {.freeze = {"backbone"}}, c10::kCPU);
  for (const auto& [name, value] : model->Parameters()) {
    if (name != "backbone.stem.weight") continue;
    const at::Tensor corner = value.select(3, 0).select(2, 0).clone();
    value.zero_();
    value.select(3, 0).select(2, 0).copy_(corner);
  }
  at::manual_seed(5);
  const at::Tensor images = at::rand({1, 3, 128, 128});
  at::Tensor odd = images.clone();
  odd.slice(2, 1, 128, 2).zero_();
  odd.slice(3, 1, 128, 2).zero_();
  at::Tensor even = images.clone();
  even.slice(2, 0, 128, 2).zero_();
  const at::Tensor features = model->Features(images);
  EXPECT_TRUE(model->Features(odd).equal(features));
  EXPECT_FALSE(model->Features(even).allclose(features, 1e-3, 1e-4));
}

TEST(MobileNet, OwnFilesAreReadBack) {
  const TestFolder folder;
  const fs::path file = folder / "mobilenet";
  const auto model = MakeModel("mobilenet", kCifarImages, {.seed = 3}, c10::kCPU);
  WriteSafetensors(file, model->Parameters());
  const auto again = MakeModel("mobilenet-linear", kCifarImages, {.pretrained = file}, c10::kCPU);
  EXPECT_TRUE(again->HasFeatures());
  for (std::size_t i = 0; i < again->Parameters().size(); ++i) {
    EXPECT_TRUE(again->Parameters()[i].second.equal(model->Parameters()[i].second));
  }
}

class PretrainedMobileNet : public ::testing::Test {
 protected:
  void SetUp() override {
    if (PretrainedFile().empty()) GTEST_SKIP() << "SORDINO_DATA has no pretrained MobileNet";
  }
};

TEST_F(PretrainedMobileNet, EveryTensorOfTheFileFindsItsPlace) {
  const auto model =
      MakeModel("mobilenet-linear", kCifarImages, {.pretrained = PretrainedFile()}, c10::kCPU);
  const SafetensorsFile file = ReadSafetensors(PretrainedFile());
  double sum = 0;
  double expected = 0;
  std::size_t frozen = 0;
  for (const auto& [name, value] : model->Parameters()) {
    if (value.requires_grad()) continue;
    ++frozen;
    sum += value.to(at::kDouble).square().sum().item<double>();
  }
  for (const auto& [name, value] : file.tensors) {
    if (value.dim() > 0) expected += value.to(at::kDouble).square().sum().item<double>();
  }
  EXPECT_EQ(frozen, file.tensors.size() - 2);
  EXPECT_NEAR(sum, expected, 1e-9 * expected);
}

TEST_F(PretrainedMobileNet, OtherNetworksRefuseTheFileByTheNameOfATensor) {
  try {
    MakeModel("cnn-cifar", kCifarImages, {.pretrained = PretrainedFile()}, c10::kCPU);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("module_apply_default/hub_input/"));
  }
}

}  // namespace
}  // namespace sordino::internal
