#include "sordino/experiments/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/experiments/testing/experiment_text.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kWhole = R"(
title = "A title"
source = "a source"
about = "what is to be seen"
minutes = 3
quick-minutes = 0.5
repeats = 4
quick-repeats = 2
public-data = true

[[part]]
name = "train"
command = "train"
[part.settings]
data = "mnist"
flip = true
columns = ["a:numeric:0:1", "b:label:x|y"]
clip = 0.5
[part.quick]
data = "digits"
steps = 10
[[part.axis]]
name = "noise"
values = [0.5, 1, 2.25]
quick = [1]
[[part.axis]]
name = "size"
flag = false
values = [{label = "small", batch = 10}, {label = "large", batch = 100, lr = 1e-3}]
[[part.measure]]
name = "accuracy"
path = "test_accuracy"
[[part.measure]]
name = "loss"
column = "test_loss"

[[picture]]
name = "accuracy"
x = "noise"
y = "accuracy"
by = ["size"]
x-log = true
)";

Experiment Parsed(const std::string& text, bool quick = false) {
  return ParseExperiment(text, "mine", quick);
}

// The sentence with which a text is refused.
std::string RefusalOf(const std::string& text) {
  return RefusalBy([&] { Parsed(text); });
}

const FlagSetting& SettingOf(const Settings& settings, const std::string& flag) {
  for (const FlagSetting& setting : settings) {
    if (setting.flag == flag) return setting;
  }
  throw Error("there is no " + flag);
}

TEST(Experiment, ReadsEverythingOfAFile) {
  const Experiment experiment = Parsed(kWhole);
  EXPECT_EQ(experiment.title, "A title");
  EXPECT_EQ(experiment.minutes, 3);
  EXPECT_EQ(experiment.repeats, 4);
  EXPECT_TRUE(experiment.public_data);
  EXPECT_EQ(experiment.CellCount(), 3U * 2 * 4);
  const Part& part = experiment.parts.at(0);
  EXPECT_THAT(SettingOf(part.settings, "data").values, ElementsAre("mnist"));
  EXPECT_THAT(SettingOf(part.settings, "flip").values, ElementsAre());
  EXPECT_THAT(SettingOf(part.settings, "columns").values,
              ElementsAre("a:numeric:0:1", "b:label:x|y"));
  EXPECT_THAT(SettingOf(part.settings, "clip").values, ElementsAre("0.5"));
  EXPECT_TRUE(part.axes.at(0).IsNumeric());
  EXPECT_EQ(part.axes.at(0).values.at(2).label, "2.25");
  EXPECT_THAT(SettingOf(part.axes.at(0).values.at(2).settings, "noise").values,
              ElementsAre("2.25"));
  EXPECT_FALSE(part.axes.at(1).IsNumeric());
  EXPECT_THAT(SettingOf(part.axes.at(1).values.at(1).settings, "lr").values, ElementsAre("0.001"));
  EXPECT_EQ(part.measures.at(1).against, "step");
  EXPECT_THAT(experiment.pictures.at(0).y, ElementsAre("accuracy"));
  EXPECT_TRUE(experiment.pictures.at(0).x_log);
}

TEST(Experiment, QuickFormReplacesSettingsAxesAndRepeats) {
  const Experiment experiment = Parsed(kWhole, true);
  EXPECT_EQ(experiment.minutes, 0.5);
  EXPECT_EQ(experiment.CellCount(), 1U * 2 * 2);
  EXPECT_THAT(SettingOf(experiment.parts[0].settings, "data").values, ElementsAre("digits"));
  EXPECT_THAT(SettingOf(experiment.parts[0].settings, "steps").values, ElementsAre("10"));
  EXPECT_THAT(SettingOf(experiment.parts[0].settings, "clip").values, ElementsAre("0.5"));
}

TEST(Experiment, FalseTakesBackASetting) {
  const Experiment experiment = Parsed(PartOf("fit") +
                                           "[part.settings]\nepsilon = 1\ndelta = false\n"
                                           "[part.quick]\nepsilon = false\n",
                                       true);
  EXPECT_TRUE(experiment.parts[0].settings.empty());
}

