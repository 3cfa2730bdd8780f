// Groups of real processes, of which some fail. What happens to them is in testing/rank_program.cc.
#include "sordino/distributed/process_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "sordino/distributed/internal/listening_socket.h"
#include "sordino/distributed/testing/hand_started_ranks.h"
#include "sordino/distributed/testing/tcp_proxy.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// A minute, as is promised, with as much again for a busy machine.
constexpr double kSoon = 120;
constexpr int kKilled = 128 + SIGKILL;

void ExpectSentence(const ProcessEnd& end, int code, const std::string& part) {
  EXPECT_EQ(end.code, code) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr(part), MatchesRegex("(lost|error): [^\n]+\\.\n")));
  EXPECT_LT(end.seconds, kSoon);
}

class ProcessGroups : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasProcessGroups()) GTEST_SKIP() << "this libtorch has no process groups";
  }
};

class SizesOfGroups : public ProcessGroups, public ::testing::WithParamInterface<int> {};

TEST_P(SizesOfGroups, SumGatherAndBroadcastAsOneProcessWould) {
  for (const ProcessEnd& end : Ranks(GetParam(), {"sums"}).Wait()) {
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(end.err, "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, SizesOfGroups, ::testing::Values(2, 3, 4, 16));

TEST_F(ProcessGroups, ARankThatIsKilledEndsTheOthersWithItsNumber) {
  const auto ends = Ranks(3, {"die", "2"}).Wait();
  EXPECT_EQ(ends[2].code, kKilled);
  for (int rank = 0; rank < 2; ++rank) {
    ExpectSentence(ends[static_cast<std::size_t>(rank)], 4,
                   "rank 2 of 3 has not been heard of for 8 s; the run ends here");
  }
}

TEST_F(ProcessGroups, RankZeroThatIsKilledEndsTheOthers) {
  const auto ends = Ranks(3, {"die", "0"}).Wait();
  EXPECT_EQ(ends[0].code, kKilled);
  ExpectSentence(ends[1], 4, "rank 1 of 3 has lost the connection to rank 0 at 127.0.0.1:");
  ExpectSentence(ends[2], 4, "rank 2 of 3 has lost the connection to rank 0 at 127.0.0.1:");
}

TEST_F(ProcessGroups, ARankThatHangsEndsTheOthers) {
  for (const char* which : {"1", "0"}) {
    Ranks ranks(2, {"hang", which});
    const bool first_hangs = which[0] == '0';
    ExpectSentence(ranks.process(first_hangs ? 1 : 0).Wait(), 4,
                   first_hangs ? "has lost the connection to rank 0"
                               : "rank 1 of 2 has not been heard of for 8 s");
  }
}

TEST_F(ProcessGroups, ARankThatFailsEndsTheOthersAtOnce) {
  const auto ends = Ranks(3, {"throw", "1"}).Wait();
  ExpectSentence(ends[1], 2, "the disk of this rank is full.");
  ExpectSentence(ends[0], 4, "rank 1 of 3 ended with an error, which it reports itself");
  ExpectSentence(ends[2], 4, "rank 1 of 3 ended with an error, which it reports itself");
}

TEST_F(ProcessGroups, AnOperationThatAllAreInAndNobodyLeavesEndsThem) {
  for (const ProcessEnd& end : Ranks(2, {"stall", "1"}).Wait()) {
    ExpectSentence(end, 4, "nothing has come through between the 2 ranks for 6 s");
  }
}

TEST_F(ProcessGroups, ARankThatComputesForLongIsNotLost) {
  for (const ProcessEnd& end : Ranks(2, {"compute", "1"}).Wait()) {
    EXPECT_EQ(end.code, 0) << end.err;
  }
}

TEST_F(ProcessGroups, AMissingRankIsNamed) {
  for (const ProcessEnd& end : Ranks(4, {"missing"}, {{2, {{"NOT_STARTED", ""}}}}).Wait()) {
    ExpectSentence(end, 4, "rank 2 of 4 did not join within 3 s; start all ranks");
  }
}

TEST_F(ProcessGroups, AMissingRankZeroIsTold) {
  ExpectSentence(Ranks(2, {"missing"}, {{0, {{"NOT_STARTED", ""}}}}).Wait()[0], 4,
                 "rank 1 of 2 could not reach rank 0 at 127.0.0.1:");
}

TEST_F(ProcessGroups, AnotherWorldSizeIsToldByAll) {
  for (const ProcessEnd& end : Ranks(2, {"work"}, {{1, {{"WORLD_SIZE", "3"}}}}).Wait()) {
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.err,
                AnyOf(HasSubstr("rank 1 has WORLD_SIZE 3 and rank 0 has 2; start all ranks"),
                      HasSubstr("rank 0 has WORLD_SIZE 2 and rank 1 has 3; start all ranks")));
  }
}

TEST_F(ProcessGroups, ARankThatIsThereTwiceIsToldByAll) {
  for (const ProcessEnd& end : Ranks(3, {"work"}, {{2, {{"RANK", "1"}}}}).Wait()) {
    ExpectSentence(end, 2, "two processes are rank 1 of 3; give each its own RANK");
  }
}

TEST_F(ProcessGroups, AnotherVersionIsToldByAll) {
  for (const ProcessEnd& end : Ranks(3, {"version", "2"}).Wait()) {
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.err, AllOf(HasSubstr("version 0."), HasSubstr("rank 2"), HasSubstr("0.1.0"),
                               HasSubstr("0.0.1")));
  }
}

TEST_F(ProcessGroups, OtherDataAreToldByAllAndNotShown) {
  for (const ProcessEnd& end : Ranks(3, {"agree", "2"}).Wait()) {
    ExpectSentence(end, 2, "rank 2 has other data than rank 0; start all ranks");
    EXPECT_THAT(end.err, ::testing::Not(HasSubstr("739")));
  }
}

// Rank 1 reaches rank 0's store through a network that fails.
TEST_F(ProcessGroups, ANetworkThatDropsOrClosesEndsBothSides) {
  for (const NetworkFailure failure : {NetworkFailure::kDrops, NetworkFailure::kCloses}) {
    const std::uint16_t port = internal::ListeningSocket("127.0.0.1", 0).port();
    TcpProxy proxy(port);
    Ranks ranks(2, {"signal"},
                {{0, {{"MASTER_PORT", std::to_string(port)}}},
                 {1, {{"MASTER_PORT", std::to_string(proxy.port())}}}});
    ranks.process(0).WaitForOutput("ready");
    proxy.Fail(failure);
    const auto ends = ranks.Wait();
    ExpectSentence(ends[0], 4, "rank 1 of 2 has not been heard of for 8 s");
    ExpectSentence(ends[1], 4, "rank 1 of 2 has lost the connection to rank 0 at 127.0.0.1:");
  }
}

TEST_F(ProcessGroups, ASignalToOneRankStopsAllAtTheSameStep) {
  for (const std::size_t which : {std::size_t{2}, std::size_t{0}}) {
    Ranks ranks(3, {"signal"});
    ranks.process(0).WaitForOutput("ready");
    ::kill(ranks.process(which).id(), SIGTERM);
    for (const ProcessEnd& end : ranks.Wait()) EXPECT_EQ(end.code, 128 + SIGTERM) << end.err;
  }
}

TEST_F(ProcessGroups, APortInUseIsTold) {
  const internal::ListeningSocket taken("127.0.0.1", 0);
  const RankVariables port = {{"MASTER_PORT", std::to_string(taken.port())}};
  // Rank 1 would wait for a program that does not answer.
  const auto ends = Ranks(2, {"missing"}, {{0, port}, {1, port}}).Wait();
  ExpectSentence(ends[0], 2, "is in use by another program; set MASTER_PORT to a free one");
  ExpectSentence(ends[1], 4, "rank 1 of 2");
}

}  // namespace
}  // namespace sordino
