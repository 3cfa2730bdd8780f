#include "sordino/runs/train_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/report/report_run.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Setting& SettingOf(std::string_view flag) {
  const auto settings = TrainSettings();
  return *std::find_if(settings.begin(), settings.end(),
                       [&](const Setting& setting) { return setting.flag == flag; });
}

TrainConfig Flagged(TrainConfig config,
                    const std::vector<std::pair<std::string, std::vector<std::string>>>& flags) {
  std::vector<GivenFlag> given;
  given.reserve(flags.size());
  for (const auto& [flag, texts] : flags) given.push_back({&SettingOf(flag), texts});
  SetFromFlags(config, given);
  return config;
}

std::string MistakeIn(const std::string& text) {
  try {
    ParseTrainConfig(text, "c.toml");
  } catch (const Error& error) {
    return error.what();
  }
  return "no mistake";
}

std::string MistakeOf(const std::string& flag, const std::vector<std::string>& texts) {
  try {
    Flagged({}, {{flag, texts}});
  } catch (const Error& error) {
    return error.what();
  }
  return "no mistake";
}

// A value for every setting that is not its default.
TrainConfig Unusual() {
  TrainConfig config;
  int count = 0;
  for (const Setting& setting : TrainSettings()) {
    ++count;
    std::visit(
        [&](auto* field) {
          using Value = std::remove_pointer_t<decltype(field)>;
          const std::string text = setting.choices.empty()
                                       ? "te\"xt \\ with\tall, " + std::to_string(count)
                                       : std::string(setting.choices.back());
          if constexpr (std::is_same_v<Value, std::string> ||
                        std::is_same_v<Value, std::optional<std::string>>) {
            *field = text;
          } else if constexpr (std::is_same_v<Value, bool> ||
                               std::is_same_v<Value, std::optional<bool>>) {
            *field = true;
          } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
            *field = {text, "b|c"};
          } else if constexpr (std::is_same_v<Value, std::vector<double>>) {
            *field = {0.1, count + 1e-9};
          } else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
            *field = {count, 7};
          } else if constexpr (std::is_same_v<Value, double> ||
                               std::is_same_v<Value, std::optional<double>>) {
            *field = count + 1.0 / 3;
          } else {
            *field = count + 1000;
          }
        },
        setting.field(config));
  }
  config.run.purpose = {.curator = "Clinic \"of\" Rome", .use = "planning"};
  return config;
}

TEST(TrainSettings, EveryKeyAndEveryFlagIsThereOnce) {
  std::set<std::string> flags;
  std::set<std::string> keys;
  for (const Setting& setting : TrainSettings()) {
    EXPECT_TRUE(flags.insert(std::string(setting.flag)).second) << setting.flag;
    EXPECT_TRUE(keys.insert(std::string(setting.section) + "." + std::string(setting.key)).second)
        << setting.key;
    EXPECT_EQ(setting.flag.substr(0, 2), "--");
    EXPECT_FALSE(setting.help.empty());
    TrainConfig config;
    const SettingField field = setting.field(config);
    EXPECT_EQ(setting.IsSwitch(), std::holds_alternative<bool*>(field) ||
                                      std::holds_alternative<std::optional<bool>*>(field))
        << setting.flag;
  }
}

TEST(TrainSettings, WhatIsWrittenReadsBackAsItWas) {
  for (const TrainConfig& config : {TrainConfig(), Unusual()}) {
    const std::string text = WriteTrainConfig(config);
    TrainConfig back = ParseTrainConfig(text, "config.toml");
    EXPECT_EQ(back.run.out, "");  // a run is not written into the folder of another
    EXPECT_EQ(WriteTrainConfig(back), text);
    TrainConfig copy = config;
    for (const Setting& setting : TrainSettings()) {
      if (setting.of_this_run) continue;
      const SettingField was = setting.field(copy);
      std::visit([&](auto* field) { EXPECT_EQ(*field, *std::get<decltype(field)>(was)); },
                 setting.field(back));
    }
  }
}

TEST(TrainSettings, EverySettingStandsInTheFile) {
  const std::string text = WriteTrainConfig(Unusual());
  for (const Setting& setting : TrainSettings()) {
    if (setting.of_this_run) continue;
    EXPECT_THAT(text, HasSubstr("\n" + std::string(setting.key) + " = "));
  }
}

