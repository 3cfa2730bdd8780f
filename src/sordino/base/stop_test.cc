#include "sordino/base/stop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace sordino {
namespace {

TEST(StopGuard, TurnsTheFirstSignalIntoAFlag) {
  const StopGuard guard;
  EXPECT_FALSE(StopGuard::Requested());
  std::raise(SIGINT);
  EXPECT_TRUE(StopGuard::Requested());
}

TEST(StopGuard, KnowsWhichSignalItWas) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const StopGuard guard;
    EXPECT_EQ(StopGuard::Signal(), 0);
    std::raise(signal);
    EXPECT_TRUE(StopGuard::Requested());
    EXPECT_EQ(StopGuard::Signal(), signal);
    EXPECT_EQ(Stopped("no more").signal(), signal);
  }
}

TEST(StopGuard, CountsTheFirstRequestWhoeverMadeIt) {
  const StopGuard guard;
  StopGuard::Request(SIGTERM);
  EXPECT_EQ(StopGuard::Signal(), SIGTERM);
  StopGuard::Request(SIGINT);
  std::raise(SIGHUP);  // within half a second
  EXPECT_EQ(StopGuard::Signal(), SIGTERM);
}

TEST(StopGuard, AHangUpThatNohupIgnoresStaysIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  {
    const StopGuard guard;
    std::raise(SIGHUP);
    EXPECT_FALSE(StopGuard::Requested());
  }
  std::signal(SIGHUP, SIG_DFL);
}

TEST(StopGuard, StartsAnewWithEachOutermostGuard) {
  {
    const StopGuard guard;
    std::raise(SIGTERM);
    const StopGuard nested;
    EXPECT_TRUE(StopGuard::Requested());
  }
  const StopGuard guard;
  EXPECT_FALSE(StopGuard::Requested());
}

TEST(StopGuardDeathTest, ASecondSignalEndsTheProcess) {
  EXPECT_EXIT(
      {
        const StopGuard guard;
        std::raise(SIGINT);
        std::this_thread::sleep_for(std::chrono::milliseconds(700));
        std::raise(SIGINT);
      },
      ::testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(StopGuard, OneRequestThatIsSentTwiceIsOne) {
  const StopGuard guard;
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  EXPECT_TRUE(StopGuard::Requested());
}

TEST(StopGuardDeathTest, GivesTheOldHandlerBack) {
  EXPECT_EXIT(
      {
        { const StopGuard guard; }
        std::raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace sordino
