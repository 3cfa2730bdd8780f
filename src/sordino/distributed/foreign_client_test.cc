// Programs of this machine that reach the ports of ranks and do not have their secret.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "sordino/distributed/internal/connected_ranks.h"
#include "sordino/distributed/testing/hand_started_ranks.h"

namespace sordino {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr const char* kOwned = "\x1b]0;OWNED\x07\x1b[31mOWNED by another\nline";
constexpr const char* kNotARank = "a program that is not one of the 2 ranks has taken part";
internal::StorePointer ConnectTo(std::uint16_t port) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

// As often as ranks write their own, until they have gone.
void OverwriteAll(std::uint16_t port, std::size_t least_keys) {
  try {
    const internal::StorePointer store = ConnectTo(port);
    EXPECT_GE(store->listKeys().size(), least_keys);
    for (int i = 0; i < 50; ++i) {
      for (const std::string& key : store->listKeys()) store->set(key, std::string(kOwned));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  } catch (const std::exception&) {
    // The store has gone with them.
  }
}

std::string KeyThatEndsWith(c10d::Store& store, const std::string& end) {
  for (const std::string& key : store.listKeys()) {
    if (key.ends_with(end)) return key;
  }
  return "";
}

std::string PortOfRanks(pid_t rank) {
  std::ostringstream text;
  text << std::ifstream("/proc/" + std::to_string(rank) + "/environ").rdbuf();
  const std::string name = "MASTER_PORT=";
  const std::size_t begin = text.str().find(name) + name.size();
  return text.str().substr(begin, text.str().find('\0', begin) - begin);
}

pid_t FirstChild(pid_t parent) {
  const std::string id = std::to_string(parent);
  pid_t child = 0;
  std::ifstream("/proc/" + id + "/task/" + id + "/children") >> child;
  return child;
}

void ExpectOwnWords(const ProcessEnd& end, int code, const std::string& part) {
  EXPECT_EQ(end.code, code) << end.err;
  EXPECT_THAT(end.err, AllOf(HasSubstr(part), MatchesRegex("(lost|error): [^\n]+\\.\n")));
  for (const std::string& shown : {end.err, end.out}) {
    EXPECT_THAT(shown, AllOf(Not(HasSubstr("OWNED")), Not(HasSubstr("\x1b"))));
  }
}

TEST(ForeignClient, ThatOverwritesEverythingEndsTheRunWithoutItsWords) {
  Ranks ranks(2, {"signal"});
  ranks.process(0).WaitForOutput("ready");
  OverwriteAll(ranks.port(), 6);
  for (const ProcessEnd& end : ranks.Wait()) ExpectOwnWords(end, 4, kNotARank);
}

TEST(ForeignClient, ThatSaysThatARankIsLostIsNotBelieved) {
  Ranks ranks(2, {"signal"});
  ranks.process(0).WaitForOutput("ready");
  const internal::StorePointer store = ConnectTo(ranks.port());
  std::string key = KeyThatEndsWith(*store, "/beat/0");
  ASSERT_FALSE(key.empty());
  key.replace(key.rfind("beat/0"), 6, "loss");
  store->set(key, std::string(kOwned));
  for (const ProcessEnd& end : ranks.Wait()) ExpectOwnWords(end, 4, kNotARank);
}

TEST(ForeignClient, OfLocalRanksEndsThemWithoutItsWords) {
  const TestFolder folder;
  TestProcess parent({SORDINO_RANK_PROGRAM, "processes", "2", "signal"}, {},
                     folder.path() / "parent");
  parent.WaitForOutput("ready");
  const std::string port = PortOfRanks(FirstChild(parent.id()));
  OverwriteAll(static_cast<std::uint16_t>(std::stoi(port)), 6);
  ExpectOwnWords(parent.Wait(), 4, kNotARank);
}

// While rank 1 has not come yet.
TEST(ForeignClient, ThatClaimsARankIsRefusedByAll) {
  Ranks ranks(2, {"signal"}, {{1, {{"NOT_STARTED", ""}}}});
  const internal::StorePointer store = ConnectTo(ranks.port());
  store->wait({"sordino/0/hello/0"});
  for (const char* key : {"told", "joined", "hello/1"}) {
    store->set(std::string("sordino/0/") + key, std::string(kOwned));
  }
  ExpectOwnWords(ranks.process(0).Wait(), 2, "was not written with the join secret of this rank");
}

TEST(ForeignClient, ARankWithAnotherSecretIsRefusedByAll) {
  const std::string other = "the secret of the ranks of somebody else";
  const auto ends = Ranks(3, {"work"}, {{1, {{"SORDINO_JOIN_SECRET", other}}}}).Wait();
  for (const ProcessEnd& end : ends) {
    EXPECT_EQ(end.code, 2) << end.err;
    EXPECT_THAT(end.err, AllOf(HasSubstr("was not written with the join secret of this rank"),
                               Not(HasSubstr(other))));
  }
}

TEST(ForeignClient, ARankWithoutASecretIsRefused) {
  Ranks ranks(1, {"work"}, {{0, {{"WORLD_SIZE", "2"}, {"SORDINO_JOIN_SECRET", ""}}}});
  ExpectOwnWords(ranks.process(0).Wait(), 2, "SORDINO_JOIN_SECRET is not set");
  GroupOptions options;
  options.environment.size = 2;
  EXPECT_THROW(JoinGroup(options), Error);
}

// What each of two ranks says about joining, of which `forger` is where a rank should be, connected
// to the other one, and does not have the key of messages. They are threads.
std::vector<std::string> JoinWithForger(int forger) {
  const std::uint16_t port = FreePort();
  std::vector<std::string> said(2, "joined");
  const auto join = [&](int rank) {
    GroupOptions options;
    options.environment = {.rank = rank, .size = 2, .address = "127.0.0.1", .port = port};
    options.secret = "the secret of the ranks that tests start";
    options.version = "0.1.0";
    try {
      const internal::StorePointer store =
          internal::OpenGroupStore(options.environment, options.secret, options.join_timeout);
      const internal::Meeting meeting = internal::GatherRanks(store, options);
      const std::string secret = rank == forger ? "guessed" : options.secret;
      internal::ConnectRanks(internal::StoreOfGroup(store, meeting.nonce), options, meeting,
                             internal::MessageSeal(secret, meeting.nonce, 2));
    } catch (const CommunicationError& error) {
      said[static_cast<std::size_t>(rank)] = error.what();
    }
  };
  std::thread other(join, 1);
  join(0);
  other.join();
  return said;
}

TEST(ForeignClient, InThePlaceOfARankIsFoundBeforeAnythingIsSent) {
  for (const int forger : {0, 1}) {
    EXPECT_THAT(JoinWithForger(forger)[static_cast<std::size_t>(1 - forger)], HasSubstr(kNotARank));
  }
}

// Rank 1 hangs, and somebody puts back what it has said before.
TEST(ForeignClient, ThatRepeatsOldBeatsDoesNotHideALoss) {
  Ranks ranks(2, {"signal"});
  ranks.process(0).WaitForOutput("ready");
  const internal::StorePointer store = ConnectTo(ranks.port());
  const std::string key = KeyThatEndsWith(*store, "/beat/1");
  ASSERT_FALSE(key.empty());
  std::vector<std::vector<std::uint8_t>> recorded;
  while (recorded.size() < 3) {
    recorded.push_back(store->get(key));
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  }
  ::kill(ranks.process(1).id(), SIGSTOP);
  std::atomic<bool> has_ended = false;
  std::thread repeating([&] {
    try {
      for (std::size_t i = 0; !has_ended; ++i) {
        store->set(key, recorded[i % recorded.size()]);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
      }
    } catch (const std::exception&) {
      // Rank 0 has gone, and its store with it.
    }
  });
  const ProcessEnd end = ranks.process(0).Wait(std::chrono::seconds(60));
  has_ended = true;
  repeating.join();
  EXPECT_EQ(end.code, 4) << end.err;
  EXPECT_THAT(end.err, HasSubstr("rank 1 of 2 has not been heard of for 8 s"));
}

TEST(RanksOnTwoHosts, ComputeAsOnOne) {
  for (const ProcessEnd& end : Ranks(3, {"hosts", "1"}).Wait()) {
    EXPECT_EQ(end.code, 0) << end.err;
  }
}

}  // namespace
}  // namespace sordino
