// How ranks meet in a store that others can write to. Ranks are threads, the store is in memory.
#include "sordino/distributed/internal/gathering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kForeign = "was not written with the join secret of this rank";

StorePointer NewInnerStore() { return c10::make_intrusive<c10d::HashStore>(); }

StorePointer Authentic(const StorePointer& inner, const std::string& secret = "secret") {
  return c10::make_intrusive<AuthenticatedStore>(inner, secret, "here:1");
}

std::vector<std::uint8_t> BytesOf(const std::string& text) { return {text.begin(), text.end()}; }

template <typename Read>
std::string WordsOf(const Read& read) {
  try {
    return read();
  } catch (const ForeignWords& foreign) {
    return foreign.what();
  }
}

TEST(AuthenticatedStore, ReturnsWhatWasWrittenWithTheSecret) {
  const StorePointer inner = NewInnerStore();
  const StorePointer store = Authentic(inner);
  store->set("a", std::string("one"));
  store->multiSet({"b", "c"}, {BytesOf("two"), BytesOf("")});
  EXPECT_EQ(store->clone()->get_to_str("a"), "one");
  EXPECT_EQ(store->multiGet({"b", "c"}), (std::vector{BytesOf("two"), BytesOf("")}));
  EXPECT_EQ(SetFirst(*store, "d", "first"), "first");
  EXPECT_EQ(SetFirst(*store, "d", "second"), "first");
  EXPECT_TRUE(store->check({"a", "b", "c", "d"}));
}

TEST(AuthenticatedStore, RefusesWhatWasNot) {
  const StorePointer inner = NewInnerStore();
  const StorePointer store = Authentic(inner);
  store->set("a", std::string("one"));
  const std::vector<std::uint8_t> kept = inner->get("a");
  const auto read = [&] { return store->get_to_str("a"); };
  for (std::size_t i = 0; i < 8 * kept.size(); ++i) {
    std::vector<std::uint8_t> changed = kept;
    changed[i / 8] = static_cast<std::uint8_t>(changed[i / 8] ^ (1U << (i % 8)));
    inner->set("a", changed);
    EXPECT_THAT(WordsOf(read), HasSubstr(kForeign)) << i;
  }
  for (const std::string& words :
       {std::string(), std::string("\x1b[31mOWNED"), std::string(100, 'x')}) {
    inner->set("a", words);
    EXPECT_THAT(WordsOf(read), AllOf(HasSubstr(kForeign), HasSubstr("here:1"),
                                     Not(HasSubstr("OWNED")), Not(HasSubstr("\x1b"))));
    EXPECT_THAT(WordsOf([&] {
                  store->multiGet({"a"});
                  return std::string("read");
                }),
                HasSubstr(kForeign));
    EXPECT_THAT(WordsOf([&] { return words.empty() ? kForeign : SetFirst(*store, "a", "two"); }),
                HasSubstr(kForeign));
  }
  // A right value of another key, and of another secret.
  inner->set("b", kept);
  EXPECT_THAT(WordsOf([&] { return store->get_to_str("b"); }), HasSubstr(kForeign));
  Authentic(inner, "guessed")->set("a", std::string("one"));
  EXPECT_THAT(WordsOf(read), HasSubstr(kForeign));
}

TEST(AuthenticatedStore, AValueOfAnotherGroupDoesNotFit) {
  const StorePointer inner = NewInnerStore();
  const StorePointer store = Authentic(inner);
  StoreOfGroup(store, "earlier")->set(kLossKey, std::string("a rank was lost."));
  inner->set("later/loss", inner->get("earlier/loss"));
  EXPECT_THAT(WordsOf([&] { return StoreOfGroup(store, "later")->get_to_str(kLossKey); }),
              HasSubstr(kForeign));
}

struct MetRank {
  std::string nonce;
  bool is_on_one_host = false;
  std::string sentence;  // of an Error
};

struct MeetingRank {
  std::string secret = "secret";
  std::string host = "host";
  std::string version = "1";
};

