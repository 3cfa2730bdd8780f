#include "sordino/runs/tried_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "sordino/base/error.h"

namespace sordino {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string MistakeInTries(const std::vector<std::string>& texts) {
  try {
    ParseTriedSettings(texts);
  } catch (const Error& error) {
    return error.what();
  }
  return "no mistake";
}

TEST(TriedSettings, AreListsAndRangesByTheNamesOfFlags) {
  const std::vector<TriedSetting> tried =
      ParseTriedSettings({"lr=0.1..4:log,clip=0.1,1,10", "momentum=0..0.5"});
  ASSERT_EQ(tried.size(), 3U);
  EXPECT_EQ(tried[0].Text(), "lr=0.1..4:log");
  EXPECT_EQ(tried[1].Text(), "clip=0.1,1,10");
  EXPECT_EQ(tried[2].Text(), "momentum=0..0.5");
  EXPECT_THAT(FirstValues(tried), ElementsAre("0.1", "0.1", "0"));
  const TrainConfig config = WithValues({}, tried, {"0.25", "10", "0.5"});
  EXPECT_EQ(config.training.learning_rate, 0.25);
  EXPECT_EQ(config.privacy.clip, 10);
}

// What decides the event of a run, or how long it takes.
TEST(TriedSettings, AreThoseThatTheCostDoesNotDependOn) {
  const std::vector<std::string> names = TriedSettingNames();
  for (const char* name : {"lr", "clip", "momentum", "weight-decay", "lr-schedule"}) {
    EXPECT_THAT(names, Contains(name));
  }
  for (const char* name : {"batch", "epochs", "steps", "epsilon", "noise", "delta", "sampling",
                           "rate", "model", "width", "optimizer", "data", "ledger", "out", "seed",
                           "clipping", "micro-batch", "copies", "insecure-seed"}) {
    EXPECT_THAT(names, Not(Contains(name))) << name;
    EXPECT_THAT(MistakeInTries({std::string(name) + "=1,2"}), HasSubstr("lr")) << name;
  }
}

TEST(TriedSettings, MistakesGetOneSentence) {
  const std::map<std::vector<std::string>, std::string> mistakes = {
      {{}, "there is nothing to try"},
      {{"lr"}, "names no setting"},
      {{"0.1,lr=1"}, "names no setting"},
      {{"learning-rat=1"}, "'learning-rat' in --try is not known"},
      {{"batch=512,2048"}, "--try batch is not possible"},
      {{"lr=4..0.1"}, "is an empty range"},
      {{"lr=0..4:log"}, "two numbers above 0"},
      {{"lr=a..b"}, "is not a range of numbers for lr"},
      {{"lr=1..inf"}, "is not a range of numbers for lr"},
      {{"lr-schedule=1..2"}, "is not a range of numbers"},
      {{"lr=1,2,1"}, "has the value '1' twice"},
      {{"lr=1..2,3"}, "a range and other values"},
      {{"lr=3,1..2"}, "a range and other values"},
      {{"lr=1,lr=2"}, "has lr twice"},
      {{"lr=1", "lr=2"}, "has lr twice"}};
  for (const auto& [texts, part] : mistakes) {
    EXPECT_THAT(MistakeInTries(texts), HasSubstr(part));
  }
  // As the flag would say.
  EXPECT_THROW(WithValues({}, ParseTriedSettings({"lr=x,y"}), {"x"}), Error);
}

TEST(TriedSettings, AreDrawnUniformly) {
  const std::vector<TriedSetting> tried =
      ParseTriedSettings({"lr=0.01..1:log,clip=1..3,momentum=0,0.5,0.9"});
  InsecureSeededGenerator generator(5);
  constexpr int kDraws = 30'000;
  double logs = 0;
  double clips = 0;
  int small = 0;
  std::map<std::string, int> momenta;
  for (int i = 0; i < kDraws; ++i) {
    const TryValues values = DrawValues(tried, generator);
    const double rate = std::stod(values[0]);
    const double clip = std::stod(values[1]);
    ASSERT_GE(rate, 0.01);
    ASSERT_LE(rate, 1);
    ASSERT_GE(clip, 1);
    ASSERT_LE(clip, 3);
    logs += std::log10(rate);
    clips += clip;
    small += rate < 0.1 ? 1 : 0;
    ++momenta[values[2]];
  }
  // At 5 standard deviations: a false alarm in 1e5 seeds.
  const double deviation = 5 / std::sqrt(12.0 * kDraws);
  EXPECT_NEAR(logs / kDraws, -1, 2 * deviation);
  EXPECT_NEAR(clips / kDraws, 2, 2 * deviation);
  EXPECT_NEAR(small, kDraws / 2.0, 2.5 * std::sqrt(kDraws));
  ASSERT_EQ(momenta.size(), 3U);
  for (const auto& [value, count] : momenta) {
    EXPECT_NEAR(count, kDraws / 3.0, 5 * std::sqrt(kDraws * 2.0 / 9)) << value;
  }
}

}  // namespace
}  // namespace sordino
