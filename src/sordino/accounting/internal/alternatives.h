// Which releases one record can meet: parallel events resolved.
//
// A record lives in one part of a parallel event, so a parallel event is a choice of one part. Two
// parallel events of a composition are two choices: nothing says that a record is in the same part
// twice, or that the parts were cut alike. n copies of a parallel event with k parts are thus
// C(n + k - 1, k - 1) alternatives, and the worst counts. Where these are few, each is an
// alternative of its own. Where they are many, each copy becomes a slot that may hold the release
// of any part; its profile is the largest of the parts' profiles at every epsilon (envelope.h).
#ifndef SORDINO_ACCOUNTING_INTERNAL_ALTERNATIVES_H_
#define SORDINO_ACCOUNTING_INTERNAL_ALTERNATIVES_H_

#include <cstdint>
#include <vector>

#include "sordino/accounting/event.h"

namespace sordino {

// One release, `count` times: any of the options, which are neither compositions nor parallel.
struct Slot {
  std::vector<Event> options;
  std::uint64_t count = 1;
};
using Slots = std::vector<Slot>;

struct AlternativeSlots {
  std::vector<Slots> upper;  // together they cover everything that one record can meet
  std::vector<Slots> lower;  // each of them can happen; no slot has several options
};

// Throws Error where counts leave the range of 64 bits.
AlternativeSlots AlternativesOf(const Event& event);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ALTERNATIVES_H_
