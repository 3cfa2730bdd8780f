#include "sordino/distributed/internal/gathering.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/sha256.h"
#include "sordino/base/shown_text.h"
#include "sordino/distributed/internal/message_seal.h"

namespace sordino::internal {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kLook(50);
constexpr const char* kVerdictKey = "verdict";
// What rank 0 finds is told by all, so others wait a little longer than it does.
constexpr milliseconds kAnswer(5000);
constexpr milliseconds kLate(20000);
constexpr int kNamedRanks = 8;

std::string HelloKey(int rank) { return fmt::format("hello/{}", rank); }
std::string WelcomeKey(int rank) { return fmt::format("welcome/{}", rank); }

struct Hello {
  std::string challenge;
  std::string size;
  std::string host;
  std::string version;
};

std::string TextOf(const Hello& hello) {
  return fmt::format("{} {} {} {}", hello.challenge, hello.size, hello.host, hello.version);
}

Hello ParseHello(const std::string& text) {
  Hello hello;
  std::istringstream words(text);
  words >> hello.challenge >> hello.size >> hello.host;
  std::getline(words >> std::ws, hello.version);
  return hello;
}

// A contradiction starts with '!', a missing rank does not.
bool IsContradiction(const std::string& verdict) { return verdict.starts_with('!'); }

// A rank 0 that has the store leaves when the others have read it. Those that start later than the
// ones which contradict each other read it too.
void LetOthersRead(c10d::Store& store, const GroupOptions& options, bool are_all_expected) {
  if (options.environment.rank != 0 || options.environment.is_hosted) return;
  const SteadyClock::time_point end = SteadyClock::now() + (are_all_expected ? kLate : kAnswer);
  while (SteadyClock::now() < end) {
    const std::int64_t expected =
        are_all_expected ? options.environment.size : store.add("joined", 0);
    if (store.add("told", 0) >= expected) return;
    std::this_thread::sleep_for(kLook);
  }
}

[[noreturn]] void EndWithVerdict(c10d::Store& store, const GroupOptions& options,
                                 const std::string& verdict) {
  try {
    store.add("told", 1);
    LetOthersRead(store, options, IsContradiction(verdict));
  } catch (const c10::Error&) {
    // The store has gone, or somebody has made the counter something else. What is known is said.
  }
  if (IsContradiction(verdict)) throw Error(ShownText(verdict.substr(1)));
  throw CommunicationError(ShownText(verdict));
}

// The others are told where they can be; they find it themselves where the secret is another one.
[[noreturn]] void EndForeign(c10d::Store& store, const GroupOptions& options,
                             const std::string& sentence) {
  std::string verdict = "!" + sentence;
  try {
    verdict = SetFirst(store, kVerdictKey, verdict);
  } catch (const ForeignWords&) {
    // So this rank says it alone.
  }
  EndWithVerdict(store, options, verdict);
}

std::string Ranks(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < kNamedRanks; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  }
  if (ranks.size() > kNamedRanks) text += fmt::format(" and {} more", ranks.size() - kNamedRanks);
  return text;
}

std::string MissingSentence(c10d::Store& store, const GroupOptions& options) {
  std::vector<int> missing;
  for (int rank = 0; rank < options.environment.size; ++rank) {
    if (!store.check({HelloKey(rank)})) missing.push_back(rank);
  }
  return fmt::format(
      "{} {} of {} did not join within {} s; start all ranks, with the same WORLD_SIZE, "
      "MASTER_ADDR "
      "and MASTER_PORT, or give a longer --join-timeout.",
      missing.size() == 1 ? "rank" : "ranks", Ranks(missing), options.environment.size,
      options.join_timeout.count() / 1000);
}

// What differs between two ranks that must be the same; empty where nothing does.
std::string Difference(int rank, const Hello& own, int other, const Hello& theirs) {
  for (const auto& [what, mine, their] :
       {std::array<std::string, 3>{"version", own.version, theirs.version},
        std::array<std::string, 3>{"WORLD_SIZE", own.size, theirs.size}}) {
    if (mine == their) continue;
    return fmt::format("!rank {} has {} {} and rank {} has {}; start all ranks with the same.",
                       rank, what, mine, other, their);
  }
  return "";
}

class Gathering {
 public:
  Gathering(const StorePointer& store, const GroupOptions& options)
      : pointer_(store),
        store_(*store),
        options_(options),
        rank_(options.environment.rank),
        size_(options.environment.size),
        own_{.challenge = RandomHex(),
             .size = fmt::format("{}", size_),
             .host = options.host.empty() ? OwnHost() : options.host,
             .version = options.version} {}

  Meeting Meet() {
    SayHello();
    const SteadyClock::time_point end =
        SteadyClock::now() + options_.join_timeout + (rank_ == 0 ? milliseconds(0) : kAnswer);
    while (true) {
      const std::optional<Meeting> meeting = rank_ == 0 ? WelcomeAll() : ReadWelcome();
      if (meeting) return *meeting;
      if (store_.check({kVerdictKey})) End(store_.get_to_str(kVerdictKey));
      if (SteadyClock::now() > end) Decide(MissingSentence(store_, options_));
      std::this_thread::sleep_for(kLook);
    }
  }

