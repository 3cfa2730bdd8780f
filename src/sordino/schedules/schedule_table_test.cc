#include "sordino/schedules/schedule_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/schedules/schedule.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string TableRefusal(const std::string& text) {
  try {
    ScheduleTable::Parse(text, "plan.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

class ScheduleFileTest : public testing::Test {
 protected:
  std::string Write(const std::string& text) const {
    std::string path = (folder_.path() / "schedule.csv").string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  std::string ScheduleRefusal(const std::string& text, const char* column) const {
    try {
      Schedule::Parse("file:" + Write(text), column);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  TestFolder folder_;
};

TEST(ScheduleTable, HoldsItsColumns) {
  const ScheduleTable table = ScheduleTable::Parse(
      "steps, clip ,noise,rate,learning-rate\n3,1,4,0.5,0\n\n1,0.5,2,1,0.1 # last\n", "plan.csv");
  EXPECT_THAT(*table.Counts(), ElementsAre(3, 1));
  EXPECT_THAT(*table.Column("noise"), ElementsAre(4, 2));
  EXPECT_THAT(*table.Column("clip"), ElementsAre(1, 0.5));
  EXPECT_THAT(*table.Column("rate"), ElementsAre(0.5, 1));
  EXPECT_THAT(*table.Column("learning-rate"), ElementsAre(0, 0.1));
  EXPECT_EQ(table.line(1), 4U);
  EXPECT_EQ(ScheduleTable::Parse("noise\n1\n", "x").Counts(), nullptr);
}

TEST(ScheduleTable, WhatIsWrittenIsReadToTheLastBit) {
  const std::vector<double> values = {1.0 / 3, 1e-300, 123456789.123456789, 0.1};
  const ScheduleTable table =
      ScheduleTable::Parse(ScheduleTableText("a plan", "noise", values), "plan.csv");
  EXPECT_EQ(*table.Column("noise"), values);
}

TEST(ScheduleTable, AHoleIsRefused) {
  EXPECT_THAT(TableRefusal("step,noise\n1,4\n3,4\n"),
              HasSubstr("line 3 of plan.csv: step 3 stands where step 2 belongs"));
  EXPECT_THAT(TableRefusal("step,noise\n0,4\n"), HasSubstr("step 1 belongs"));
  EXPECT_THAT(TableRefusal("step,noise\n1,4\n2,\n"),
              HasSubstr("line 3 of plan.csv: '' in column noise"));
  EXPECT_THAT(TableRefusal("noise,clip\n1\n"), HasSubstr("1 fields stand where"));
  EXPECT_THAT(TableRefusal("step,steps,noise\n1,1,4\n"), HasSubstr("leave out one"));
}

TEST(ScheduleTable, NumbersOutOfRangeAreRefused) {
  EXPECT_THAT(TableRefusal("noise\n1\n-4\n"), HasSubstr("line 3 of plan.csv: the noise"));
  EXPECT_THAT(TableRefusal("noise\n0\n"), HasSubstr("the noise"));
  EXPECT_THAT(TableRefusal("noise\nnan\n"), HasSubstr("not a finite number"));
  EXPECT_THAT(TableRefusal("noise\ninf\n"), HasSubstr("not a finite number"));
  EXPECT_THAT(TableRefusal("clip\n-1\n"), HasSubstr("the clipping norm"));
  EXPECT_THAT(TableRefusal("rate\n1.5\n"), HasSubstr("the sampling rate"));
  EXPECT_THAT(TableRefusal("learning-rate\n-1\n"), HasSubstr("the learning rate"));
}

TEST_F(ScheduleFileTest, EachScheduleTakesItsColumn) {
  const std::string text = "file:" + Write("noise,clip,steps\n4,1,2\n2,0.5,3\n");
  const Schedule noise = Schedule::Parse(text, "noise");
  const Schedule clip = Schedule::Parse(text, "clip");
  EXPECT_EQ(noise.Length(), 5);
  const double expected[] = {4, 4, 2, 2, 2};
  for (int step = 0; step < 5; ++step) {
    EXPECT_EQ(noise.Factor(step, 5), expected[step]) << step;
    EXPECT_EQ(clip.Factor(step, 5), expected[step] / 4) << step;
  }
  EXPECT_EQ(noise.ToString(), text);
  EXPECT_FALSE(noise.IsConstant());
}

TEST_F(ScheduleFileTest, IsForItsNumberOfStepsOnly) {
  const Schedule schedule = Schedule::Parse("file:" + Write("noise\n4\n2\n"));
  EXPECT_NO_THROW(schedule.CheckLength("noise", 2));
  for (const std::int64_t steps : {1, 3}) {
    EXPECT_THROW(schedule.CheckLength("noise", steps), Error) << steps;
  }
  EXPECT_NO_THROW(Schedule::Parse("linear:2").CheckLength("noise", 3));
}

TEST_F(ScheduleFileTest, FilesThatCannotBeUsedAreRefused) {
  EXPECT_THAT(ScheduleRefusal("noise\n4\n", "clip"), HasSubstr("no column 'clip'"));
  EXPECT_THAT(ScheduleRefusal("noise,steps\n4,0\n", "noise"), HasSubstr("has no step"));
  EXPECT_THAT(ScheduleRefusal("noise,steps\n4,9e15\n", "noise"), HasSubstr("more than"));
  EXPECT_THROW(Schedule::Parse("file:/no/such/file.csv"), Error);
}

TEST_F(ScheduleFileTest, TheFileOfATextCanBeExchanged) {
  EXPECT_EQ(Schedule::FileOf("warmup:3,file:a:b,c.csv"), "a:b,c.csv");
  EXPECT_EQ(Schedule::WithFile("warmup:3,file:a.csv", "/b.csv"), "warmup:3,file:/b.csv");
  EXPECT_EQ(Schedule::FileOf("linear:2"), std::nullopt);
  EXPECT_EQ(Schedule::WithFile("linear:2", "/b.csv"), "linear:2");
}

}  // namespace
}  // namespace sordino