TEST(TrainSettings, FlagsWinOverTheFile) {
  const TrainConfig file = ParseTrainConfig(
      "[privacy]\nepsilon = 3\nclip = 0.5\n[training]\nsteps = 7\n[data]\nshape = [1, 2, 3]\n",
      "c");
  EXPECT_EQ(file.privacy.epsilon, 3);
  EXPECT_EQ(file.privacy.clip, 0.5);
  const TrainConfig config =
      Flagged(file, {{"--clip", {"2"}}, {"--shape", {"3,32,32"}}, {"--flip", {"true"}}});
  EXPECT_EQ(config.privacy.clip, 2);
  EXPECT_EQ(config.privacy.epsilon, 3);
  EXPECT_THAT(config.data.shape, ElementsAre(3, 32, 32));
  EXPECT_TRUE(config.training.flip);
  EXPECT_FALSE(Flagged(config, {{"--flip", {"false"}}}).training.flip);
}

TEST(TrainSettings, AFlagTakesThePlaceOfWhatSaysTheSameInAnotherWay) {
  const TrainConfig file = ParseTrainConfig("[privacy]\nepsilon = 3\n[training]\nsteps = 7\n", "c");
  const TrainConfig config = Flagged(file, {{"--noise", {"1.5"}}, {"--epochs", {"2"}}});
  EXPECT_EQ(config.privacy.epsilon, std::nullopt);
  EXPECT_EQ(config.privacy.noise, 1.5);
  EXPECT_EQ(config.training.steps, std::nullopt);
  EXPECT_EQ(config.training.epochs, 2);
  // Both typed on one line contradict each other, and stay for Completed() to refuse.
  const TrainConfig both = Flagged({}, {{"--noise", {"1.5"}}, {"--epsilon", {"2"}}});
  EXPECT_TRUE(both.privacy.noise && both.privacy.epsilon);
}

TEST(TrainSettings, ListsAreCutAtCommasAndColumnsAreNot) {
  const TrainConfig config = Flagged(
      {}, {{"--class-names", {"a,b", "c"}}, {"--columns", {"city:categorical:A,B|C", "y:label"}}});
  EXPECT_THAT(config.data.class_names, ElementsAre("a", "b", "c"));
  EXPECT_THAT(config.data.columns.declared, ElementsAre("city:categorical:A,B|C", "y:label"));
}

TEST(TrainSettings, ValuesOfListsMayStandInQuotes) {
  const TrainConfig config =
      Flagged({}, {{"--class-names", {"\"Biel, Bienne\", <=50K"}}, {"--missing", {"?,\"\""}}});
  EXPECT_THAT(config.data.class_names, ElementsAre("Biel, Bienne", "<=50K"));
  EXPECT_THAT(config.data.missing, ElementsAre("?", ""));
  EXPECT_THAT(MistakeOf("--class-names", {"a,,b"}), HasSubstr("empty"));
  EXPECT_EQ(ParseTrainConfig(WriteTrainConfig(config), "c").data.missing, config.data.missing);
}

TEST(TrainSettings, EveryDataFormatTakesSettingsThatExist) {
  for (const DataFormatFacts& format : KnownDataFormats()) {
    for (const std::string_view key : format.takes) {
      if (key == "id") continue;  // of predictions
      EXPECT_EQ(SettingOf("--" + std::string(key)).section, "data") << key;
    }
  }
  const Setting& setting = SettingOf("--format");
  EXPECT_EQ(setting.choices.size(), DataFormatNames().size());
  EXPECT_THAT(MistakeOf("--format", {"cvs"}), HasSubstr("did you mean 'csv'"));
  EXPECT_THAT(MistakeIn("[data]\nformat = \"cvs\""), HasSubstr("c.toml, line 2"));
}

