#include "sordino/cli/schedule_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sordino/base/error.h"
#include "sordino/cli/command_test_support.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

std::string Composed(const std::string& text, const EventOptions& flags = {}) {
  const StepSequence sequence = ParseSchedule(text, "plan.csv", flags);
  return sequence.Prefix(sequence.TotalSteps()).ToString();
}

std::string Refusal(const std::string& text, const EventOptions& flags = {}) {
  try {
    ParseSchedule(text, "plan.csv", flags);
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(ScheduleFile, RefusesCorrelatedNoise) {
  EventOptions flags;
  flags.correlation = "banded:2";
  flags.steps = "4";
  EXPECT_THAT(Refusal("noise\n4\n2\n", flags), HasSubstr("equal steps"));
}

TEST(ScheduleFile, ColumnsComeInAnyOrderAndTheRestFromFlags) {
  EXPECT_EQ(Composed("steps,noise,rate\n10,4,0.5\n20,2,0.25\n"),
            "add-remove: compose(10*poisson(0.5, gaussian(4)), 20*poisson(0.25, gaussian(2)))");
  EventOptions flags;
  flags.rate = "0.5";
  flags.steps = "7";
  flags.sampling = "fixed";
  EXPECT_EQ(Composed("noise\n4\n2\n", flags),
            "add-remove: compose(7*fixed(0.5, gaussian(4)), 7*fixed(0.5, gaussian(2)))");
}

TEST(ScheduleFile, CommentsBlanksQuotesAndLineEndsOfOtherSystemsAreSkipped) {
  EXPECT_EQ(
      Composed("\xEF\xBB\xBF# a plan\r\n\r\n\"noise\" , \"count\"\r\n 4 , \"1e1\" # warm\r\n"),
      "add-remove: 10*gaussian(4)");
}

TEST(ScheduleFile, ClipDoesNotChangeTheEvent) {
  EXPECT_EQ(Composed("noise,clip\n4,1\n4,0.1\n"), "add-remove: 2*gaussian(4)");
}

TEST(ScheduleFile, EqualStepsAreMergedWhereverTheyStand) {
  EXPECT_EQ(Composed("noise\n4\n2\n4\n"), "add-remove: compose(2*gaussian(4), gaussian(2))");
}

TEST(ScheduleFile, PrefixStopsInsideAPhase) {
  const StepSequence sequence = ParseSchedule("noise,steps\n4,10\n2,10\n", "plan.csv", {});
  EXPECT_EQ(sequence.TotalSteps(), 20U);
  EXPECT_EQ(sequence.Prefix(3).ToString(), "add-remove: 3*gaussian(4)");
  EXPECT_EQ(sequence.Prefix(12).ToString(), "add-remove: compose(10*gaussian(4), 2*gaussian(2))");
  EXPECT_EQ(sequence.Prefix(0).ToString(), "add-remove: none");
}

TEST(ScheduleFile, MistakesNameTheLine) {
  EXPECT_THAT(Refusal("noise\n4\n\n# x\nmuch\n"),
              HasSubstr("line 5 of plan.csv: 'much' in column noise"));
  EXPECT_THAT(Refusal("noise,rate\n4,0.1\n4\n"), HasSubstr("line 3 of plan.csv: 1 fields"));
  EXPECT_THAT(Refusal("noise,rate\n4,1.5\n"), HasSubstr("line 2 of plan.csv: the sampling rate"));
  EXPECT_THAT(Refusal("noise\n-4\n"), HasSubstr("line 2 of plan.csv: the noise multiplier"));
  EXPECT_THAT(Refusal("noise,clip\n4,0\n"), HasSubstr("line 2 of plan.csv: the clipping norm"));
  EXPECT_THAT(Refusal("noise,steps\n4,2.5\n"), HasSubstr("whole number"));
  EXPECT_THAT(Refusal("noise,\n4,\n"), HasSubstr("line 1 of plan.csv"));
}

TEST(ScheduleFile, HeadersThatSayTooMuchOrTooLittleAreRefused) {
  EXPECT_THAT(Refusal("nois\n4\n"), HasSubstr("did you mean 'noise'?"));
  EXPECT_THAT(Refusal("noise,noise\n4,4\n"), HasSubstr("twice"));
  EXPECT_THAT(Refusal("noise,steps,count\n4,4,4\n"), HasSubstr("twice"));
  EXPECT_THAT(Refusal("rate\n0.1\n"), HasSubstr("--noise"));
  EXPECT_THAT(Refusal(""), HasSubstr("empty"));
  EXPECT_THAT(Refusal("noise\n"), HasSubstr("no steps"));
  EventOptions flags;
  flags.noise = "4";
  EXPECT_THAT(Refusal("noise\n4\n", flags), HasSubstr("--noise was given"));
}

TEST(ScheduleFile, StepsThatOverflowAreRefused) {
  const StepSequence sequence = ParseSchedule("noise,steps\n4,9e15\n4,9e15\n", "plan.csv", {});
  EXPECT_THROW(sequence.TotalSteps(), Error);
}

TEST(ScheduleFile, IsReadFromDisk) {
  const std::string path = WriteTestFile("plan.csv", "noise,steps\n4,10\n");
  const StepSequence sequence = ReadSchedule(path, {});
  EXPECT_EQ(sequence.Prefix(10).ToString(), "add-remove: 10*gaussian(4)");
}

}  // namespace
}  // namespace sordino