TEST(Experiment, RefusesMistakesWithTheLine) {
  const std::string part = PartOf("account");
  EXPECT_THAT(RefusalOf("titel = \"x\"\n" + part), HasSubstr("mine, line 1: the key 'titel'"));
  EXPECT_THAT(RefusalOf("titel = \"x\"\n" + part), HasSubstr("did you mean 'title'"));
  EXPECT_THAT(RefusalOf("title = "), HasSubstr("mine, line 1"));
  EXPECT_THAT(RefusalOf("repeats = 0\n" + part), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(RefusalOf("repeats = 1.5\n" + part), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(RefusalOf(part + "[[part.axis]]\nname = \"noise\"\nvalues = []\n"),
              HasSubstr("the axis 'noise' has no values"));
  EXPECT_THAT(RefusalOf(part + "[[part.axis]]\nname = \"noise\"\n"), HasSubstr("has no values"));
  EXPECT_THAT(RefusalOf(part + "[[part.axis]]\nname = \"noise\"\nvalues = [1, 1]\n"),
              HasSubstr("the value '1' twice"));
  EXPECT_THAT(RefusalOf(part + "[[part.axis]]\nname = \"noise\"\nvalues = [inf]\n"),
              HasSubstr("finite number"));
  EXPECT_THAT(RefusalOf(part + "[part.settings]\nnoise = \"\"\n"), HasSubstr("noise is empty"));
  EXPECT_THAT(RefusalOf(part + "[[part.measure]]\nname = \"a\"\n"),
              HasSubstr("a path or a column"));
  EXPECT_THAT(RefusalOf("title = \"x\""), HasSubstr("has no parts"));
  EXPECT_THAT(RefusalOf("[[part]]\nname = \"x\""), HasSubstr("a part needs a command"));
  EXPECT_THAT(RefusalOf(part + part), HasSubstr("twice"));
  std::string deep = "[";
  for (int i = 0; i < 400'000; ++i) deep += "a.";
  EXPECT_THAT(RefusalOf(deep + "a]\n" + part),
              HasSubstr("mine, line 1: keys and brackets are nested"));
}

TEST(Experiment, RefusesNamesThatAreNotForFiles) {
  const std::string part = PartOf("account") + "[[part.measure]]\nname = \"e\"\npath = \"e\"\n";
  EXPECT_THAT(RefusalOf(part + "[[picture]]\nname = \"../x\"\ny = \"e\"\n"),
              HasSubstr("not allowed"));
  EXPECT_THAT(RefusalOf(part + "[[picture]]\nname = \"a b\"\ny = \"e\"\n"),
              HasSubstr("without blanks"));
  EXPECT_THAT(RefusalOf(part + "[[picture]]\nname = \"<b>\"\ny = \"e\"\n"),
              HasSubstr("not allowed"));
  EXPECT_THAT(RefusalOf(part + "[[part.measure]]\nname = \"seconds\"\npath = \"e\"\n"),
              HasSubstr("twice"));
}

TEST(Experiment, RefusesPicturesOfWhatIsNotThere) {
  const std::string part =
      PartOf("account") +
      "[[part.axis]]\nname = \"noise\"\nvalues = [1, 2]\n"
      "[[part.axis]]\nname = \"steps\"\nvalues = [1, 2]\n"
      "[[part.measure]]\nname = \"epsilon\"\npath = \"epsilon\"\n[[picture]]\nname = \"p\"\n";
  EXPECT_THAT(RefusalOf(part), HasSubstr("has no y"));
  EXPECT_THAT(RefusalOf(part + "y = \"epsilom\"\nx = \"noise\""),
              HasSubstr("did you mean 'epsilon'"));
  EXPECT_THAT(RefusalOf(part + "y = \"epsilon\"\nx = \"nois\""), HasSubstr("'nois'"));
  EXPECT_THAT(RefusalOf(part + "y = \"epsilon\"\nx = \"noise\"\nby = \"step\""),
              HasSubstr("did you mean 'steps'"));
  EXPECT_THAT(RefusalOf(part + "y = \"epsilon\"\nx = \"noise\"\npart = \"other\""),
              HasSubstr("'other', which is not there"));
  EXPECT_THAT(RefusalOf(part + "y = \"epsilon\"\nx = \"noise\""),
              HasSubstr("mixes the values of the axis 'steps'"));
  EXPECT_EQ(RefusalOf(part + "y = \"epsilon\"\nx = \"noise\"\nwhere = {steps = 2}"),
            kNothingRefused);
}

TEST(Experiment, APictureThatACommandDrewIsAFileOfOneCell) {
  const std::string part = PartOf("account") +
                           "[[part.axis]]\nname = \"noise\"\nvalues = [1, 2]\n"
                           "[[part.measure]]\nname = \"e\"\npath = \"e\"\n"
                           "[[picture]]\nname = \"p\"\n";
  const std::string one = "where = {noise = 2}\n";
  EXPECT_EQ(RefusalOf(part + "file = \"drawn.svg\"\n" + one), kNothingRefused);
  EXPECT_THAT(RefusalOf(part + "file = \"drawn.svg\"\n"), HasSubstr("mixes the values"));
  for (const char* const file : {"../drawn.svg", "run/drawn.svg", ".svg", "drawn.html"}) {
    EXPECT_THAT(RefusalOf(part + "file = \"" + file + "\"\n" + one),
                HasSubstr("the name of an SVG file without a folder"));
  }
  EXPECT_THAT(RefusalOf(part + "file = \"drawn.svg\"\ny = \"e\"\n" + one),
              HasSubstr("has no x, y, right, by"));
}

TEST(Experiment, RefusesMoreCellsThanAreRun) {
  std::string text = PartOf("account");
  for (const char* const name : {"a", "b", "c", "d", "e", "f"}) {
    text +=
        std::string("[[part.axis]]\nname = \"") + name + "\"\nvalues = [1,2,3,4,5,6,7,8,9,10]\n";
  }
  EXPECT_THAT(RefusalOf(text), HasSubstr("mine has 1e+06 cells; at most 10000 are run"));
  EXPECT_THAT(RefusalOf("repeats = 1000\n" + text), HasSubstr("1e+09 cells"));
}

TEST(Experiment, RefusesFilesThatAreNotThereOrTooLarge) {
  const TestFolder folder;
  EXPECT_THROW(ReadExperiment(folder / "gone.toml", false), Error);
  EXPECT_THROW(ReadExperiment(folder.path(), false), Error);
  const auto large = folder.Write("large.toml", std::string(kMaxExperimentBytes + 1, '#'));
  EXPECT_THROW(ReadExperiment(large, false), Error);
  const auto small = folder.Write("small.toml", PartOf("account"));
  EXPECT_EQ(ReadExperiment(small, false).name, "small");
}

}  // namespace
}  // namespace sordino
