#include "sordino/models/model.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/models/safetensors.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const ModelShape kMnist{.input = {1, 28, 28}, .classes = 10};
const ModelShape kCifar{.input = {3, 32, 32}, .classes = 10};
const ModelShape kWords{.input = {12}, .tokens = true, .vocabulary = 50, .classes = 2};

std::unique_ptr<Model> Make(std::string_view name, const ModelShape& shape,
                            const ModelOptions& options = {}) {
  return MakeModel(name, shape, options, c10::kCPU);
}

std::string Refusal(std::string_view name, const ModelShape& shape,
                    const ModelOptions& options = {}) {
  try {
    Make(name, shape, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "(made)";
}

at::Tensor Parameter(const Model& model, const std::string& name) {
  for (const auto& [known, value] : model.Parameters()) {
    if (known == name) return value;
  }
  throw Error("no parameter " + name);
}

bool SameParameters(const Model& a, const Model& b) {
  const auto first = a.Parameters();
  const auto second = b.Parameters();
  if (first.size() != second.size()) return false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i].first != second[i].first || !first[i].second.equal(second[i].second)) return false;
  }
  return true;
}

class Pretrained : public ::testing::Test {
 protected:
  ModelOptions FromFile() const { return {.pretrained = file_.string(), .seed = 99}; }

  const TestFolder folder_;
  const fs::path file_ = folder_ / "model.safetensors";
};

TEST(Models, HaveTheNumbersOfParametersOfThePapers) {
  const std::map<std::string_view, std::int64_t> mnist = {
      {"logistic", 7850}, {"mlp", 269322}, {"cnn-mnist", 26010}, {"scatternet-linear", 39700}};
  for (const auto& [name, expected] : mnist) {
    std::int64_t count = 0;
    for (const auto& [parameter, value] : Make(name, kMnist)->Parameters()) count += value.numel();
    EXPECT_EQ(count, expected) << name;
  }
  const std::map<std::string_view, std::int64_t> cifar = {
      {"cnn-cifar", 605226}, {"wrn-16-4", 2751146}, {"mobilenet", 678408 + 12810}};
  for (const auto& [name, expected] : cifar) {
    std::int64_t count = 0;
    for (const auto& [parameter, value] : Make(name, kCifar)->Parameters()) count += value.numel();
    EXPECT_EQ(count, expected) << name;
  }
}

TEST(Models, DescribeThemselves) {
  EXPECT_EQ(Make("cnn-mnist", kMnist)->Description(),
            "cnn-mnist: 26,010 parameters, of which 26,010 are trained");
  EXPECT_EQ(Make("logistic", {.input = {4}, .classes = 2}, {.freeze = {"classifier.bias"}})
                ->Description(),
            "logistic: 10 parameters, of which 8 are trained");
}

TEST(Models, OfOneSeedAreEqualAndLeaveTheGlobalGeneratorAlone) {
  at::manual_seed(5);
  const at::Tensor expected = at::rand({3});
  at::manual_seed(5);
  const auto first = Make("mlp", kMnist, {.seed = 7});
  EXPECT_TRUE(at::rand({3}).equal(expected));
  EXPECT_TRUE(SameParameters(*first, *Make("mlp", kMnist, {.seed = 7})));
  EXPECT_FALSE(SameParameters(*first, *Make("mlp", kMnist, {.seed = 8})));
}

TEST(Models, AnUnknownNameIsAnsweredWithTheNearest) {
  EXPECT_THAT(Refusal("cnn-mnst", kMnist),
              AllOf(HasSubstr("'cnn-mnst'"), HasSubstr("did you mean 'cnn-mnist'?")));
  EXPECT_THAT(Refusal("zzz", kMnist), HasSubstr("it can be logistic, mlp"));
}

TEST(Models, RefuseOptionsThatTheyDoNotHave) {
  EXPECT_THAT(Refusal("logistic", kMnist, {.activation = "relu"}), HasSubstr("no activation"));
  EXPECT_THAT(Refusal("cnn-mnist", kMnist, {.width = 3}), HasSubstr("no width"));
  EXPECT_THAT(Refusal("mlp", kMnist, {.activation = "tanhh"}), HasSubstr("did you mean 'tanh'?"));
  EXPECT_THAT(Refusal("mlp", kMnist, {.width = -1}), HasSubstr("width of -1"));
  EXPECT_THAT(Refusal("transformer", kWords, {.width = 6}), HasSubstr("multiple of 4"));
  EXPECT_THAT(Refusal("mobilenet-linear", kCifar), HasSubstr("no file was given"));
}

