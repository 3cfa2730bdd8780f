#include "sordino/ledger/ledger.h"

#include <fmt/format.h>
#include <openssl/rand.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/durable_file.h"
#include "sordino/base/error.h"
#include "sordino/ledger/internal/database.h"
#include "sordino/ledger/internal/entry_rows.h"
#include "sordino/ledger/internal/ledger_state.h"
#include "sordino/ledger/internal/schema.h"
#include "sordino/ledger/internal/witness.h"

namespace sordino {
namespace {

using internal::Database;
using internal::EntryRows;
using internal::Statement;
using internal::Transaction;

// EXTRA also syncs the folder when the journal is removed, which is the moment of the commit.
constexpr const char* kDurable = "PRAGMA synchronous = EXTRA; PRAGMA fullfsync = ON;";
std::string RandomId() {
  std::array<unsigned char, 16> bytes{};
  SORDINO_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1,
                "there is no randomness for a name");
  std::string id;
  for (const unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

std::string UserName() {
  const passwd* const user = getpwuid(geteuid());
  return user != nullptr ? user->pw_name : fmt::format("user {}", geteuid());
}

}  // namespace

Ledger::Ledger(std::unique_ptr<State> state) : state_(std::move(state)) {}
Ledger::~Ledger() = default;
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;

Ledger Ledger::Create(const std::filesystem::path& file, const Budget& budget,
                      LedgerOptions options) {
  CheckBudget(budget);
  const auto refuse = [&file] {
    throw Error(
        fmt::format("the file '{}' exists already; give the path of a new one.", file.string()));
  };
  std::error_code none;
  if (options.vfs.empty() && std::filesystem::file_size(file, none) > 0 && !none) refuse();
  if (options.witness == WitnessUse::kNeeded) {
    CheckWitnessFolder(WitnessFolder(options));  // before there is a file
  }
  auto state = std::make_unique<State>(file, Database::Mode::kCreate, std::move(options));
  state->database.Text("PRAGMA journal_mode = DELETE");
  state->database.Execute(kDurable);
  state->Commit([&] {
    if (state->database.Number("SELECT count(*) FROM sqlite_master") != 0) refuse();
    internal::MakeSchema(state->database);
    Entry first{.kind = EntryKind::kBudget};
    first.detail = BudgetJson({.budget = budget, .ledger = RandomId()});
    state->Append(std::move(first));
    return true;
  });
  // SQLite syncs the folder of a new file and does not look whether that worked.
  if (state->options.vfs.empty()) SyncFolder(state->absolute.parent_path());
  return Ledger(std::move(state));
}

Ledger Ledger::Open(const std::filesystem::path& file, LedgerOptions options) {
  if (options.vfs.empty()) {
    std::error_code none;
    if (!std::filesystem::exists(file, none)) {
      throw Error(fmt::format("the ledger '{}' does not exist; make it with 'sordino ledger init'.",
                              file.string()));
    }
    if (std::filesystem::is_directory(file, none)) {
      throw Error(fmt::format("'{}' is a folder; give the file of a ledger.", file.string()));
    }
  }
  auto state = std::make_unique<State>(file, Database::Mode::kOpen, std::move(options));
  // Another program may have left it in another mode, in which a copy of the file is not whole.
  if (!state->options.read_only &&
      state->database.Text("PRAGMA journal_mode = DELETE") != "delete") {
    throw Error(
        fmt::format("{} is in use by a program that keeps it in another journal mode; "
                    "close that first.",
                    state->Name()));
  }
  state->database.Execute(kDurable);
  std::optional<Sighting> last;
  {
    const Transaction transaction(state->database, Transaction::Kind::kRead);
    state->Load();
    state->FindWitness();
    last = state->CheckSighting();
  }
  state->RememberSince(last);
  return Ledger(std::move(state));
}

namespace {

Entry EntryOf(EntryKind kind, const std::string& run, const LedgerCharge& charge) {
  Entry entry{.kind = kind};
  entry.run = run;
  entry.event = charge.event.ToString();
  entry.failure = charge.failure;
  entry.detail = TextJson(charge.words);
  return entry;
}

void CheckDeclaration(const RunDeclaration& run, const Budget& budget) {
  if (run.plan.adjacency() != budget.adjacency) {
    throw Error(fmt::format(
        "the release is accounted under {} adjacency and the ledger's budget is for {}; set the "
        "adjacency of the release, or use another ledger.",
        AdjacencyName(run.plan.adjacency()), AdjacencyName(budget.adjacency)));
  }
  if (run.unit != budget.unit) {
    throw Error(fmt::format("the release protects a {} and the ledger's budget protects a {}; {}.",
                            ProtectedUnitName(run.unit), ProtectedUnitName(budget.unit),
                            budget.unit == ProtectedUnit::kUser
                                ? "declare the column that tells users apart"
                                : "use a ledger whose unit is a user"));
  }
}

}  // namespace

RunTerms TermsOf(BudgetFilter& filter, const RunDeclaration& run) {
  RunTerms terms = filter.TermsFor(run.plan, run.failure, run.may_count_whole);
  if (run.is_adaptive) terms.whole = terms.needs_whole = false;
  return terms;
}

Begun Ledger::BeginRun(const RunDeclaration& run, const LedgerCharge& first) {
  State& s = *state_;
  CheckDeclaration(run, budget());
  Begun begun;
  s.Commit([&] {
    begun.terms = TermsOf(*s.filter, run);
    if (begun.terms.needs_whole) {
      begun.verdict = s.filter->AdmitsPlan(run.plan, run.failure, begun.terms);
      return false;
    }
    const std::string id = RandomId();
    BudgetFilter trial = *s.filter;
    trial.BeginRun(id, run.plan, begun.terms, run.failure);
    begun.verdict = trial.Admits(id, first.event, first.failure);
    if (!begun.verdict.admitted) return false;
    begun.id = id;
    Entry start{.kind = EntryKind::kRun};
    start.run = id;
    start.event = run.plan.ToString();
    start.failure = run.failure;
    start.detail = RunJson(
        {.what = run.what, .who = UserName(), .is_private = run.is_private, .terms = begun.terms});
    s.Append(std::move(start));
    s.Append(EntryOf(EntryKind::kCharge, id, first));
    return true;
  });
  return begun;
}

Begun Ledger::Preview(const RunDeclaration& run) {
  CheckDeclaration(run, budget());
  Refresh();
  Begun begun;
  begun.terms = TermsOf(*state_->filter, run);
  begun.verdict = state_->filter->AdmitsPlan(run.plan, run.failure, begun.terms);
  return begun;
}

RunTerms Ledger::Rejoin(const std::string& run, const std::string& plan) {
  State& s = *state_;
  Refresh();
  const Transaction transaction(s.database, Transaction::Kind::kRead);
  EntryRows rows(s.database, "WHERE run = ? AND kind = 'run' AND number <= ?");
  rows.Bind(1, run);
  rows.Bind(2, head().number);
  if (!rows.Step()) {
    throw Error(fmt::format(
        "{} does not hold the run to resume; give the ledger that it was charged to.", s.Name()));
  }
  const Entry entry = rows.Read();
  if (entry.event != plan) {
    throw Error(
        fmt::format("{} has the run with another plan; resume it with the settings that it began "
                    "with.",
                    s.Name()));
  }
  s.Recall(run);
  return ParseRunJson(entry.detail).terms;
}

Verdict Ledger::Charge(const std::string& run, const LedgerCharge& charge) {
  State& s = *state_;
  CheckRange("the probability of failures", charge.failure, 0, false, 1, false);
  Verdict verdict;
  s.Commit([&] {
    s.Recall(run);
    verdict = s.filter->Admits(run, charge.event, charge.failure);
    if (!verdict.admitted) return false;
    s.Append(EntryOf(EntryKind::kCharge, run, charge));
    return true;
  });
  return verdict;
}

void Ledger::Return(const std::string& run, const LedgerCharge& unused) {
  State& s = *state_;
  s.Commit([&] {
    s.Recall(run);
    BudgetFilter trial = *s.filter;
    trial.Return(run, unused.event, unused.failure);
    s.Append(EntryOf(EntryKind::kReturn, run, unused));
    return true;
  });
}

void Ledger::Note(const std::string& text) {
  State& s = *state_;
  s.Commit([&] {
    Entry entry{.kind = EntryKind::kNote};
    entry.time = s.options.clock();
    entry.detail = TextJson(text);
    s.Append(std::move(entry));
    return true;
  });
}

void Ledger::Refresh() {
  State& s = *state_;
  const bool was_broken = std::exchange(s.is_broken, true);
  s.CheckPlace();
  const Transaction transaction(s.database, Transaction::Kind::kRead);
  s.Load();
  s.is_broken = was_broken;
}

const Entry& Ledger::head() const { return *state_->head; }

void Ledger::Visit(const std::function<void(const Entry&)>& look) const {
  const Transaction transaction(state_->database, Transaction::Kind::kRead);
  state_->Visit(look);
}

std::vector<Entry> Ledger::entries() const {
  std::vector<Entry> entries;
  Visit([&](const Entry& entry) { entries.push_back(entry); });
  return entries;
}

bool Ledger::Contains(const std::string& hash) const {
  Statement found(state_->database, "SELECT count(*) FROM entries WHERE hash = ? AND number <= ?");
  found.Bind(1, hash);
  found.Bind(2, head().number);
  return found.Step() && found.Integer(0) > 0;
}

const Budget& Ledger::budget() const { return state_->detail.budget; }
const std::string& Ledger::id() const { return state_->detail.ledger; }
BudgetFilter& Ledger::filter() { return *state_->filter; }
const std::filesystem::path& Ledger::file() const { return state_->path; }
bool Ledger::HasWitness() const { return state_->witness.has_value(); }

std::size_t Ledger::SeededRuns() const {
  EntryRows rows(state_->database,
                 "WHERE kind = 'run' AND detail LIKE '%\"private\"%' AND number <= ?");
  rows.Bind(1, head().number);
  std::size_t count = 0;
  while (rows.Step()) count += ParseRunJson(rows.Read().detail).is_private ? 0 : 1;
  return count;
}

// Equal charges are read once.
ReleaseTally Ledger::CountedTally() const {
  State& s = *state_;
  ReleaseTally tally;
  if (const std::optional<std::string> whole = s.filter->whole_run()) {
    s.Recall(*whole);
    tally.Add(s.filter->CountedOf(*whole));
    return tally;
  }
  Statement rows(s.database,
                 "SELECT kind = 'charge', event, count(*) FROM entries WHERE number <= ? AND kind "
                 "IN ('charge', 'return') GROUP BY 1, 2 ORDER BY 1 DESC");
  rows.Bind(1, head().number);
  while (rows.Step()) {
    const Event event = Event::Parse(rows.Text(1));
    const auto times = static_cast<std::uint64_t>(rows.Integer(2));
    rows.Integer(0) != 0 ? tally.Add(event, times) : tally.Subtract(event, times);
  }
  return tally;
}

Event Ledger::Counted() const { return CountedTally().Total(budget().adjacency); }

Event Ledger::Total() const {
  const std::optional<std::string> whole = state_->filter->whole_run();
  if (!whole) return Counted();
  state_->Recall(*whole);
  return state_->filter->TotalOf(*whole);
}

Interval Ledger::ComposedEpsilon() const {
  return CountedTally()
      .ComposedEpsilon(budget().adjacency, budget().delta, state_->filter->counted_failure(),
                       size() <= kLongLedger)
      .value_or(Interval{0, budget().epsilon.value()});
}

std::int64_t VerifyLedger(const std::filesystem::path& file, LedgerOptions options) {
  options.read_only = true;
  options.read_whole = true;
  const std::string vfs = options.vfs;
  const int patience = options.patience_ms;
  Ledger ledger = Ledger::Open(file, std::move(options));
  const std::string name = fmt::format("the ledger '{}'", file.string());
  Database database(file, Database::Mode::kOpen, vfs, patience);
  const std::string pages = database.Text("PRAGMA integrity_check(1)");
  if (pages != "ok") throw Error(fmt::format("{} is damaged: {}.", name, pages));
  std::int64_t time = 0;
  ledger.Visit([&](const Entry& entry) {
    if (entry.number > 0 && entry.kind != EntryKind::kNote && entry.time < time) {
      throw Error(
          fmt::format("{} was not written by this program: entry {} is older than entry "
                      "{}.",
                      name, entry.number, entry.number - 1));
    }
    time = entry.time;
  });
  if (ledger.filter().UsedShare() > 1 + 1e-9) {
    throw Error(fmt::format("{} holds more than its budget admits.", name));
  }
  return ledger.size();
}

}  // namespace sordino
