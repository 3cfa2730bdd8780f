// One line of a ledger.
//
// Entries are numbered from 0 without gaps. The first is the budget. Each holds the hash of the one
// before it, and its own hash is SHA-256 of all its fields, so a change, a gap or another order
// shows. The chain has no key: it finds accidents, damage and careless edits, not somebody who
// writes a whole new chain (internal/witness.h finds that too, where it has seen the old one).
#ifndef SORDINO_LEDGER_ENTRY_H_
#define SORDINO_LEDGER_ENTRY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sordino/ledger/budget.h"
#include "sordino/ledger/budget_filter.h"
#include "sordino/ledger/budget_sums.h"

namespace sordino {

enum class EntryKind : std::uint8_t {
  kBudget,  // number 0
  kRun,     // a run begins; event: its plan
  kCharge,  // event: what may be released from now on
  kReturn,  // event: what was charged and not released
  kNote,    // a remark for people
};
std::string_view EntryKindName(EntryKind kind);   // "budget", "run", "charge", ...
EntryKind ParseEntryKind(std::string_view name);  // the inverse; throws Error

struct Entry {
  std::int64_t number = 0;
  EntryKind kind = EntryKind::kNote;
  std::int64_t time = 0;      // milliseconds since 1970, UTC
  std::string run = {};       // 32 hex digits; empty: of no run
  std::string event = {};     // its text form; empty: none
  double failure = 0;         // probability of what is not in the event; of a run: in its plan
  std::string detail = {};    // JSON: see below
  std::string previous = {};  // hash of the entry before; 64 zeros for the first
  std::string hash = {};
};

// Of everything but `hash`, in hex.
std::string EntryHash(const Entry& entry);
inline constexpr std::string_view kNoHash =
    "0000000000000000000000000000000000000000000000000000000000000000";

// "2026-11-15 11:32:07 UTC".
std::string TimeText(std::int64_t milliseconds);

// Details. A budget's: its numbers and an identity of the ledger.
struct BudgetDetail {
  Budget budget = {};
  std::string ledger = {};  // 32 hex digits
};
std::string BudgetJson(const BudgetDetail& detail);
BudgetDetail ParseBudgetJson(std::string_view text);  // throws Error

// A run's: who and what it is, and how it counts.
struct RunDetail {
  std::string what = {};   // "train cnn-mnist on mnist", "release mean of age"
  std::string who = {};    // the user's name on the machine
  bool is_private = true;  // false: the noise came from a typed seed
  RunTerms terms = {};
};
std::string RunJson(const RunDetail& detail);
RunDetail ParseRunJson(std::string_view text);  // throws Error

// A charge's, a return's or a note's: words for people.
std::string TextJson(std::string_view text);
std::string ParseTextJson(std::string_view json);  // throws Error

// The same with the sums of the filter after the entry, so that whoever opens the ledger need not
// read what is before it. None: an entry of an older program, or sums of other rules, which are
// formed again.
std::string WithSums(std::string_view json, const BudgetSums& sums);
std::optional<BudgetSums> SumsOf(const Entry& entry);

}  // namespace sordino

#endif  // SORDINO_LEDGER_ENTRY_H_
