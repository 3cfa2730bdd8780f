#include "sordino/runs/train_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sordino/base/error.h"
#include "sordino/runs/train_settings.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

DatasetDeclaration Images() {
  DatasetDeclaration declaration;
  declaration.name = "images";
  declaration.shape = {1, 28, 28};
  declaration.classes = 10;
  declaration.records = 60'000;
  return declaration;
}

TrainConfig Named() {
  TrainConfig config;
  config.data.source = "mnist";
  config.model.name = "cnn-mnist";
  config.privacy.epsilon = 3;
  return config;
}

std::string MistakeOf(const TrainConfig& config, const DatasetDeclaration& data = Images()) {
  try {
    Completed(config, data);
  } catch (const Error& error) {
    return error.what();
  }
  return "no mistake";
}

TEST(TrainConfig, LeftAloneItIsTheRecipe) {
  const TrainConfig config = Completed(Named(), Images());
  EXPECT_EQ(config.training.batch, 512);
  EXPECT_EQ(config.training.steps, 4688);  // ceil(40 * 60000 / 512)
  EXPECT_EQ(config.training.learning_rate, 0.5);
  EXPECT_EQ(config.training.optimizer,
            Choice("sgd", {{"momentum", 0.9}, {"nesterov", false}, {"weight-decay", 0.0}}));
  EXPECT_EQ(config.privacy.clip, 0.1);
  EXPECT_EQ(config.privacy.delta, 1e-5);
  EXPECT_EQ(config.privacy.adjacency, "add-remove");
  EXPECT_EQ(config.run.evaluate_every, 117);  // once an epoch
}

TEST(TrainConfig, CompletingTwiceIsCompletingOnce) {
  const TrainConfig once = Completed(Named(), Images());
  EXPECT_EQ(WriteTrainConfig(Completed(once, Images())), WriteTrainConfig(once));
}

TEST(TrainConfig, StepsAreTheEpochsRoundedUp) {
  TrainConfig config = Named();
  config.training.batch = 256;
  config.training.epochs = 1;
  EXPECT_EQ(Completed(config, Images()).training.steps, 235);
  config.training.batch = 600;
  EXPECT_EQ(Completed(config, Images()).training.steps, 100);  // exactly
  config.training.epochs = 0.5;
  EXPECT_EQ(Completed(config, Images()).training.steps, 50);
}

TEST(TrainConfig, ARateStandsInForThePrivateNumberOfRecords) {
  DatasetDeclaration data = Images();
  data.records = 0;
  TrainConfig config = Named();
  EXPECT_THAT(MistakeOf(config, data), HasSubstr("give --records"));
  config.privacy.rate = 0.01;
  EXPECT_THAT(MistakeOf(config, data), HasSubstr("give --batch too"));
  config.training.batch = 100;
  config.training.epochs = 3;
  EXPECT_EQ(Completed(config, data).training.steps, 300);
  EXPECT_EQ(PlanOptionsOf(Completed(config, data), data).records, 0);
}

TEST(TrainConfig, BatchesOfFixedSizeAreReplaceOne) {
  TrainConfig config = Named();
  config.privacy.sampling = "fixed";
  const PlanOptions options = PlanOptionsOf(Completed(config, Images()), Images());
  EXPECT_EQ(options.sampling, "fixed");
  EXPECT_EQ(options.adjacency, Adjacency::kReplaceOne);
}

