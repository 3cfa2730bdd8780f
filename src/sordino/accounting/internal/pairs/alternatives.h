// Which releases one record can meet: parallel events resolved.
//
// A record lives in one part of a parallel event, so a parallel event is a choice of one part. In a
// composition every copy of it is a choice of its own, and the parts may be cut after a look at
// what was released before: the choice is adaptive, and the worst of all fixed choices is below
// what an adaptive one gives away. So each copy becomes a slot that may hold the release of any
// part. Its profile is the largest of the parts' profiles at every epsilon (envelope.h), a pair
// that dominates the slot whatever happened before, and pairs that dominate compose. A parallel
// event that stands alone is chosen once and before anything was released: there the worst part
// counts.
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

// A parallel event of a composition, `count` times: each time one of the parts.
struct PartChoice {
  std::vector<Slots> upper;
  std::vector<Slots> lower;  // no slot has several options
  std::uint64_t count = 1;
};

struct AlternativeSlots {
  std::vector<Slots> upper;  // together they cover everything that one record can meet
  std::vector<Slots> lower;  // each of them can happen; no slot has several options
  // A composition with parallel events once more: the other releases, and the choices.
  Slots others;
  std::vector<PartChoice> choices;
};

// Throws Error where counts leave the range of 64 bits.
AlternativeSlots AlternativesOf(const Event& event);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_INTERNAL_ALTERNATIVES_H_