TEST(TrainSettings, MistakesInAFileNameTheLineAndTheNearestKey) {
  EXPECT_EQ(MistakeIn("[privacy]\n\nepsilom = 3\n"),
            "c.toml, line 3: 'epsilom' is not a key of [privacy]; did you mean 'epsilon'?");
  EXPECT_THAT(MistakeIn("[privasy]\nepsilon = 3\n"),
              HasSubstr("line 1: the section [privasy] is not known; did you mean 'privacy'?"));
  EXPECT_THAT(MistakeIn("[privacy]\nepsilon = \"three\"\n"),
              HasSubstr("line 2: 'epsilon' in [privacy] must be a number."));
  EXPECT_THAT(MistakeIn("[training]\nsteps = 1.5\n"), HasSubstr("must be a whole number"));
  EXPECT_THAT(MistakeIn("[training]\nsteps = -1\n"), HasSubstr("must be a whole number"));
  EXPECT_EQ(MistakeIn("[run]\nledger = \"\"\n"),
            "c.toml, line 2: 'ledger' in [run] is empty; give a value, or leave the key out.");
  EXPECT_THAT(MistakeIn("[training]\nflip = 1\n"), HasSubstr("must be true or false"));
  EXPECT_THAT(MistakeIn("[data]\nshape = 28\n"), HasSubstr("must be a list"));
  EXPECT_THAT(MistakeIn("[data]\nshape = [1, \"2\"]\n"), HasSubstr("must be a list"));
  EXPECT_THAT(MistakeIn("[privacy]\nclip = nan\n"), HasSubstr("must be a number"));
  EXPECT_THAT(MistakeIn("[training]\noptimizer = \"adm\"\n"),
              HasSubstr("line 2: 'optimizer' is 'adm', which is not known; did you mean 'adam'?"));
  EXPECT_THAT(MistakeIn("epsilon = 3\n"), HasSubstr("'epsilon' stands outside of a section"));
  EXPECT_THAT(MistakeIn("[privacy\n"), HasSubstr("c.toml, line 1: this is not TOML"));
  // A table for each of a million names would overflow the stack when they are freed.
  std::string deep = "[";
  for (int i = 0; i < 1'000'000; ++i) deep += "a.";
  EXPECT_THAT(MistakeIn(deep + "a]\n"), HasSubstr("c.toml, line 1: keys and brackets are nested"));
}

TEST(TrainSettings, MistakesInAFlagNameIt) {
  EXPECT_THAT(MistakeOf("--epsilon", {"three"}), HasSubstr("'three' in --epsilon"));
  EXPECT_THAT(MistakeOf("--epsilon", {"inf"}), HasSubstr("not a finite number"));
  EXPECT_THAT(MistakeOf("--steps", {"1.5"}), HasSubstr("'1.5' in --steps is not a whole number"));
  EXPECT_THAT(MistakeOf("--steps", {"-1"}), HasSubstr("not a whole number"));
  EXPECT_THAT(MistakeOf("--epsilon", {"1", "2"}), HasSubstr("--epsilon is given 2 times"));
  EXPECT_THAT(MistakeOf("--sampling", {"poison"}), HasSubstr("did you mean 'poisson'?"));
  EXPECT_EQ(MistakeOf("--steps", {"1e3"}), "no mistake");
}

TEST(TrainSettings, AFileThatIsNotThereOrTooLargeIsAMistake) {
  EXPECT_THROW(ReadTrainConfig("/nonexistent/config.toml"), Error);
  const TestFolder folder;
  const std::string path = (folder / "config.toml").string();
  std::ofstream(path) << std::string((1 << 20) + 1, '#');
  EXPECT_THROW(ReadTrainConfig(path), Error);
  std::ofstream(path) << "[privacy]\nepsilon = 2\n";
  EXPECT_EQ(ReadTrainConfig(path).privacy.epsilon, 2);
}

// A page names the settings that it shows, and those that it leaves out on purpose.
TEST(TrainSettings, AReportKnowsEachOfThem) {
  std::set<std::string> known(ShownSettings().begin(), ShownSettings().end());
  known.insert(HiddenSettings().begin(), HiddenSettings().end());
  std::set<std::string> all;
  for (const Setting& setting : TrainSettings()) {
    all.insert(std::string(setting.section) + "." + std::string(setting.key));
  }
  EXPECT_EQ(known, all) << "see report/report_run.cc";
}

TEST(TrainSettings, EveryExampleIsReadAndNamesItsDataAndModel) {
  const std::filesystem::path source = __FILE__;
  const std::filesystem::path examples =
      source.parent_path().parent_path().parent_path().parent_path() / "examples";
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(examples)) {
    if (entry.path().extension() != ".toml") continue;
    ++count;
    const TrainConfig config = ReadTrainConfig(entry.path());
    EXPECT_FALSE(config.data.source.empty()) << entry.path();
    EXPECT_FALSE(config.model.name.empty()) << entry.path();
    EXPECT_TRUE(config.privacy.epsilon.has_value()) << entry.path();
  }
  EXPECT_GE(count, 6);
}

}  // namespace
}  // namespace sordino
