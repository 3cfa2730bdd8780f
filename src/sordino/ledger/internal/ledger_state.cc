#include "sordino/ledger/internal/ledger_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <stdexcept>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"

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
  return options.witness_folder.empty() ? DefaultWitnessFolder() : options.witness_folder;
}

Ledger::State::State(const std::filesystem::path& file, Database::Mode mode,
                     LedgerOptions the_options)
    : options(std::move(the_options)),
      path(NotEmpty(file)),
      database(file, mode, options.vfs, options.patience_ms) {
  if (!options.clock) options.clock = SystemTime;
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
      std::filesystem::hard_link_count(path, none) > 1 && !none) {
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

void Ledger::State::CheckWitness() {
  if (options.witness == WitnessUse::kNone) return;
  const std::filesystem::path folder = WitnessFolder(options);
  const bool may_forget = options.witness == WitnessUse::kWherePossible && !options.read_only;
  if (may_forget && !CanRemember(folder)) {
    witness.reset();
    return;
  }
  witness.emplace(folder, detail.ledger);
  if (!options.read_only) {
    CheckWitnessFolder(folder);
    witness->CheckFile();
  }
  const std::optional<Sighting> last = witness->Last();
  if (!last) return;
  const auto place = static_cast<std::size_t>(last->number);
  if (place < entries.size() && entries[place].hash == last->hash) return;
  throw Error(fmt::format(
      "{} is an older copy, or was written anew: this machine has seen its entry {}, which is not "
      "in it; put back the newest copy (docs/ledger.md says what to do if it is lost).",
      Name(), last->number));
}

void Ledger::State::Remember() {
  if (!witness || options.read_only || entries.empty()) return;
  witness->Remember({.number = entries.back().number, .hash = entries.back().hash});
}

void Ledger::State::Apply(const Entry& entry) {
  if ((entry.number == 0) != (entry.kind == EntryKind::kBudget)) {
    throw Error("the first entry, and no other, is the budget");
  }
  CheckRange("the probability of failures", entry.failure, 0, false, 1, false);
  switch (entry.kind) {
    case EntryKind::kBudget:
      detail = ParseBudgetJson(entry.detail);
      filter.emplace(detail.budget);
      break;
    case EntryKind::kRun:
      filter->BeginRun(entry.run, Event::Parse(entry.event), ParseRunJson(entry.detail).terms,
                       entry.failure);
      break;
    case EntryKind::kCharge: {
      const Event event = Event::Parse(entry.event);
      if (event.adjacency() != detail.budget.adjacency) throw Error("it has another adjacency");
      filter->Charge(entry.run, event, entry.failure);
      break;
    }
    case EntryKind::kReturn:
      filter->Return(entry.run, Event::Parse(entry.event), entry.failure);
      break;
    case EntryKind::kNote:
      ParseTextJson(entry.detail);
      break;
  }
}

void Ledger::State::Load() {
  try {
    LoadRows();
  } catch (const internal::WrongType&) {
    Damaged("a value is not of the type that it was written with");
  }
}

void Ledger::State::LoadRows() {
  const std::int64_t known = static_cast<std::int64_t>(entries.size()) - 1;
  if (known >= 0) {
    Statement same(database, "SELECT hash FROM entries WHERE number = ?");
    same.Bind(1, known);
    if (!same.Step() || same.Text(0) != entries.back().hash) {
      throw Error(fmt::format(
          "{} was replaced by an older or another copy while it was in use (entry {} is gone), so "
          "nothing more is released; put back the newest copy.",
          Name(), known));
    }
  }
  Statement rows(database,
                 "SELECT number, kind, time, run, event, failure, detail, previous, hash FROM "
                 "entries WHERE number > ? ORDER BY number");
  // All of them at first: a number below 0 would be somebody else's.
  rows.Bind(1, known >= 0 ? known : std::numeric_limits<std::int64_t>::min());
  while (rows.Step()) {
    Entry entry;
    entry.number = rows.Integer(0);
    const auto expected = static_cast<std::int64_t>(entries.size());
    if (entry.number != expected) Damaged(fmt::format("entry {} is missing", expected));
    try {
      entry.kind = ParseEntryKind(rows.Text(1));
      entry.time = rows.Integer(2);
      entry.run = rows.Text(3);
      entry.event = rows.Text(4);
      entry.failure = rows.Real(5);
      entry.detail = rows.Text(6);
      entry.previous = rows.Text(7);
      entry.hash = rows.Text(8);
      if (entry.previous != (entries.empty() ? std::string(kNoHash) : entries.back().hash)) {
        throw Error("it does not follow the entry before it");
      }
      if (entry.hash != EntryHash(entry)) throw Error("it was changed");
      Apply(entry);
    } catch (const Error& error) {
      std::string what = error.what();
      while (!what.empty() && what.back() == '.') what.pop_back();
      Damaged(fmt::format("entry {}: {}", entry.number, what));
    }
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) Damaged("it has no entries");
  Statement head(database, "SELECT number, hash FROM head WHERE id = 1");
  if (!head.Step() || head.Integer(0) != entries.back().number ||
      head.Text(1) != entries.back().hash) {
    Damaged(
        fmt::format("its last entries are missing, or its head was changed (entry {} is the "
                    "last that is there)",
                    entries.back().number));
  }
}

std::int64_t Ledger::State::Now() const {
  const std::int64_t now = options.clock();
  const std::int64_t last = entries.back().time;
  if (now < last - kClockTolerance) {
    throw Error(
        fmt::format("the clock says {} and the last entry of {} is of {}; set the clock right, or, "
                    "if the entry is what is wrong, say so with 'sordino ledger note'.",
                    TimeText(now), Name(), TimeText(last)));
  }
  return std::max(now, last);
}

void Ledger::State::Append(Entry entry) {
  entry.number = static_cast<std::int64_t>(entries.size());
  entry.previous = entries.empty() ? std::string(kNoHash) : entries.back().hash;
  if (entry.time == 0) entry.time = entries.empty() ? options.clock() : Now();
  entry.hash = EntryHash(entry);
  Statement insert(database, "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.Bind(1, entry.number);
  insert.Bind(2, std::string(EntryKindName(entry.kind)));
  insert.Bind(3, entry.time);
  insert.Bind(4, entry.run);
  insert.Bind(5, entry.event);
  insert.Bind(6, entry.failure);
  insert.Bind(7, entry.detail);
  insert.Bind(8, entry.previous);
  insert.Bind(9, entry.hash);
  insert.Step();
  // A trigger that somebody added could swallow it.
  if (database.Number("SELECT changes()") != 1) Damaged("it does not take new entries");
  Statement head(database, "INSERT OR REPLACE INTO head VALUES (1, ?, ?)");
  head.Bind(1, entry.number);
  head.Bind(2, entry.hash);
  head.Step();
  Apply(entry);
  entries.push_back(std::move(entry));
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
  Transaction transaction(database, Transaction::Kind::kWrite);
  if (!entries.empty()) {
    Load();
    CheckWitness();
  }
  const std::size_t count = entries.size();
  const std::optional<BudgetFilter> before = filter;
  const auto forget = [&] {
    entries.resize(count);
    filter = before;
  };
  try {
    if (!write()) {
      is_broken = false;
      return false;
    }
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
  is_broken = false;
  Remember();
  return true;
}

}  // namespace sordino