TEST(Models, RefuseDataThatTheyAreNotMadeFor) {
  EXPECT_THAT(Refusal("cnn-mnist", {.input = {784}, .classes = 10}), HasSubstr("takes images"));
  EXPECT_THAT(Refusal("cnn-mnist", {.input = {1, 13, 28}, .classes = 10}),
              HasSubstr("at least 14x14 pixels and these have 13x28"));
  EXPECT_THAT(Refusal("cnn-cifar", kWords), HasSubstr("choose 'lstm' or 'transformer'"));
  EXPECT_THAT(Refusal("logistic", kWords), HasSubstr("token ids"));
  EXPECT_THAT(Refusal("lstm", kMnist), HasSubstr("takes sentences"));
  EXPECT_THAT(Refusal("mobilenet", {.input = {4, 32, 32}, .classes = 2}), HasSubstr("4 channels"));
  EXPECT_THAT(Refusal("scatternet-linear", {.input = {1, 7, 9}, .classes = 2}),
              HasSubstr("at least 8x8"));
  EXPECT_THAT(Refusal("logistic", {.input = {3}, .classes = 1}), HasSubstr("1 classes"));
  EXPECT_THAT(Refusal("logistic", {.input = {}, .classes = 2}), HasSubstr("no sides"));
  EXPECT_THAT(Refusal("logistic", {.input = {0}, .classes = 2}), HasSubstr("out of range"));
  EXPECT_THAT(Refusal("logistic", {.input = {60000, 60000, 60000}, .classes = 2}),
              HasSubstr("too large"));
  EXPECT_THAT(Refusal("lstm", {.input = {3}, .tokens = true, .vocabulary = 0, .classes = 2}),
              HasSubstr("vocabulary of 0"));
}

TEST(Models, FreezeWhatBeginsWithAPrefixAndRefuseOneThatNamesNothing) {
  const auto model = Make("cnn-mnist", kMnist, {.freeze = {"conv", "linear1.bias"}});
  for (const auto& [name, value] : model->Parameters()) {
    EXPECT_EQ(value.requires_grad(), !(name.starts_with("conv") || name == "linear1.bias")) << name;
  }
  EXPECT_THAT(Refusal("cnn-mnist", kMnist, {.freeze = {"con", "backbone"}}),
              AllOf(HasSubstr("begins with 'backbone'"), HasSubstr("conv1.weight, conv1.bias")));
  EXPECT_THAT(Refusal("cnn-mnist", kMnist, {.freeze = {""}}), HasSubstr("freezes nothing"));
}

TEST_F(Pretrained, WeightsAreThoseOfTheFile) {
  const auto trained = Make("cnn-mnist", kMnist, {.seed = 1});
  WriteSafetensors(file_, trained->Parameters());
  EXPECT_TRUE(SameParameters(*trained, *Make("cnn-mnist", kMnist, FromFile())));
}

TEST_F(Pretrained, ALastLayerOfOtherClassesOrNoneStartsFresh) {
  const auto trained = Make("cnn-mnist", kMnist, {.seed = 1});
  auto parameters = trained->Parameters();
  ModelShape seven = kMnist;
  seven.classes = 7;
  for (const bool has_classifier : {true, false}) {
    if (!has_classifier) parameters.resize(parameters.size() - 2);
    WriteSafetensors(file_, parameters);
    const auto model = Make("cnn-mnist", seven, FromFile());
    EXPECT_TRUE(Parameter(*model, "conv1.weight").equal(Parameter(*trained, "conv1.weight")));
    const auto fresh = Make("cnn-mnist", seven, {.seed = 99});
    EXPECT_TRUE(
        Parameter(*model, "classifier.weight").equal(Parameter(*fresh, "classifier.weight")));
  }
}

TEST_F(Pretrained, WeightsInHalfPrecisionAreTakenAndWholeNumbersAreNot) {
  const ModelShape shape{.input = {2}, .classes = 2};
  WriteSafetensors(file_, {{"classifier.weight", at::full({2, 2}, 0.5, at::kHalf)},
                           {"classifier.bias", at::zeros({2}, at::kDouble)}});
  EXPECT_TRUE(Parameter(*Make("logistic", shape, FromFile()), "classifier.weight")
                  .equal(at::full({2, 2}, 0.5)));
  WriteSafetensors(file_, {{"classifier.weight", at::ones({2, 2}, at::kLong)}});
  EXPECT_THAT(Refusal("logistic", shape, FromFile()), HasSubstr("holds Long"));
}

TEST_F(Pretrained, WeightsThatDoNotFitAreRefusedByName) {
  auto parameters = Make("cnn-mnist", kMnist)->Parameters();
  WriteSafetensors(file_, parameters);
  EXPECT_THAT(
      Refusal("cnn-mnist", kCifar, FromFile()),
      AllOf(HasSubstr("'conv1.weight'"), HasSubstr("[16, 1, 8, 8]"), HasSubstr("[16, 3, 8, 8]")));
  EXPECT_THAT(Refusal("mlp", kMnist, FromFile()), HasSubstr("'conv1.weight' that the model does"));
  parameters.erase(parameters.begin());
  WriteSafetensors(file_, parameters);
  EXPECT_THAT(Refusal("cnn-mnist", kMnist, FromFile()), HasSubstr("has no tensor 'conv1.weight'"));
  EXPECT_THAT(Refusal("cnn-mnist", kMnist, {.pretrained = "/none"}), HasSubstr("does not exist"));
}

}  // namespace
}  // namespace sordino
