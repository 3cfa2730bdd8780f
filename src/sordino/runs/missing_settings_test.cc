#include "sordino/runs/missing_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/runs/train_settings.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

template <typename Settings>
std::vector<std::string> Missing(const Settings& settings) {
  std::vector<std::string> flags;
  for (const MissingSetting& setting : MissingSettings(settings)) {
    flags.push_back(setting.give.substr(0, setting.give.find(' ')));
  }
  return flags;
}

TEST(MissingSettings, OfARunAreFoundAllAtOnce) {
  const TestFolder folder;
  TrainConfig config;
  EXPECT_THAT(Missing(config), ElementsAre("--data", "--epsilon"));
  config.data.source = "digits";
  EXPECT_THAT(Missing(config), ElementsAre("--epsilon"));
  config.data.source = folder.Write("visits.csv", "age\n").string();
  EXPECT_THAT(Missing(config), ElementsAre("--schema", "--records", "--epsilon", "--delta"));
  config.data.columns.declared = {"age:numeric:0:1"};
  config.privacy.rate = 0.1;
  config.run.non_private = true;
  EXPECT_THAT(Missing(config), ElementsAre("--batch"));
  config.training.batch = 10;
  EXPECT_THAT(Missing(config), IsEmpty());
}

TEST(MissingSettings, DependOnTheFormat) {
  const TestFolder folder;
  TrainConfig config;
  config.privacy.noise = 1;
  config.privacy.delta = 1e-6;
  config.data.records = 10;
  config.data.source = folder.Write("a.npy", "").string();
  EXPECT_THAT(Missing(config), ElementsAre("--labels", "--shape", "--classes"));
  config.data.source = folder.Write("a.txt", "").string();
  EXPECT_THAT(Missing(config), ElementsAre("--class-names", "--vocabulary", "--length"));
  config.data.classes = 2;
  EXPECT_THAT(Missing(config), ElementsAre("--vocabulary", "--length"));
  config.data.source = folder.path().string();
  EXPECT_THAT(Missing(config), ElementsAre("--resize"));
  config.data.resize = "8x8";
  EXPECT_THAT(Missing(config), IsEmpty());
  config.data.source = (folder.path() / "gone.csv").string();
  EXPECT_THROW(MissingSettings(config), Error);
}

TEST(MissingSettings, OfAFitAreFoundAllAtOnce) {
  const TestFolder folder;
  FitSettings settings;
  EXPECT_THAT(Missing(settings), ElementsAre("--data", "--epsilon"));
  settings.data.source = folder.Write("visits.csv", "age\n").string();
  EXPECT_THAT(Missing(settings), ElementsAre("--schema", "--epsilon", "--delta"));
  settings.non_private = true;
  EXPECT_THAT(Missing(settings), ElementsAre("--schema"));
}

TEST(TrainSettings, ConfigurationsAreToldFromDataByTheirContent) {
  const TestFolder folder;
  EXPECT_TRUE(IsTrainConfig(folder.Write("a", "\n# settings\n [data] # of a run\nsource=1\n")));
  EXPECT_TRUE(IsTrainConfig(folder.Write("b.toml", "anything")));
  EXPECT_TRUE(IsTrainConfig(folder.path() / "gone.toml"));
  EXPECT_FALSE(IsTrainConfig(folder.Write("c.csv", "age,[data]\n[data],1\n")));
  EXPECT_FALSE(IsTrainConfig(folder.Write("d", "[table]\n")));
  EXPECT_FALSE(IsTrainConfig(folder.Write("e", "")));
  EXPECT_FALSE(IsTrainConfig(folder.path()));
  EXPECT_FALSE(IsTrainConfig("digits"));
}

}  // namespace
}  // namespace sordino
