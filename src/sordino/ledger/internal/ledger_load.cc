// What is read of a ledger, and what is checked of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/ledger/internal/entry_rows.h"
#include "sordino/ledger/internal/ledger_state.h"
#include "sordino/ledger/internal/schema.h"
#include "sordino/ledger/release_tally.h"

namespace sordino {
namespace {

using internal::EntryRows;
using internal::Statement;

// Longer ledgers are not read whole when they are opened.
constexpr std::int64_t kReadWhole = 64;

bool Agree(double a, double b) {
  constexpr double kTolerance = 1e-9;
  return a == b || std::abs(a - b) <= kTolerance * std::max({1e-12, std::abs(a), std::abs(b)});
}

bool Agree(const UpwardSum& a, const UpwardSum& b) {
  return a.unbounded() == b.unbounded() && Agree(a.high(), b.high());
}

}  // namespace

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
      Recall(entry.run);
      filter->Charge(entry.run, event, entry.failure);
      break;
    }
    case EntryKind::kReturn:
      Recall(entry.run);
      filter->Return(entry.run, Event::Parse(entry.event), entry.failure);
      break;
    case EntryKind::kNote:
      ParseTextJson(entry.detail);
      break;
  }
}

// What the entry says of the sums after it, and what they are. Two machines may round differently.
void Ledger::State::CheckSums(const Entry& entry) {
  const std::optional<BudgetSums> kept = SumsOf(entry);
  if (!kept) return;
  const BudgetSums& sums = filter->sums();
  const bool is_same = kept->runs == sums.runs && kept->releases == sums.releases &&
                       kept->whole == sums.whole && Agree(kept->order, sums.order) &&
                       Agree(kept->pure, sums.pure) && Agree(kept->filter, sums.filter) &&
                       Agree(kept->loss, sums.loss) && Agree(kept->reserved, sums.reserved) &&
                       Agree(kept->failure, sums.failure) &&
                       Agree(kept->whole_failure, sums.whole_failure);
  if (!is_same) throw Error("its sums are not those of the entries up to it");
}

void Ledger::State::InEntry(std::int64_t number, const std::function<void()>& act) const {
  try {
    act();
  } catch (const Error& error) {
    std::string what = error.what();
    while (!what.empty() && what.back() == '.') what.pop_back();
    Damaged(fmt::format("entry {}: {}", number, what));
  }
}

void Ledger::State::Load() {
  try {
    if (const std::string wrong = internal::WrongSchema(database); !wrong.empty()) {
      throw Error(fmt::format(
          "{} is not a ledger, or its tables were changed: {}; make one with 'sordino ledger "
          "init', or put back the newest copy that 'sordino ledger verify' accepts.",
          Name(), wrong));
    }
    if (!head) LoadFirst();
    LoadAfterHead();
  } catch (const internal::WrongType&) {
    Damaged("a value is not of the type that it was written with");
  }
}

// The newest entry whose sums can be used, of those up to `last`.
std::optional<Entry> Ledger::State::LastWithSums(std::int64_t last) {
  EntryRows rows(database, "WHERE number <= ? AND number > 0 ORDER BY number DESC");
  rows.Bind(1, last);
  std::optional<Entry> found;
  while (!found && rows.Step()) {
    InEntry(rows.Number(), [&] {
      Entry entry = rows.Read();
      if (SumsOf(entry)) found = std::move(entry);
    });
  }
  return found;
}

void Ledger::State::LoadFirst() {
  // A number below 0 would be somebody else's.
  EntryRows rows(database, "ORDER BY number LIMIT 1");
  if (!rows.Step()) Damaged("it has no entries");
  if (rows.Number() != 0) Damaged("entry 0 is missing");
  InEntry(0, [&] {
    Entry first = rows.Read();
    if (first.previous != kNoHash) throw Error("it does not follow the entry before it");
    Apply(first);
    head = std::move(first);
  });
  const std::int64_t last = database.Number("SELECT number FROM head WHERE id = 1");
  if (options.read_whole || last <= kReadWhole) return;
  if (std::optional<Entry> entry = LastWithSums(last)) {
    filter.emplace(detail.budget, *SumsOf(*entry));
    head = std::move(entry);
  }
}

void Ledger::State::LoadAfterHead() {
  Statement same(database, "SELECT hash FROM entries WHERE number = ?");
  same.Bind(1, head->number);
  if (!same.Step() || same.Text(0) != head->hash) {
    throw Error(fmt::format(
        "{} was replaced by an older or another copy while it was in use (entry {} is gone), so "
        "nothing more is released; put back the newest copy.",
        Name(), head->number));
  }
  const std::int64_t known = head->number;
  EntryRows rows(database, "WHERE number > ? ORDER BY number");
  rows.Bind(1, known);
  while (rows.Step()) {
    const std::int64_t expected = head->number + 1;
    if (rows.Number() != expected) Damaged(fmt::format("entry {} is missing", expected));
    InEntry(expected, [&] {
      Entry entry = rows.Read();
      if (entry.previous != head->hash) throw Error("it does not follow the entry before it");
      Apply(entry);
      CheckSums(entry);
      head = std::move(entry);
    });
  }
  Statement last(database, "SELECT number, hash FROM head WHERE id = 1");
  if (!last.Step() || last.Integer(0) != head->number || last.Text(1) != head->hash) {
    Damaged(
        fmt::format("its last entries are missing, or its head was changed (entry {} is the "
                    "last that is there)",
                    head->number));
  }
  // Of a long ledger without sums: the runs are not needed, and every charge would copy them.
  if (!options.read_whole && head->number - known > kReadWhole) {
    filter.emplace(detail.budget, filter->sums());
  }
}

void Ledger::State::Recall(const std::string& run) {
  if (filter->HasRun(run)) return;
  EntryRows rows(database, "WHERE run = ? AND number <= ? ORDER BY number");
  rows.Bind(1, run);
  rows.Bind(2, head->number);
  std::optional<Event> plan;
  ReleaseTally charged;
  while (rows.Step()) {
    InEntry(rows.Number(), [&] {
      const Entry entry = rows.Read();
      const Event event = Event::Parse(entry.event);
      if (entry.kind == EntryKind::kRun) plan = event;
      if (entry.kind == EntryKind::kCharge) charged.Add(event);
      if (entry.kind == EntryKind::kReturn) charged.Subtract(event);
    });
  }
  if (!plan) return;
  const Event total = charged.Total(detail.budget.adjacency);
  // Nothing else than a run that counts whole is charged, so none of its charges is missed.
  const BudgetSums& sums = filter->sums();
  if (sums.whole == run && total.TotalCount() != sums.releases) {
    Damaged("the charges of its run are not those that were counted");
  }
  filter->Recall(run, *plan, total);
}

void Ledger::State::Visit(const std::function<void(const Entry&)>& look) {
  EntryRows rows(database, "WHERE number <= ? ORDER BY number");
  rows.Bind(1, head->number);
  std::string previous(kNoHash);
  std::int64_t expected = 0;
  while (rows.Step()) {
    if (rows.Number() != expected) Damaged(fmt::format("entry {} is missing", expected));
    std::optional<Entry> entry;
    InEntry(expected, [&] {
      entry = rows.Read();
      if (entry->previous != previous) throw Error("it does not follow the entry before it");
    });
    look(*entry);
    previous = entry->hash;
    ++expected;
  }
  if (previous != head->hash) Damaged("its entries changed while they were read");
}

}  // namespace sordino
