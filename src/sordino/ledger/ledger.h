// A dataset's budget and everything that was spent of it, in a file.
//
//   Ledger ledger = Ledger::Open("visits.db");
//   const Begun run = ledger.BeginRun({.what = "train", .plan = plan.event()}, {.event = first});
//   if (!run.verdict.admitted) return;  // nothing was written: release nothing
//   ...                                 // draw the noise of the first block
//   if (!ledger.Charge(run.id, {.event = next}).admitted) return;
//   ...                                 // on the disk: draw the noise of the next block
//
// The order is what makes it hold: a charge is on the disk before the call that made it returns,
// and nothing is released before. So whatever happens (kill -9, loss of power, a full disk, a
// failed sync, another process), what was released was charged; at worst something was charged that
// was never released. Only what is known not to be released may be returned.
//
// The file is an SQLite database with a rollback journal, synced in full (synchronous = EXTRA), so
// it may be copied and backed up while nobody writes. Writers exclude each other, and each looks at
// what the others wrote before it decides. Entries are never changed or removed (entry.h). Each
// holds the sums of the filter after it, so opening a ledger and charging it take the same time at
// any size: the budget and the last entry are read. What others wrote since, and all of a short
// ledger, is checked entry by entry; VerifyLedger checks everything.
//
// An old copy that was put back is found by the witness (internal/witness.h), by an open ledger
// that has seen more, and by whoever kept a hash (Contains).
//
// A mistake or a damaged file throws Error; a disk that fails, is full or stays locked throws
// std::runtime_error. After the latter the ledger is used up: every further charge throws too.
// A ledger belongs to one thread, and not to a forked child.
#ifndef SORDINO_LEDGER_LEDGER_H_
#define SORDINO_LEDGER_LEDGER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/ledger/budget.h"
#include "sordino/ledger/budget_filter.h"
#include "sordino/ledger/entry.h"
#include "sordino/ledger/release_tally.h"

namespace sordino {

// A ledger of more entries is summarised where it is shown, and what takes long is left out.
inline constexpr std::int64_t kLongLedger = 1000;

// Whether this machine remembers the head of a ledger, and refuses older copies of it.
enum class WitnessUse {
  kNeeded,         // what cannot be remembered is not charged
  kWherePossible,  // for the ledger of one run, in its folder
  kNone,
};

struct LedgerOptions {
  std::string vfs = {};  // SQLite's name of the file system; empty: that of the operating system
  // Where the heads of ledgers are remembered; empty: DefaultWitnessFolder(). Reading alone
  // leaves nothing there.
  std::filesystem::path witness_folder = {};
  WitnessUse witness = WitnessUse::kNeeded;
  std::function<std::int64_t()> clock = {};  // milliseconds since 1970; empty: the system's
  int patience_ms = 60'000;                  // how long to wait for another writer
  int memory_patience_ms = 15'000;           // and for one that holds the memory of heads
  bool read_only = false;                    // to look at: nothing can be charged
  bool read_whole = false;                   // every entry is checked, however many there are
};

struct LedgerCharge {
  Event event = Event::None();
  double failure = 0;      // accounting/failures.h
  std::string words = {};  // "steps 0 to 63"
};

struct RunDeclaration {
  std::string what = {};
  Event plan = Event::None();  // all that the run may release
  double failure = 0;          // of the whole plan
  ProtectedUnit unit = ProtectedUnit::kRecord;
  bool is_private = true;  // false for a run with a typed seed
  // What is released depends on what was: the run never counts whole (budget_filter.h).
  bool is_adaptive = false;
  // The run may count whole where nothing else admits its plan.
  bool may_count_whole = false;
};

// How a run would count if it began now.
RunTerms TermsOf(BudgetFilter& filter, const RunDeclaration& run);

struct Begun {
  Verdict verdict = {};
  std::string id = {};  // empty where the verdict is no
  RunTerms terms = {};
};

class Ledger {
 public:
  // Throws Error when the file holds a ledger, or anything else, already.
  static Ledger Create(const std::filesystem::path& file, const Budget& budget,
                       LedgerOptions options = {});
  static Ledger Open(const std::filesystem::path& file, LedgerOptions options = {});
  ~Ledger();
  Ledger(Ledger&&) noexcept;
  Ledger& operator=(Ledger&&) noexcept;

  // The run and its first charge become durable together, or neither is written. Throws Error for a
  // plan of another adjacency or unit than the budget's.
  Begun BeginRun(const RunDeclaration& run, const LedgerCharge& first);
  // What BeginRun would say of the whole plan, without writing.
  Begun Preview(const RunDeclaration& run);
  // Resumes a run that this process did not begin: throws Error where the ledger has no such
  // run, or has it with another plan. `plan` is the text of the event.
  RunTerms Rejoin(const std::string& run, const std::string& plan);
  // Durable when it returns an admission; unchanged when it returns a refusal.
  Verdict Charge(const std::string& run, const LedgerCharge& charge);
  void Return(const std::string& run, const LedgerCharge& unused);
  // A remark for people. A note is written whatever the clock says, and later entries are compared
  // with its time: this is how to recover from a wrong clock.
  void Note(const std::string& text);

  // Reads what others wrote since.
  void Refresh();
  const Entry& head() const;
  std::int64_t size() const { return head().number + 1; }
  // All entries up to the head, read and checked again: every hash, and that each follows the one
  // before.
  void Visit(const std::function<void(const Entry&)>& look) const;
  std::vector<Entry> entries() const;
  // Whether an entry of this hash is in the ledger.
  bool Contains(const std::string& hash) const;
  const Budget& budget() const;
  const std::string& id() const;  // of the ledger
  // It knows the runs of a short ledger, those that began here and those that were rejoined.
  BudgetFilter& filter();
  // All that was charged and not returned, and what of it counts (BudgetFilter::Counted).
  Event Total() const;
  Event Counted() const;
  const std::filesystem::path& file() const;
  // Whether older copies are refused on this machine.
  bool HasWitness() const;

  // Certified epsilon of all that counts together at the budget's delta, as if all of it had been
  // fixed in advance. Of a long ledger with too many different releases (release_tally.h), from 0
  // to what the filter guarantees.
  Interval ComposedEpsilon() const;

  // Runs whose noise came from a typed seed: whoever knows it knows what they were computed from.
  std::size_t SeededRuns() const;

 private:
  struct State;
  ReleaseTally CountedTally() const;
  explicit Ledger(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Everything that can be checked: the pages of the file, that it holds nothing else, the chain, the
// head, that every charge parses and belongs to a run, that returns were charged, that the kept
// sums are those of the charges, that times do not run back. Throws Error
// with the first thing that is wrong, and returns the number of entries.
std::int64_t VerifyLedger(const std::filesystem::path& file, LedgerOptions options = {});

}  // namespace sordino

#endif  // SORDINO_LEDGER_LEDGER_H_