std::vector<MetRank> MeetIn(const StorePointer& inner, const std::vector<MeetingRank>& ranks) {
  std::vector<MetRank> met(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions options;
      options.environment.rank = static_cast<int>(rank);
      options.environment.size = static_cast<int>(ranks.size());
      options.environment.is_hosted = true;
      options.host = ranks[rank].host;
      options.version = ranks[rank].version;
      options.join_timeout = std::chrono::seconds(5);
      try {
        const Meeting meeting = GatherRanks(Authentic(inner, ranks[rank].secret), options);
        met[rank] = {
            .nonce = meeting.nonce, .is_on_one_host = meeting.is_on_one_host, .sentence = ""};
      } catch (const Error& error) {
        met[rank].sentence = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return met;
}

std::vector<std::string> SentencesOf(const std::vector<MetRank>& met) {
  std::vector<std::string> all;
  for (const MetRank& rank : met) all.push_back(rank.sentence);
  return all;
}

TEST(Gathering, GivesAllRanksTheSameNonceAndEachLaunchItsOwn) {
  const std::vector<MetRank> met = MeetIn(NewInnerStore(), {{}, {}, {}});
  EXPECT_THAT(SentencesOf(met), Each(""));
  EXPECT_EQ(met[0].nonce.size(), 64U);
  EXPECT_EQ(met[1].nonce, met[0].nonce);
  EXPECT_EQ(met[2].nonce, met[0].nonce);
  EXPECT_NE(MeetIn(NewInnerStore(), {{}, {}})[0].nonce, met[0].nonce);
}

TEST(Gathering, AnotherSecretIsToldByAllRanks) {
  const std::vector<MetRank> met =
      MeetIn(NewInnerStore(), {{}, {.secret = "guessed", .host = "host", .version = "1"}, {}});
  EXPECT_THAT(SentencesOf(met), Each(HasSubstr(kForeign)));
}

// What is sent unsealed, over NCCL, stays on one machine unless the network is trusted.
TEST(Gathering, AllRanksKnowWhetherTheyAreOnOneHost) {
  const MeetingRank elsewhere = {.secret = "secret", .host = "another", .version = "1"};
  GroupOptions options;
  for (const std::vector<MeetingRank>& ranks :
       {std::vector<MeetingRank>{{}, {}, elsewhere}, {elsewhere, {}, {}}, {{}, {}, {}}}) {
    const bool is_one = ranks[0].host == ranks[2].host;
    for (const MetRank& met : MeetIn(NewInnerStore(), ranks)) {
      EXPECT_EQ(met.sentence, "");
      const Meeting meeting = {.nonce = met.nonce, .is_on_one_host = met.is_on_one_host};
      options.trusts_network = false;
      EXPECT_EQ(MaySendUnsealed(meeting, options), is_one);
      options.trusts_network = true;
      EXPECT_TRUE(MaySendUnsealed(meeting, options));
    }
  }
  EXPECT_EQ(OwnHost(), OwnHost());
  EXPECT_EQ(OwnHost().size(), 16U);
}

TEST(Gathering, ARecordedAnswerOfAnEarlierLaunchIsRefused) {
  const StorePointer earlier = NewInnerStore();
  ASSERT_THAT(SentencesOf(MeetIn(earlier, {{}, {}})), Each(""));
  const StorePointer inner = NewInnerStore();
  inner->set("welcome/1", earlier->get("welcome/1"));
  const std::vector<MetRank> met = MeetIn(inner, {{}, {}});
  EXPECT_THAT(met[1].sentence, HasSubstr("an answer that was recorded in an earlier launch"));
}

TEST(Gathering, ARecordedHelloOfAnEarlierLaunchIsNotThatRank) {
  const StorePointer earlier = NewInnerStore();
  ASSERT_THAT(SentencesOf(MeetIn(earlier, {{}, {}})), Each(""));
  const StorePointer inner = NewInnerStore();
  inner->set("hello/1", earlier->get("hello/1"));
  EXPECT_NE(MeetIn(inner, {{}, {}})[1].sentence, "");
}

TEST(Gathering, WordsOfAnotherProcessAreEscaped) {
  const MeetingRank odd = {.secret = "secret", .host = "host", .version = "2\x1b[31m\xc2\x9b"};
  EXPECT_THAT(SentencesOf(MeetIn(NewInnerStore(), {{}, odd})),
              Each(AllOf(HasSubstr("rank 1 has version 2\\u001b[31m\\u009b and rank 0 has 1"),
                         Not(HasSubstr("\x1b")), Not(HasSubstr("\xc2")))));
}

TEST(Gathering, WhoHasTheStoreEndsTheGroupBeforeAndAfterItHasMet) {
  const StorePointer inner = NewInnerStore();
  EndGroup(Authentic(inner), "rank 1 of 2 has ended.");
  EXPECT_THAT(SentencesOf(MeetIn(inner, {{}, {}})), Each("rank 1 of 2 has ended."));
  const StorePointer other = NewInnerStore();
  const std::string nonce = MeetIn(other, {{}, {}})[0].nonce;
  EndGroup(Authentic(other), "rank 1 of 2 has ended.");
  EXPECT_EQ(StoreOfGroup(Authentic(other), nonce)->get_to_str(kLossKey), "rank 1 of 2 has ended.");
}

}  // namespace
}  // namespace sordino::internal
