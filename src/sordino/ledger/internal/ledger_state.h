// What an open ledger holds: the database, the entries that were read, and what follows from them.
#ifndef SORDINO_LEDGER_INTERNAL_LEDGER_STATE_H_
#define SORDINO_LEDGER_INTERNAL_LEDGER_STATE_H_

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sordino/ledger/internal/database.h"
#include "sordino/ledger/internal/witness.h"
#include "sordino/ledger/ledger.h"

namespace sordino {

// Where the heads of ledgers are remembered; empty: nowhere.
std::filesystem::path WitnessFolder(const LedgerOptions& options);

struct Ledger::State {
  State(const std::filesystem::path& file, internal::Database::Mode mode,
        LedgerOptions the_options);

  std::string Name() const;
  [[noreturn]] void Damaged(const std::string& what) const;
  void CheckPlace();
  // Before anything is written: an older copy, or a witness that could not remember this one, is
  // refused.
  void CheckWitness();
  void Remember();
  // Inside a transaction: what was written since, checked.
  void Load();
  void LoadRows();
  void Apply(const Entry& entry);
  // Inside a transaction. Number, time where there is none, and hashes are filled in.
  void Append(Entry entry);
  std::int64_t Now() const;
  // Runs `write` in a transaction and makes it durable if it says true. Whatever goes wrong in it
  // leaves the ledger used up.
  bool Commit(const std::function<bool()>& write);

  LedgerOptions options;
  std::filesystem::path path;
  internal::Database database;
  BudgetDetail detail;
  std::optional<BudgetFilter> filter;
  std::optional<Witness> witness;
  std::vector<Entry> entries;
  pid_t process = getpid();
  bool is_broken = false;
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_INTERNAL_LEDGER_STATE_H_
