// Ranks that a parent starts on this machine, and what becomes of them.
#include "sordino/distributed/local_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/distributed/testing/rank_processes.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class LocalRanksTest : public ::testing::Test {
 protected:
  TestProcess Start(std::vector<std::string> words) {
    words.insert(words.begin(), {SORDINO_RANK_PROGRAM, "processes"});
    return TestProcess(std::move(words), {}, folder_.path() / "parent");
  }

  TestFolder folder_;
};

// The children of a process that are there now.
std::set<pid_t> Children(pid_t parent) {
  std::set<pid_t> found;
  std::ifstream list("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children");
  pid_t child = 0;
  while (list >> child) found.insert(child);
  return found;
}

bool IsAlive(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(')');
  return end != std::string::npos && text.size() > end + 2 && text[end + 2] != 'Z';
}

// Until they are there, for at most five minutes.
std::set<pid_t> WaitForChildren(pid_t parent, std::size_t count) {
  std::set<pid_t> found;
  for (int i = 0; i < 30000 && found.size() < count; ++i) {
    found = Children(parent);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return found;
}

bool AllEnd(const std::set<pid_t>& processes) {
  for (int i = 0; i < 30000; ++i) {
    bool lives = false;
    for (const pid_t process : processes) lives = lives || IsAlive(process);
    if (!lives) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST_F(LocalRanksTest, AllComputeAndOnlyRankZeroSpeaks) {
  for (const char* count : {"2", "4", "16"}) {
    const ProcessEnd end = Start({count, "sums"}).Wait();
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(end.out, "rank 0 speaks\n");
    EXPECT_EQ(end.err, "");
  }
}

TEST_F(LocalRanksTest, ARankThatIsKilledIsOneSentence) {
  for (const char* which : {"0", "2"}) {
    const ProcessEnd end = Start({"3", "die", which}).Wait();
    EXPECT_EQ(end.code, 4);
    EXPECT_THAT(end.err, HasSubstr(std::string("rank ") + which + " of 3 was ended by signal 9;"));
    EXPECT_THAT(end.err, MatchesRegex("[^\n]+\n"));
    EXPECT_EQ(end.out, "");
  }
}

TEST_F(LocalRanksTest, ARankThatHangsIsOneSentence) {
  for (const char* which : {"0", "2"}) {
    const ProcessEnd end = Start({"3", "hang", which}).Wait();
    EXPECT_EQ(end.code, 4);
    EXPECT_THAT(end.err,
                HasSubstr(std::string("rank ") + which + " of 3 has not been heard of for 8 s;"));
    EXPECT_THAT(end.err, MatchesRegex("[^\n]+\n"));
  }
}

TEST_F(LocalRanksTest, ARankThatFailsGivesItsSentenceAndItsCode) {
  const ProcessEnd first = Start({"2", "throw", "0"}).Wait();
  EXPECT_EQ(first.code, 2);
  EXPECT_EQ(first.err, "error: the disk of this rank is full.\n");
  const ProcessEnd second = Start({"2", "exit", "1"}).Wait();
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("rank 1 of 2 ended with an error"));
}

TEST_F(LocalRanksTest, SignalsArePassedOn) {
  TestProcess parent = Start({"2", "signal"});
  const std::set<pid_t> children = WaitForChildren(parent.id(), 2);
  ASSERT_EQ(children.size(), 2U);
  parent.WaitForOutput("ready");
  ::kill(parent.id(), SIGTERM);
  const ProcessEnd end = parent.Wait();
  EXPECT_EQ(end.code, 128 + SIGTERM) << end.err;
  EXPECT_THAT(end.out, HasSubstr("all ranks were asked to stop"));
  EXPECT_TRUE(AllEnd(children));
}

// Ranks that have no way to stop at a step.
TEST_F(LocalRanksTest, ARequestThatEndsOneRankEndsAllAsOneToAllDoes) {
  for (const bool is_to_all : {false, true}) {
    TestProcess parent = Start({"3", "endless"});
    const std::set<pid_t> children = WaitForChildren(parent.id(), 3);
    ASSERT_EQ(children.size(), 3U);
    ::kill(is_to_all ? parent.id() : *children.rbegin(), SIGTERM);
    const ProcessEnd end = parent.Wait();
    EXPECT_EQ(end.code, 128 + SIGTERM) << end.err;
    EXPECT_TRUE(AllEnd(children));
  }
}

TEST_F(LocalRanksTest, AParentThatIsKilledLeavesNoRanks) {
  std::set<pid_t> children;
  {
    const TestProcess parent = Start({"4", "endless"});
    children = WaitForChildren(parent.id(), 4);
    ASSERT_EQ(children.size(), 4U);
  }
  EXPECT_TRUE(AllEnd(children));
}

}  // namespace
}  // namespace sordino
