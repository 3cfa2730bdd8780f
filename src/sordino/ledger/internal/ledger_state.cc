#include "sordino/ledger/internal/ledger_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/ledger/internal/entry_rows.h"
#include "sordino/ledger/internal/schema.h"

namespace sordino {
namespace {

using internal::Database;
using internal::Statement;
using internal::Transaction;

// Clocks of several machines, and a clock that is corrected, may differ by so much.
constexpr std::int64_t kClockTolerance = std::int64_t{5} * 60 * 1000;

std::int64_t SystemTime() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// SQLite takes an empty name for a database that is forgotten when it is closed.
const std::filesystem::path& NotEmpty(const std::filesystem::path& file) {
  if (file.empty()) throw Error("the name of the ledger is empty; give the path of its file.");
  return file;
}

std::chrono::milliseconds MemoryPatience(const LedgerOptions& options) {
  return std::chrono::milliseconds(options.memory_patience_ms);
}

bool CanRemember(const std::filesystem::path& folder) {
  try {
    CheckWitnessFolder(folder);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

std::filesystem::path WitnessFolder(const LedgerOptions& options) {
  return options.witness_folder.empty() ? DefaultWitnessFolder()
                                        : std::filesystem::absolute(options.witness_folder);
}

Ledger::State::State(const std::filesystem::path& file, Database::Mode mode,
                     LedgerOptions the_options)
    : options(std::move(the_options)),
      path(NotEmpty(file)),
      absolute(std::filesystem::absolute(file)),
      database(file, mode, options.vfs, options.patience_ms) {
  if (!options.clock) options.clock = SystemTime;
  if (options.witness != WitnessUse::kNone) options.witness_folder = WitnessFolder(options);
}

std::string Ledger::State::Name() const { return fmt::format("the ledger '{}'", path.string()); }

void Ledger::State::Damaged(const std::string& what) const {
  throw Error(fmt::format(
      "{} is damaged: {}; put back the newest copy that 'sordino ledger verify' accepts, and count "
      "everything that was released since as spent.",
      Name(), what));
}

// A file that was replaced or removed while it is open would take charges that nobody finds again.
// A second name of the file would have a second journal, and a crash under one name would take back
// what was charged under the other.
void Ledger::State::CheckPlace() {
  SORDINO_CHECK(getpid() == process, "a ledger does not go over to a forked child");
  std::error_code none;
  if (options.vfs.empty() && !options.read_only &&
      std::filesystem::hard_link_count(absolute, none) > 1 && !none) {
    throw Error(
        fmt::format("{} has a second name (a hard link); remove it, or make it a copy.", Name()));
  }
  if (database.HasMoved()) {
    throw Error(fmt::format(
        "{} was moved, removed or replaced while it was in use, so nothing more is released; put "
        "it back and start again.",
        Name()));
  }
  database.Forget();
}

void Ledger::State::FindWitness() {
  witness.reset();
  if (options.witness == WitnessUse::kNone) return;
  const std::filesystem::path& folder = options.witness_folder;
  if (options.read_only) {
    if (!folder.empty()) witness.emplace(folder, detail.ledger);
    return;
  }
  if (options.witness == WitnessUse::kWherePossible && !CanRemember(folder)) return;
  CheckWitnessFolder(folder);
  witness.emplace(folder, detail.ledger);
}

std::optional<Sighting> Ledger::State::CheckSighting() {
  if (!witness) return std::nullopt;
  std::optional<Sighting> last;
  try {
    last = witness->Last();
  } catch (const Error&) {
    if (!options.read_only) throw;
    witness.reset();  // who only looks needs no memory
  }
  if (!last) return std::nullopt;
  Statement same(database, "SELECT hash FROM entries WHERE number = ?");
  same.Bind(1, last->number);
  if (last->number <= head->number && same.Step() && same.Text(0) == last->hash) return last;
  throw Error(fmt::format(
      "{} is an older copy, or was written anew: this machine has seen its entry {}, which is not "
      "in it; put back the newest copy (docs/ledger.md says what to do if it is lost).",
      Name(), last->number));
}

void Ledger::State::RememberSince(const std::optional<Sighting>& last) {
  if (!witness || options.read_only) return;
  const Sighting now{.number = head->number, .hash = head->hash};
  if (last == now) return;
  const WitnessLock lock(witness->lock_file(), MemoryPatience(options));
  if (witness->Last() != last) return;
  Prepare(now);
  Confirm();
}

// The ledger of a run goes on where it cannot be remembered any more.
void Ledger::State::Prepare(const Sighting& seen) {
  try {
    witness->Prepare(seen);
  } catch (const std::runtime_error&) {
    if (options.witness == WitnessUse::kNeeded) throw;
    witness.reset();
  }
}

void Ledger::State::Confirm() {
  if (!witness) return;
  try {
    witness->Confirm();
  } catch (const std::runtime_error&) {
    if (options.witness == WitnessUse::kNeeded) throw;
    witness.reset();
  }
}

std::int64_t Ledger::State::Now() const {
  const std::int64_t now = options.clock();
  const std::int64_t last = head->time;
  if (now < last - kClockTolerance) {
    throw Error(
        fmt::format("the clock says {} and the last entry of {} is of {}; set the clock right, or, "
                    "if the entry is what is wrong, say so with 'sordino ledger note'.",
                    TimeText(now), Name(), TimeText(last)));
  }
  return std::max(now, last);
}

void Ledger::State::Append(Entry entry) {
  entry.number = head ? head->number + 1 : 0;
  entry.previous = head ? head->hash : std::string(kNoHash);
  if (entry.time == 0) entry.time = head ? Now() : options.clock();
  Apply(entry);
  if (entry.kind != EntryKind::kBudget && entry.kind != EntryKind::kRun) {
    entry.detail = WithSums(entry.detail, filter->sums());
  }
  entry.hash = EntryHash(entry);
  if (!internal::InsertEntry(database, entry)) Damaged("it does not take new entries");
  head = std::move(entry);
}

bool Ledger::State::Commit(const std::function<bool()>& write) {
  if (options.read_only) {
    throw Error(fmt::format("{} was opened to look at; nothing can be charged to it.", Name()));
  }
  if (is_broken) {
    throw std::runtime_error(fmt::format(
        "{} failed before and takes no further charge; nothing more is released.", Name()));
  }
  is_broken = true;
  CheckPlace();
  // Before the lock of the database, and until all is done: two copies of a ledger have two
  // databases and one memory.
  std::optional<WitnessLock> lock;
  const auto find_witness = [&] {
    FindWitness();
    if (witness) lock.emplace(witness->lock_file(), MemoryPatience(options));
  };
  const bool is_new = !head;
  if (!is_new) find_witness();
  Transaction transaction(database, Transaction::Kind::kWrite);
  if (!is_new) {
    Load();
    CheckSighting();
  }
  const std::optional<Entry> head_before = head;
  const std::optional<BudgetFilter> filter_before = filter;
  const auto forget = [&] {
    head = head_before;
    filter = filter_before;
  };
  try {
    if (!write()) {
      is_broken = false;
      return false;
    }
    if (is_new) find_witness();
    if (witness) Prepare({.number = head->number, .hash = head->hash});
    transaction.Commit();
  } catch (const Error&) {
    // A mistake, found before anything was written: the next charge may be right.
    forget();
    is_broken = false;
    throw;
  } catch (...) {
    forget();
    throw;
  }
  CheckPlace();
  Confirm();
  is_broken = false;
  return true;
}

}  // namespace sordino
