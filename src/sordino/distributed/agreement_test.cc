#include "sordino/distributed/agreement.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/stop.h"
#include "sordino/distributed/testing/threads_communicator.h"

namespace sordino {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A group whose other rank says what it is told to.
class GroupWithWords : public ThreadsCommunicator {
 public:
  explicit GroupWithWords(std::string other)
      : ThreadsCommunicator(0, 2, place_), other_(std::move(other)) {}
  std::vector<std::string> AllGatherBytes(const std::string& bytes) override {
    return {bytes, other_};
  }

 private:
  MeetingPlace place_{2};
  std::string other_;
};

TEST(GatherWithStops, ARankThatWasAskedToStopStopsAll) {
  const StopGuard guard;
  GroupWithWords goes_on(std::string("\0b", 2));
  EXPECT_THAT(GatherWithStops(goes_on, "a"), ElementsAre("a", "b"));
  EXPECT_FALSE(StopGuard::Requested());
  GroupWithWords stops(static_cast<char>(SIGTERM) + std::string("b"));
  EXPECT_THAT(GatherWithStops(stops, "a"), ElementsAre("a", "b"));
  EXPECT_EQ(StopGuard::Signal(), SIGTERM);
  // From now on this rank tells it, too.
  GroupWithWords late(std::string("\0", 1));
  EXPECT_THAT(GatherWithStops(late, ""), ElementsAre("", ""));
}

// What each of the ranks says; empty where it agrees.
template <typename Items>
std::vector<std::string> Sentences(int ranks, const Items& items_of,
                                   double clock_of_last_rank = 1000) {
  std::vector<std::string> said(static_cast<std::size_t>(ranks));
  std::mutex mutex;
  RunRanks(ranks, [&](Communicator& communicator) {
    const int rank = communicator.Rank();
    try {
      // What a rank other than 0 has as salt does not count.
      internal::RequireAgreementAt(communicator, items_of(rank), std::to_string(rank),
                                   rank == ranks - 1 ? clock_of_last_rank : 1000);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      said[static_cast<std::size_t>(rank)] = error.what();
    }
  });
  return said;
}

std::vector<AgreedItem> Same(int /*rank*/) {
  return {{"settings", "a"}, {"data", std::string("x\0y", 3)}};
}

TEST(Agreement, IsSilentWhereAllRanksAreTheSame) {
  EXPECT_THAT(Sentences(4, Same), Each(""));
  EXPECT_THAT(Sentences(2, Same, 1060), Each(""));
}

TEST(Agreement, NamesTheRankAndTheItemOnEveryRankButNotTheValue) {
  const auto said = Sentences(4, [](int rank) {
    return std::vector<AgreedItem>{{"settings", "a"},
                                   {"data", rank == 2 ? "PRIVATE-7391" : "PRIVATE-7392"}};
  });
  EXPECT_THAT(said, Each(HasSubstr("rank 2 has other data than rank 0;")));
  EXPECT_THAT(said, Each(Not(HasSubstr("739"))));
}

TEST(Agreement, NamesRankZeroWhereItIsTheOddOne) {
  EXPECT_THAT(Sentences(3,
                        [](int rank) {
                          return std::vector<AgreedItem>{{"settings", rank == 0 ? "a" : "b"}};
                        }),
              Each(HasSubstr("rank 0 has other settings than all other ranks;")));
}

TEST(Agreement, AnotherNumberOfItemsIsADifference) {
  EXPECT_THAT(Sentences(2,
                        [](int rank) {
                          std::vector<AgreedItem> items = Same(rank);
                          if (rank == 1) items.pop_back();
                          return items;
                        })[0],
              HasSubstr("rank 1 has other settings than rank 0"));
}

TEST(Agreement, ValuesDoNotRunIntoTheirNames) {
  EXPECT_THAT(Sentences(2,
                        [](int rank) {
                          return rank == 0 ? std::vector<AgreedItem>{{"a", "bc"}}
                                           : std::vector<AgreedItem>{{"ab", "c"}};
                        }),
              Each(HasSubstr("rank 1 has other")));
}

TEST(Agreement, AClockThatIsWrongIsTold) {
  EXPECT_THAT(Sentences(3, Same, 1075),
              Each(HasSubstr("the clock of rank 2 is 75 s ahead of that of rank 0")));
  EXPECT_THAT(Sentences(3, Same, 900), Each(HasSubstr("is 100 s behind that of rank 0")));
}

// Two runs on the same data send different bytes.
TEST(Agreement, HashesAreSalted) {
  class Recorder : public Communicator {
   public:
    int Rank() const override { return 0; }
    int Size() const override { return 1; }
    void AllReduceSum(at::Tensor& /*values*/) override {}
    void ReduceScatterSum(const at::Tensor& /*values*/, at::Tensor& /*shard*/) override {}
    void AllGather(const at::Tensor& /*shard*/, at::Tensor& /*all*/) override {}
    std::string Broadcast(const std::string& bytes) override { return bytes; }
    std::vector<std::string> AllGatherBytes(const std::string& bytes) override {
      sent.push_back(bytes);
      return {bytes};
    }
    void Barrier() override {}
    std::vector<std::string> sent;
  } recorder;
  internal::RequireAgreementAt(recorder, Same(0), "one", 5);
  internal::RequireAgreementAt(recorder, Same(0), "two", 5);
  internal::RequireAgreementAt(recorder, Same(0), "one", 5);
  EXPECT_NE(recorder.sent[0], recorder.sent[1]);
  EXPECT_EQ(recorder.sent[0], recorder.sent[2]);
}

}  // namespace
}  // namespace sordino
