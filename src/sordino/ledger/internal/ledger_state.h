// What an open ledger holds: the database, its last entry, and the sums of the filter there.
//
// Entries are not kept. Each holds the sums after it (entry.h), so a ledger is opened by reading
// its budget and its last entry, and a charge costs the same at any size. Short ledgers, and what
// others wrote since, are read and checked entry by entry; VerifyLedger does so with everything.
#ifndef SORDINO_LEDGER_INTERNAL_LEDGER_STATE_H_
#define SORDINO_LEDGER_INTERNAL_LEDGER_STATE_H_

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "sordino/ledger/internal/database.h"
#include "sordino/ledger/internal/witness.h"
#include "sordino/ledger/ledger.h"

namespace sordino {

// Where the heads of ledgers are remembered, absolute; empty: nowhere.
std::filesystem::path WitnessFolder(const LedgerOptions& options);

struct Ledger::State {
  State(const std::filesystem::path& file, internal::Database::Mode mode,
        LedgerOptions the_options);

  std::string Name() const;
  [[noreturn]] void Damaged(const std::string& what) const;
  void CheckPlace();
  // Where this ledger is remembered: throws Error where it must be and cannot.
  void FindWitness();
  // Inside a transaction: refuses an older copy. Returns what it was compared with.
  std::optional<Sighting> CheckSighting();
  // After Open, outside of any transaction: remembers what was seen, unless somebody else did
  // since.
  void RememberSince(const std::optional<Sighting>& last);

  // These are for the inside of a transaction. What was written since, checked.
  void Load();
  // The run may have begun before what this handle has read.
  void Recall(const std::string& run);
  // All entries up to the head, in the order of their numbers, each checked.
  void Visit(const std::function<void(const Entry&)>& look);
  // Number, time where there is none, sums and hashes are filled in.
  void Append(Entry entry);
  std::int64_t Now() const;
  // Runs `write` in a transaction and makes it durable, in the ledger and then in the memory
  // against older copies, if it says true. Whatever goes wrong in it leaves the ledger used up.
  bool Commit(const std::function<bool()>& write);

  LedgerOptions options;
  std::filesystem::path path;      // as it was given
  std::filesystem::path absolute;  // whatever folder the process goes to
  internal::Database database;
  BudgetDetail detail;
  std::optional<BudgetFilter> filter;
  std::optional<Witness> witness;
  std::optional<Entry> head;
  pid_t process = getpid();
  bool is_broken = false;

 private:
  void Prepare(const Sighting& seen);
  void Confirm();
  void LoadFirst();
  void LoadAfterHead();
  std::optional<Entry> LastWithSums(std::int64_t last);
  // Throws Error with what is wrong with the entry.
  void Apply(const Entry& entry);
  void CheckSums(const Entry& entry);
  // Runs `act` and says which entry its Error is about.
  void InEntry(std::int64_t number, const std::function<void()>& act) const;
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_INTERNAL_LEDGER_STATE_H_
