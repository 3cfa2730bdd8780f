// Ledgers of any length, written at once.
#ifndef SORDINO_LEDGER_TESTING_LONG_LEDGER_H_
#define SORDINO_LEDGER_TESTING_LONG_LEDGER_H_

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "sordino/accounting/event.h"
#include "sordino/ledger/budget_filter.h"
#include "sordino/ledger/entry.h"

namespace sordino {

struct LongLedger {
  std::int64_t releases = 1000;
  bool has_sums = true;                     // false: as older programs wrote it
  std::int64_t different = 100;             // noise multipliers
  std::function<void(Entry&)> change = {};  // of an entry, before it is hashed
};

// Appends to a ledger that holds its budget only. Each release is a run of one charge.
inline void WriteLongLedger(const std::filesystem::path& file, const Budget& budget,
                            const LongLedger& wanted) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &handle), SQLITE_OK);
  const auto execute = [&](const std::string& sql) {
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK) << sql;
  };
  execute("PRAGMA synchronous = OFF; BEGIN");
  std::pair<std::string, std::int64_t> first;  // hash and time of the budget
  sqlite3_exec(
      handle, "SELECT hash, time FROM entries",
      [](void* out, int, char** row, char**) {
        *static_cast<decltype(first)*>(out) = {row[0], std::stoll(row[1])};
        return 0;
      },
      &first, nullptr);
  std::string& previous = first.first;
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(handle, "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", -1, &insert,
                     nullptr);
  BudgetFilter filter(budget);
  RunTerms terms;
  std::int64_t number = 0;
  const auto append = [&](Entry entry) {
    entry.number = ++number;
    entry.time = first.second;
    entry.previous = previous;
    if (wanted.change) wanted.change(entry);
    previous = entry.hash = EntryHash(entry);
    const auto text = [&](int place, std::string_view value) {
      sqlite3_bind_text(insert, place, value.data(), static_cast<int>(value.size()),
                        SQLITE_TRANSIENT);
    };
    sqlite3_bind_int64(insert, 1, entry.number);
    text(2, EntryKindName(entry.kind));
    sqlite3_bind_int64(insert, 3, entry.time);
    text(4, entry.run);
    text(5, entry.event);
    sqlite3_bind_double(insert, 6, entry.failure);
    text(7, entry.detail);
    text(8, entry.previous);
    text(9, entry.hash);
    EXPECT_EQ(sqlite3_step(insert), SQLITE_DONE);
    sqlite3_reset(insert);
  };
  for (std::int64_t i = 0; i < wanted.releases; ++i) {
    const double noise = 2000 + static_cast<double>(i % wanted.different) / 8;
    const Event event = Event::Gaussian(NoiseMultiplier(noise), budget.adjacency);
    if (i == 0) terms = filter.TermsFor(event, 0);
    std::string run = std::to_string(i);
    run.insert(0, 32 - run.size(), '0');
    Entry begin{.kind = EntryKind::kRun, .run = run, .event = event.ToString()};
    begin.detail = RunJson({.what = "release mean of age", .who = "somebody", .terms = terms});
    filter.BeginRun(run, event, terms);
    append(std::move(begin));
    filter.Charge(run, event, 0);
    Entry charge{.kind = EntryKind::kCharge, .run = run, .event = event.ToString()};
    charge.detail = TextJson("the release");
    if (wanted.has_sums) charge.detail = WithSums(charge.detail, filter.sums());
    append(std::move(charge));
  }
  sqlite3_finalize(insert);
  execute("INSERT OR REPLACE INTO head VALUES (1, " + std::to_string(number) + ", '" + previous +
          "'); COMMIT");
  sqlite3_close(handle);
}

}  // namespace sordino

#endif  // SORDINO_LEDGER_TESTING_LONG_LEDGER_H_