 private:
  [[noreturn]] void End(const std::string& verdict) { EndWithVerdict(store_, options_, verdict); }
  [[noreturn]] void Decide(const std::string& verdict) {
    End(SetFirst(store_, kVerdictKey, verdict));
  }

  void SayHello() {
    const std::string text = TextOf(own_);
    const std::string written = SetFirst(store_, HelloKey(rank_), text);
    store_.add("joined", 1);
    if (written == text) return;
    Decide(
        fmt::format("!two processes are rank {} of {}; give each its own RANK, or each run its own "
                    "MASTER_PORT.",
                    rank_, size_));
  }

  // Rank 0. Nothing where a rank is missing.
  std::optional<Meeting> WelcomeAll() {
    std::vector<std::string> names;
    for (int rank = 0; rank < size_; ++rank) names.push_back(HelloKey(rank));
    if (store_.check({kVerdictKey}) || !store_.check(names)) return std::nullopt;
    Meeting meeting = {.nonce = RandomHex(), .is_on_one_host = true};
    std::vector<Hello> hellos;
    for (const std::vector<std::uint8_t>& bytes : store_.multiGet(names)) {
      hellos.push_back(ParseHello({bytes.begin(), bytes.end()}));
    }
    for (int rank = 1; rank < size_; ++rank) {
      const Hello& theirs = hellos[static_cast<std::size_t>(rank)];
      const std::string difference = Difference(rank, theirs, 0, own_);
      if (!difference.empty()) Decide(difference);
      meeting.is_on_one_host = meeting.is_on_one_host && theirs.host == own_.host;
    }
    WriteFirstBeats(meeting.nonce);
    std::vector<std::vector<std::uint8_t>> answers;
    for (int rank = 0; rank < size_; ++rank) {
      names[static_cast<std::size_t>(rank)] = WelcomeKey(rank);
      const std::string answer =
          fmt::format("{} {} {}", hellos[static_cast<std::size_t>(rank)].challenge, meeting.nonce,
                      meeting.is_on_one_host ? "one-host" : "hosts");
      answers.emplace_back(answer.begin(), answer.end());
    }
    store_.multiSet(names, answers);
    return meeting;
  }

  // So that a rank that ends before its first one is missed like any other.
  void WriteFirstBeats(const std::string& nonce) {
    std::vector<std::string> names;
    for (int rank = 0; rank < size_; ++rank) names.push_back(BeatKey(rank));
    const std::string none = kNoBeat;
    StoreOfGroup(pointer_, nonce)->multiSet(names, {names.size(), {none.begin(), none.end()}});
  }

  // Others. Nothing where there is none yet.
  std::optional<Meeting> ReadWelcome() {
    if (!is_compared_ && store_.check({HelloKey(0)})) {
      is_compared_ = true;
      const std::string difference =
          Difference(rank_, own_, 0, ParseHello(store_.get_to_str(HelloKey(0))));
      if (!difference.empty()) Decide(difference);
    }
    if (!store_.check({WelcomeKey(rank_)})) return std::nullopt;
    std::istringstream words(store_.get_to_str(WelcomeKey(rank_)));
    std::string challenge;
    std::string hosts;
    Meeting meeting;
    words >> challenge >> meeting.nonce >> hosts;
    if (challenge != own_.challenge) {
      throw Error(fmt::format(
          "rank {} of {} got an answer that was recorded in an earlier launch; look for another "
          "program at {}:{}, and give each launch a secret of its own.",
          rank_, size_, options_.environment.address, options_.environment.port));
    }
    meeting.is_on_one_host = hosts == "one-host";
    return meeting;
  }

  const StorePointer pointer_;
  c10d::Store& store_;
  const GroupOptions& options_;
  const int rank_;
  const int size_;
  const Hello own_;
  bool is_compared_ = false;
};

}  // namespace

bool MaySendUnsealed(const Meeting& meeting, const GroupOptions& options) {
  return meeting.is_on_one_host || options.trusts_network;
}

std::string OwnHost() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 256> text{};
  std::string host = boot;
  if (::readlink("/proc/self/ns/net", text.data(), text.size() - 1) > 0) host += text.data();
  text.fill('\0');
  // Where there is no boot identity, the name has to do.
  if (boot.empty() && ::gethostname(text.data(), text.size() - 1) == 0) host += text.data();
  return Sha256Hex(host).substr(0, 16);
}

Meeting GatherRanks(const StorePointer& store, const GroupOptions& options) {
  try {
    try {
      return Gathering(store, options).Meet();
    } catch (const ForeignWords& foreign) {
      EndForeign(*store, options, foreign.what());
    }
  } catch (const c10::Error&) {
    throw CommunicationError(
        fmt::format("rank {} of {} lost the connection to rank 0 before all ranks had joined; the "
                    "message of rank 0 says why.",
                    options.environment.rank, options.environment.size));
  }
}

void EndGroup(const StorePointer& store, const std::string& sentence) {
  SetFirst(*store, kVerdictKey, sentence);
  if (!store->check({WelcomeKey(0)})) return;
  std::istringstream words(store->get_to_str(WelcomeKey(0)));
  std::string challenge;
  std::string nonce;
  words >> challenge >> nonce;
  SetFirst(*StoreOfGroup(store, nonce), kLossKey, sentence);
}

}  // namespace sordino::internal
