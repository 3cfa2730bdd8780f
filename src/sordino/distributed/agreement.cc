#include "sordino/distributed/agreement.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "sordino/base/sha256.h"
#include "sordino/base/stop.h"

namespace sordino {
namespace {

constexpr std::size_t kHexDigits = 64;

// The clock, and the salted hash of each item.
std::string Testimony(const std::vector<AgreedItem>& items, const std::string& salt, double clock) {
  std::string text = fmt::format("{:.3f}\n", clock);
  for (const AgreedItem& item : items) {
    // Lengths keep the parts apart; the inner hash keeps a large value from being copied.
    text += Sha256Hex(fmt::format("{}:{}{}:{}{}", salt.size(), salt, item.name.size(), item.name,
                                  Sha256Hex(item.value)));
  }
  return text;
}

std::string HashesOf(const std::string& testimony) {
  return testimony.substr(testimony.find('\n') + 1);
}

// The one that differs from rank 0; where all others differ from it, and not from each other, rank
// 0 is the odd one.
std::string DifferenceSentence(const std::vector<std::string>& words, std::size_t differing,
                               const std::string& name) {
  bool others_agree = words.size() > 2;
  for (std::size_t i = 2; i < words.size(); ++i)
    others_agree = others_agree && words[i] == words[1];
  return fmt::format(
      "rank {} has other {} than {}; start all ranks with the same settings and the "
      "same files.",
      others_agree ? 0 : differing, name, others_agree ? "all other ranks" : "rank 0");
}

}  // namespace

namespace internal {

void RequireAgreementAt(Communicator& communicator, const std::vector<AgreedItem>& items,
                        const std::string& salt, double clock) {
  const std::string shared = communicator.Broadcast(salt);
  const std::vector<std::string> all = communicator.AllGatherBytes(Testimony(items, shared, clock));
  for (std::size_t item = 0; item < items.size(); ++item) {
    std::vector<std::string> words;
    for (const std::string& one : all) {
      const std::string hashes = HashesOf(one);
      words.push_back(hashes.size() == items.size() * kHexDigits
                          ? hashes.substr(item * kHexDigits, kHexDigits)
                          : "");
    }
    for (std::size_t rank = 1; rank < words.size(); ++rank) {
      if (words[rank] == words[0]) continue;
      throw Error(DifferenceSentence(words, rank, items[item].name));
    }
  }
  const double first = std::strtod(all[0].c_str(), nullptr);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    const double difference = std::strtod(all[rank].c_str(), nullptr) - first;
    if (std::abs(difference) <= static_cast<double>(kMaxClockDifference.count())) continue;
    throw Error(
        fmt::format("the clock of rank {} is {:.0f} s {} that of rank 0; at most {} s are "
                    "allowed: set the clocks of the machines.",
                    rank, std::abs(difference), difference > 0 ? "ahead of" : "behind",
                    kMaxClockDifference.count()));
  }
}

}  // namespace internal

std::vector<std::string> GatherWithStops(Communicator& communicator, const std::string& said,
                                         bool* stop) {
  std::vector<std::string> all =
      communicator.AllGatherBytes(static_cast<char>(StopGuard::Signal()) + said);
  for (std::string& one : all) {
    if (one.empty()) continue;
    if (one.front() != '\0') {
      StopGuard::Request(one.front());
      if (stop != nullptr) *stop = true;
    }
    one.erase(0, 1);
  }
  return all;
}

bool AgreeToStop(Communicator& communicator) {
  bool stop = false;
  GatherWithStops(communicator, "", &stop);
  return stop;
}

void RequireAgreement(Communicator& communicator, const std::vector<AgreedItem>& items,
                      const std::string& salt) {
  // So that all ranks look at their clocks at the same time.
  communicator.Barrier();
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  internal::RequireAgreementAt(communicator, items, salt, now.count());
}

}  // namespace sordino
