// How often each release of a ledger was made, and what they cost together.
//
// Releases are told apart by their text. A ledger of years may hold any number of different ones;
// Gaussian mechanisms compose in closed form (a sum of mu^2), so any number of those costs the time
// of one. Of others, the exact composition takes time for each.
#ifndef SORDINO_LEDGER_RELEASE_TALLY_H_
#define SORDINO_LEDGER_RELEASE_TALLY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino {

class ReleaseTally {
 public:
  void Add(const Event& event, std::uint64_t times = 1);
  // What was not added is not taken away.
  void Subtract(const Event& event, std::uint64_t times = 1);
  void Add(const ReleaseTally& other);

  // By the text of a release; nothing is there 0 times.
  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }
  std::uint64_t Releases() const;  // a release of several parts is one
  Event Total(Adjacency adjacency) const;

  // Certified epsilon of all of them and of failures, as if all had been fixed in advance. None
  // where there are so many different ones that it would take more than about a second, unless it
  // is asked for `exact`ly.
  std::optional<Interval> ComposedEpsilon(Adjacency adjacency, Delta delta, double failure,
                                          bool exact = false) const;

 private:
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_RELEASE_TALLY_H_
