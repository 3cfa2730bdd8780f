// Ledgers for tests to damage.
#ifndef SORDINO_LEDGER_TESTING_DAMAGED_LEDGER_H_
#define SORDINO_LEDGER_TESTING_DAMAGED_LEDGER_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/testing/faulty_disk.h"
#include "sordino/ledger/testing/ledger_story.h"

namespace sordino {

inline std::string ReadFile(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void WriteFile(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

// As anybody can with the program of the same name.
inline void Sql(const std::filesystem::path& file, const std::string& sql) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &handle), SQLITE_OK);
  sqlite3_exec(handle, "PRAGMA synchronous = OFF", nullptr, nullptr, nullptr);
  const int code = sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr);
  EXPECT_EQ(code, SQLITE_OK) << sqlite3_errmsg(handle) << ": " << sql;
  sqlite3_close(handle);
}

inline constexpr const char* kDropTriggers =
    "DROP TRIGGER IF EXISTS entries_stay; DROP TRIGGER IF EXISTS entries_stay_as_they_are;";

// Around what somebody does to the rows: the triggers are there again afterwards.
inline std::string WithoutTriggers(const std::string& sql) {
  return kDropTriggers + sql +
         R"sql(;
CREATE TRIGGER entries_stay_as_they_are BEFORE UPDATE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never changed'); END;
CREATE TRIGGER entries_stay BEFORE DELETE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries of a ledger are never removed'); END;)sql";
}

inline std::vector<std::string> Hashes(const Ledger& ledger) {
  std::vector<std::string> hashes;
  for (const Entry& entry : ledger.entries()) hashes.push_back(entry.hash);
  return hashes;
}

// As a program wrote them that kept no sums.
inline std::vector<Entry> WithoutSums(std::vector<Entry> entries) {
  for (Entry& entry : entries) {
    if (entry.kind == EntryKind::kBudget || entry.kind == EntryKind::kRun) continue;
    entry.detail = TextJson(ParseTextJson(entry.detail));
  }
  return entries;
}

class DamageTest : public testing::Test {
 protected:
  std::filesystem::path File() const { return folder_ / "ledger.db"; }
  // Remembers nothing, so that copies may be played with.
  static LedgerOptions NoWitness() { return {.witness = WitnessUse::kNone}; }
  LedgerOptions WithWitness() const { return {.witness_folder = folder_ / "state"}; }

  // A budget of 64 steps; a run and, in `charges` charges, as many steps of it; two of them
  // returned; a note.
  void Make(int charges, LedgerOptions options) {
    FaultyDisk disk("memory");  // where a sync takes no time
    options.vfs = disk.name();
    Ledger ledger = Ledger::Create("/l", {.epsilon = Epsilon(8), .delta = Delta(0)}, options);
    run_ = ledger.BeginRun({.what = "run", .plan = Step(100)}, {.event = Step()}).id;
    for (int i = 1; i < charges; ++i) {
      ledger.Charge(run_, {.event = Step(), .words = "step " + std::to_string(i)});
    }
    ledger.Return(run_, {.event = Step(2), .words = "not used"});
    ledger.Note("all went well");
    hashes_ = Hashes(ledger);
    WriteFile(File(), disk.Survivors(0).at("/l"));
  }
  void Charge(const LedgerOptions& options) {
    EXPECT_TRUE(Ledger::Open(File(), options).Charge(run_, {.event = Step()}).admitted);
  }

  static void ExpectSentence(const std::string& text) {
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.back(), '.') << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  // The sentence; empty where nothing is thrown.
  static std::string Sentence(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      ExpectSentence(error.what());
      return error.what();
    }
    return "";
  }
  // Open and VerifyLedger both refuse.
  void ExpectRefused(const std::string& why, const LedgerOptions& options = NoWitness()) const {
    EXPECT_THAT(Sentence([&] { Ledger::Open(File(), options); }), testing::HasSubstr(why));
    EXPECT_THAT(Sentence([&] { VerifyLedger(File(), options); }), testing::HasSubstr(why));
  }
  // An open ledger refuses this charge and every later one.
  void ExpectAdmitsNothing(Ledger& ledger, const std::string& why) const {
    EXPECT_THAT(Sentence([&] { ledger.Charge(run_, {.event = Step()}); }), testing::HasSubstr(why));
    EXPECT_THROW(ledger.Charge(run_, {.event = Step()}), std::runtime_error);
    EXPECT_THROW(ledger.BeginRun({.what = "run", .plan = Step()}, {.event = Step()}),
                 std::runtime_error);
  }
  // Writes the entries as if the program had: numbers, hashes and head fit. The entry of the number
  // `loose` keeps the hash that it says is of the one before it.
  void Forge(std::vector<Entry> entries, std::int64_t loose = -1) const {
    std::string sql = "DELETE FROM entries; DELETE FROM head;";
    std::string previous(kNoHash);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      Entry& entry = entries[i];
      entry.number = static_cast<std::int64_t>(i);
      if (entry.number != loose) entry.previous = previous;
      previous = entry.hash = EntryHash(entry);
      char* const row = sqlite3_mprintf(
          "INSERT INTO entries VALUES (%lld, %Q, %lld, %Q, %Q, %!.17g, %Q, %Q, %Q);",
          static_cast<long long>(entry.number), std::string(EntryKindName(entry.kind)).c_str(),
          static_cast<long long>(entry.time), entry.run.c_str(), entry.event.c_str(), entry.failure,
          entry.detail.c_str(), entry.previous.c_str(), entry.hash.c_str());
      sql += row;
      sqlite3_free(row);
    }
    Sql(File(), WithoutTriggers(sql + "INSERT INTO head VALUES (1, " +
                                std::to_string(entries.size() - 1) + ", '" + previous + "')"));
  }

  const TestFolder folder_;
  std::string run_;
  std::vector<std::string> hashes_;
};

}  // namespace sordino

#endif  // SORDINO_LEDGER_TESTING_DAMAGED_LEDGER_H_
