#include "sordino/base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <string>
#include <thread>

namespace sordino {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Progress, DrawsABarOnATerminal) {
  std::ostringstream out;
  {
    Progress progress("reading", 10, out, Progress::Style::kBar);
    progress.Update(10, "epsilon 0.5");
  }
  EXPECT_THAT(out.str(), HasSubstr("\rreading [==============================] 100%"));
  EXPECT_THAT(out.str(), HasSubstr("epsilon 0.5"));
  EXPECT_THAT(out.str(), EndsWith("\n"));
}

TEST(Progress, WritesPlainLinesElsewhere) {
  std::ostringstream out;
  {
    Progress progress("reading", 4, out, Progress::Style::kLines);
    progress.Update(2);
  }
  EXPECT_THAT(out.str(), HasSubstr("reading: 50%"));
  EXPECT_THAT(out.str(), Not(HasSubstr("\r")));
}

TEST(Progress, ShowsNoCount) {
  for (const Progress::Style style : {Progress::Style::kBar, Progress::Style::kLines}) {
    std::ostringstream out;
    {
      Progress progress("reading", 6001, out, style);
      progress.Update(3001);
    }
    EXPECT_THAT(out.str(), AllOf(Not(HasSubstr("6001")), Not(HasSubstr("3001"))));
  }
}

TEST(Progress, ThousandsOfUpdatesDoNotFloodALog) {
  std::ostringstream out;
  Progress progress("reading", 100000, out, Progress::Style::kLines);
  for (int i = 0; i < 100000; ++i) progress.Update(static_cast<std::uint64_t>(i));
  progress.Finish();
  EXPECT_LT(out.str().size(), 1000U);
}

TEST(Progress, SilentStyleWritesNothing) {
  std::ostringstream out;
  {
    Progress progress("reading", 4, out, Progress::Style::kSilent);
    progress.Update(4);
  }
  EXPECT_EQ(out.str(), "");
}

TEST(Progress, FinishIsIdempotent) {
  std::ostringstream out;
  Progress progress("reading", 14, out, Progress::Style::kLines);
  progress.Update(7);
  progress.Finish();
  const std::string once = out.str();
  progress.Finish();
  EXPECT_EQ(out.str(), once);
  EXPECT_THAT(once, HasSubstr("reading: 50%"));
}

TEST(Progress, TellsNoTimeBelowASecond) {
  for (const Progress::Style style : {Progress::Style::kBar, Progress::Style::kLines}) {
    for (const std::uint64_t total : {0, 10}) {
      std::ostringstream out;
      Progress progress("train", total, out, style);
      // The first update draws a bar only after a tenth of a second.
      std::this_thread::sleep_for(std::chrono::milliseconds(110));
      progress.Update(5);
      progress.Finish();
      EXPECT_THAT(out.str(), HasSubstr(", 0 s"));
      EXPECT_THAT(out.str(), Not(HasSubstr("ms")));
    }
  }
}

TEST(HumanDuration, ChoosesItsUnit) {
  EXPECT_EQ(HumanDuration(0), "0 s");
  EXPECT_EQ(HumanDuration(0.85), "850 ms");
  EXPECT_EQ(HumanDuration(12.2), "12 s");
  EXPECT_EQ(HumanDuration(200), "3 min 20 s");
  EXPECT_EQ(HumanDuration(7500), "2 h 5 min");
}

}  // namespace
}  // namespace sordino