TEST(TrainConfig, AFullBatchHasAllRecords) {
  TrainConfig config = Named();
  config.privacy.sampling = "full";
  config.training.epochs = 5;
  const TrainConfig completed = Completed(config, Images());
  EXPECT_EQ(completed.training.batch, 60'000);
  EXPECT_EQ(completed.training.steps, 5);
  config.training.batch = 100;
  EXPECT_THAT(MistakeOf(config), HasSubstr("a full batch has all 60000 records"));
}

TEST(TrainConfig, OtherOptimizersHaveTheirOwnDefaults) {
  TrainConfig config = Named();
  config.training.optimizer = "adam";
  // As config.toml had them before options belonged to their optimizer.
  config.training.optimizer.options = {{"momentum", 0.0}, {"nesterov", false}, {"beta2", 0.9}};
  const OptimizerOptions options = OptimizerOptionsOf(Completed(config, Images()));
  EXPECT_EQ(options.algorithm,
            Choice("adam",
                   {{"beta1", 0.9}, {"beta2", 0.9}, {"weight-decay", 0.0}, {"stabiliser", 1e-8}}));
  EXPECT_EQ(options.learning_rate, 0.001);
}

TEST(TrainConfig, DeltaMustBeGivenForDataThatAreNotNamed) {
  TrainConfig config = Named();
  config.data.source = "patients.csv";
  EXPECT_THAT(MistakeOf(config), HasSubstr("there is no --delta"));
  config.privacy.delta = 1e-6;
  EXPECT_EQ(Completed(config, Images()).privacy.delta, 1e-6);
}

TEST(TrainConfig, TheModelFollowsFromTheKindOfTheData) {
  const auto model = [](InputKind kind, std::vector<std::int64_t> shape) {
    TrainConfig config = Named();
    config.model.name.clear();
    DatasetDeclaration data = Images();
    data.kind = kind;
    data.shape = std::move(shape);
    return Completed(config, data).model.name;
  };
  EXPECT_EQ(model(InputKind::kImage, {1, 28, 28}), "cnn-mnist");
  EXPECT_EQ(model(InputKind::kImage, {1, 13, 28}), "cnn-cifar");
  EXPECT_EQ(model(InputKind::kImage, {3, 32, 32}), "cnn-cifar");
  EXPECT_EQ(model(InputKind::kImage, {3, 7, 32}), "logistic");
  EXPECT_EQ(model(InputKind::kFeatures, {12}), "mlp");
  EXPECT_EQ(model(InputKind::kTokens, {64}), "transformer");
  TrainConfig script = Named();
  script.model.name.clear();
  script.model.script = "m.pt";
  EXPECT_EQ(Completed(script, Images()).model.name, "");
}

TEST(TrainConfig, WhatIsMissingOrContradictsItselfIsAMistake) {
  const auto change = [](auto&& edit) {
    TrainConfig config = Named();
    edit(config);
    return MistakeOf(config);
  };
  EXPECT_THAT(change([](auto& c) { c.data.source = ""; }), HasSubstr("give --data"));
  EXPECT_THAT(change([](auto& c) { c.model.script = "m.pt"; }), HasSubstr("two models"));
  EXPECT_THAT(change([](auto& c) { c.privacy.epsilon.reset(); }), HasSubstr("there is no budget"));
  EXPECT_THAT(change([](auto& c) { c.privacy.noise = 1; }), HasSubstr("both given"));
  EXPECT_THAT(change([](auto& c) { c.privacy.epsilon = 0; }), HasSubstr("--epsilon is 0"));
  EXPECT_THAT(change([](auto& c) { c.privacy.delta = 1; }), HasSubstr("--delta is 1"));
  EXPECT_THAT(change([](auto& c) { c.training.batch = 60'001; }), HasSubstr("at most that many"));
  EXPECT_THAT(change([](auto& c) { c.training.batch = 0; }), HasSubstr("--batch is 0"));
  EXPECT_THAT(change([](auto& c) {
                c.training.steps = 5;
                c.training.epochs = 5;
              }),
              HasSubstr("--epochs and --steps are both given"));
  EXPECT_THAT(change([](auto& c) { c.training.steps = 0; }), HasSubstr("--steps is 0"));
  EXPECT_THAT(change([](auto& c) { c.training.epochs = 0; }), HasSubstr("--epochs is 0"));
  EXPECT_THAT(change([](auto& c) {
                c.privacy.sampling = "fixed";
                c.privacy.rate = 0.1;
              }),
              HasSubstr("--rate is for --sampling poisson, allocation or cyclic"));
  EXPECT_THAT(change([](auto& c) { c.training.copies = 0; }), HasSubstr("--copies is 0"));
  EXPECT_THAT(change([](auto& c) {
                c.training.optimizer = {"adam", {{"momentum", 0.9}}};
              }),
              HasSubstr("the momentum was given for the optimizer 'adam', which does not have it"));
}

TEST(TrainConfig, WithoutPrivacyNoBudgetIsNeeded) {
  TrainConfig config = Named();
  config.data.source = "patients.csv";
  config.privacy.epsilon.reset();
  config.run.non_private = true;
  EXPECT_EQ(MistakeOf(config), "no mistake");
  config.run.non_private = false;
  config.privacy.noise = 0;
  config.privacy.clipping = "layerwise";
  EXPECT_EQ(MistakeOf(config), "no mistake");
}

TEST(TrainConfig, WhatARunWithoutNoiseOrClippingHasNoUseForIsAMistake) {
  TrainConfig config = Named();
  config.privacy.epsilon.reset();
  config.run.non_private = true;
  config.privacy.clipping = "layerwise";
  EXPECT_THAT(MistakeOf(config), HasSubstr("--clipping layerwise has no meaning beside it; give "
                                           "--noise 0 to clip without noise"));
  config.privacy.clipping = "flat";
  config.privacy.noise = 0;
  EXPECT_THAT(MistakeOf(config), HasSubstr("give one of them"));
  config.run.non_private = false;
  config.privacy.noise_schedule = "linear:0.5";
  EXPECT_THAT(MistakeOf(config), HasSubstr("--noise-schedule linear:0.5 has no meaning"));
  config.privacy.noise_schedule = "constant";
  config.privacy.noise = -1;
  EXPECT_THAT(MistakeOf(config), HasSubstr("--noise is -1"));
}

TEST(TrainConfig, DevicesThatAreNotThereAreMistakes) {
  EXPECT_EQ(ParseDevice("cpu"), c10::Device(c10::kCPU));
  EXPECT_THROW(ParseDevice("gpu"), Error);
  EXPECT_THROW(ParseDevice("cuda:"), Error);
  EXPECT_THROW(ParseDevice("cuda:99"), Error);
  EXPECT_THROW(ParseDevice("cuda", 0, /*gpus=*/0), Error);
  EXPECT_THROW(ParseDevice("cuda:4", 0, /*gpus=*/4), Error);
}

TEST(TrainConfig, RanksOfAMachineShareOutItsGpus) {
  const auto gpu = [](c10::DeviceIndex index) { return c10::Device(c10::kCUDA, index); };
  EXPECT_EQ(ParseDevice("cpu", 5, /*gpus=*/4), c10::Device(c10::kCPU));
  EXPECT_EQ(ParseDevice("cuda", 0, 4), gpu(0));
  EXPECT_EQ(ParseDevice("cuda", 3, 4), gpu(3));
  EXPECT_EQ(ParseDevice("cuda", 5, 4), gpu(1));
  EXPECT_EQ(ParseDevice("cuda", 7, 1), gpu(0));
  // One that is named is that of all ranks.
  EXPECT_EQ(ParseDevice("cuda:2", 5, 4), gpu(2));
}

}  // namespace
}  // namespace sordino
