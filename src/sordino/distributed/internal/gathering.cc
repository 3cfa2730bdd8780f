#include "sordino/distributed/internal/gathering.h"

#include <fmt/format.h>

#include <string>
#include <thread>
#include <vector>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kLook(50);
constexpr const char* kVerdictKey = "verdict";
constexpr const char* kAllAreThere = "go";
// What rank 0 finds is told by all, so others wait a little longer than it does.
constexpr milliseconds kAnswer(5000);
constexpr milliseconds kLate(20000);
constexpr int kNamedRanks = 8;

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
  store.add("told", 1);
  LetOthersRead(store, options, IsContradiction(verdict));
  if (IsContradiction(verdict)) throw Error(verdict.substr(1));
  throw CommunicationError(verdict);
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
    if (!store.check({BeatKey(rank)})) missing.push_back(rank);
  }
  return fmt::format(
      "{} {} of {} did not join within {} s; start all ranks, with the same WORLD_SIZE, "
      "MASTER_ADDR "
      "and MASTER_PORT, or give a longer --join-timeout.",
      missing.size() == 1 ? "rank" : "ranks", Ranks(missing), options.environment.size,
      options.join_timeout.count() / 1000);
}

// The words must be the same on all ranks: the first rank that comes writes them. Returns what is
// wrong.
std::string Difference(c10d::Store& store, const GroupOptions& options, const std::string& what,
                       const std::string& word) {
  const int rank = options.environment.rank;
  const std::string written = SetFirst(store, what, fmt::format("{} {}", rank, word));
  const std::size_t space = written.find(' ');
  const std::string theirs = written.substr(space + 1);
  if (theirs == word) return "";
  return fmt::format("!rank {} has {} {} and rank {} has {}; start all ranks with the same.", rank,
                     what, word, written.substr(0, space), theirs);
}

// What this rank alone can see to be wrong.
std::string Contradiction(c10d::Store& store, const GroupOptions& options) {
  const LaunchEnvironment& environment = options.environment;
  std::string found = Difference(store, options, "version", options.version);
  if (!found.empty()) return found;
  found = Difference(store, options, "WORLD_SIZE", fmt::format("{}", environment.size));
  if (!found.empty()) return found;
  if (store.add(fmt::format("claim/{}", environment.rank), 1) == 1) return "";
  return fmt::format(
      "!two processes are rank {} of {}; give each its own RANK, or each run its own MASTER_PORT.",
      environment.rank, environment.size);
}

// Returns what rank 0, or whoever was first, decided.
std::string WaitForVerdict(c10d::Store& store, const GroupOptions& options) {
  const bool decides = options.environment.rank == 0;
  const SteadyClock::time_point end =
      SteadyClock::now() + options.join_timeout + (decides ? milliseconds(0) : kAnswer);
  while (!store.check({kVerdictKey})) {
    if (store.check({kLossKey})) return store.get_to_str(kLossKey);
    if (decides && store.add("joined", 0) >= options.environment.size) {
      return SetFirst(store, kVerdictKey, kAllAreThere);
    }
    if (SteadyClock::now() > end) {
      return SetFirst(store, kVerdictKey, MissingSentence(store, options));
    }
    std::this_thread::sleep_for(kLook);
  }
  return store.get_to_str(kVerdictKey);
}

}  // namespace

void GatherRanks(c10d::Store& store, const GroupOptions& options) {
  const int rank = options.environment.rank;
  try {
    const std::string contradiction = Contradiction(store, options);
    if (contradiction.empty()) store.set(BeatKey(rank), std::string(kNoBeat));
    store.add("joined", 1);
    if (!contradiction.empty()) {
      EndWithVerdict(store, options, SetFirst(store, kVerdictKey, contradiction));
    }
    const std::string verdict = WaitForVerdict(store, options);
    if (verdict != kAllAreThere) EndWithVerdict(store, options, verdict);
  } catch (const c10::Error&) {
    throw CommunicationError(
        fmt::format("rank {} of {} lost the connection to rank 0 before all ranks had joined; what "
                    "rank 0 says tells why.",
                    rank, options.environment.size));
  }
}

}  // namespace sordino::internal
