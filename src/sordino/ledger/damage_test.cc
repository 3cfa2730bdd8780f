// Ledgers that something or somebody has been at: each is refused in a sentence or is what it was,
// and never says that less was spent.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/error.h"
#include "sordino/ledger/faulty_disk.h"
#include "sordino/ledger/ledger.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr double kCost = 0.125;
Event Step(std::uint64_t count = 1) { return Event::Repeat(Event::Pure(Epsilon(kCost)), count); }

std::string ReadFile(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteFile(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

// As anybody can with the program of the same name.
void Sql(const fs::path& file, const std::string& sql) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &handle), SQLITE_OK);
  const int code = sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr);
  EXPECT_EQ(code, SQLITE_OK) << sqlite3_errmsg(handle) << ": " << sql;
  sqlite3_close(handle);
}

constexpr const char* kDropTriggers =
    "DROP TRIGGER entries_stay; DROP TRIGGER entries_stay_as_they_are;";

std::vector<std::string> Hashes(const Ledger& ledger) {
  std::vector<std::string> hashes;
  for (const Entry& entry : ledger.entries()) hashes.push_back(entry.hash);
  return hashes;
}

class DamageTest : public testing::Test {
 protected:
  DamageTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~DamageTest() override { fs::remove_all(folder_); }

  fs::path File() const { return folder_ / "ledger.db"; }
  // Remembers nothing, so that copies may be played with.
  static LedgerOptions NoWitness() { return {.has_witness = false}; }
  LedgerOptions WithWitness() const { return {.witness_folder = folder_ / "state"}; }

  // A budget of 64 steps; a run and, in `charges` charges, as many steps of it; two of them
  // returned; a note.
  void Make(int charges, const LedgerOptions& options) {
    Ledger ledger = Ledger::Create(File(), {.epsilon = Epsilon(8), .delta = Delta(0)}, options);
    run_ = ledger.BeginRun({.what = "run", .plan = Step(100)}, {.event = Step()}).id;
    for (int i = 1; i < charges; ++i) {
      ledger.Charge(run_, {.event = Step(), .words = "step " + std::to_string(i)});
    }
    ledger.Return(run_, {.event = Step(2), .words = "not used"});
    ledger.Note("all went well");
    hashes_ = Hashes(ledger);
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
    EXPECT_THAT(Sentence([&] { Ledger::Open(File(), options); }), HasSubstr(why));
    EXPECT_THAT(Sentence([&] { VerifyLedger(File(), options); }), HasSubstr(why));
  }
  // An open ledger refuses this charge and every later one.
  void ExpectAdmitsNothing(Ledger& ledger, const std::string& why) const {
    EXPECT_THAT(Sentence([&] { ledger.Charge(run_, {.event = Step()}); }), HasSubstr(why));
    EXPECT_THROW(ledger.Charge(run_, {.event = Step()}), std::runtime_error);
    EXPECT_THROW(ledger.BeginRun({.what = "run", .plan = Step()}, {.event = Step()}),
                 std::runtime_error);
  }
  // Writes the entries as if the program had: numbers, hashes and head fit.
  void Forge(std::vector<Entry> entries) const {
    std::string sql = std::string(kDropTriggers) + "DELETE FROM entries; DELETE FROM head;";
    std::string previous(kNoHash);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      Entry& entry = entries[i];
      entry.number = static_cast<std::int64_t>(i);
      entry.previous = std::exchange(previous, "");
      previous = entry.hash = EntryHash(entry);
      char* const row = sqlite3_mprintf(
          "INSERT INTO entries VALUES (%lld, %Q, %lld, %Q, %Q, %!.17g, %Q, %Q, %Q);",
          static_cast<long long>(entry.number), std::string(EntryKindName(entry.kind)).c_str(),
          static_cast<long long>(entry.time), entry.run.c_str(), entry.event.c_str(), entry.failure,
          entry.detail.c_str(), entry.previous.c_str(), entry.hash.c_str());
      sql += row;
      sqlite3_free(row);
    }
    Sql(File(), sql + "INSERT INTO head VALUES (1, " + std::to_string(entries.size() - 1) + ", '" +
                    previous + "');");
  }

  fs::path folder_ = fs::path(testing::TempDir()) / ("damage-" + std::to_string(::getpid()));
  std::string run_;
  std::vector<std::string> hashes_;
};

// In memory, for there are many of them. A flip that does no harm leaves every entry as it was, and
// a charge on top of it is there or is refused.
TEST_F(DamageTest, FlippedByteIsFoundOrDoesNoHarm) {
  Make(20, NoWitness());
  const std::string whole = ReadFile(File());
  ASSERT_GT(whole.size(), 4U * 4096);
  FaultyDisk disk("damaged");
  LedgerOptions options = NoWitness();
  options.vfs = disk.name();
  std::map<std::string, int> outcomes;
  for (std::size_t at = 0; at < whole.size(); at += at < 128 ? 1 : 7) {
    SCOPED_TRACE("byte " + std::to_string(at));
    std::string damaged = whole;
    const unsigned masks[] = {0xff, 0x01, 0x03, 0x80, 0x10};
    damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ masks[at % 5]);
    disk.Restore({{"/l", damaged}});
    std::optional<Ledger> ledger;
    const std::string why = Sentence([&] { ledger = Ledger::Open("/l", options); });
    if (!ledger) {
      ++outcomes["refused"];
      EXPECT_NE(Sentence([&] { VerifyLedger("/l", options); }), "");
      continue;
    }
    EXPECT_EQ(Hashes(*ledger), hashes_);
    std::vector<std::string> longer = hashes_;
    const std::string late = Sentence([&] {
      if (!ledger->Charge(run_, {.event = Step()}).admitted) return;
      longer.push_back(ledger->head().hash);
    });
    ledger.reset();
    const std::string after = Sentence([&] {
      const std::vector<std::string> now = Hashes(Ledger::Open("/l", options));
      EXPECT_EQ(now, longer);
    });
    ++outcomes[!after.empty()  ? "refused after a charge"
               : !late.empty() ? "refused at a charge"
                               : "harmless"];
    if (HasFailure()) return;
  }
  for (const auto& [outcome, count] : outcomes) {
    std::cout << "[ COUNTED  ] " << outcome << ": " << count << "\n";
  }
  EXPECT_GT(outcomes["refused"], 1000);
  EXPECT_GT(outcomes["harmless"], 0);
}

TEST_F(DamageTest, TruncatedFileIsRefused) {
  Make(20, NoWitness());
  const std::string whole = ReadFile(File());
  ASSERT_EQ(whole.size() % 4096, 0U);
  for (std::size_t size = 0; size < whole.size(); size += 512) {
    for (const std::size_t odd : {size, size + 1, size + 200}) {
      SCOPED_TRACE(odd);
      WriteFile(File(), whole.substr(0, odd));
      ExpectRefused("ledger.db");
    }
  }
  WriteFile(File(), whole);
  EXPECT_EQ(VerifyLedger(File(), NoWitness()), std::ssize(hashes_));
}

TEST_F(DamageTest, OverwrittenPageIsRefused) {
  Make(20, NoWitness());
  const std::string whole = ReadFile(File());
  for (std::size_t page = 0; page < whole.size() / 4096; ++page) {
    for (const char filler : {'\0', '\xff', 'x'}) {
      SCOPED_TRACE(page);
      std::string damaged = whole;
      damaged.replace(page * 4096, 4096, std::string(4096, filler));
      WriteFile(File(), damaged);
      ExpectRefused("ledger.db");
    }
  }
}

TEST_F(DamageTest, WhatIsNoLedgerIsRefused) {
  ExpectRefused("does not exist");
  fs::create_directory(File());
  ExpectRefused("folder");
  fs::remove(File());
  WriteFile(File(), "");
  ExpectRefused("not a ledger");
  WriteFile(File(), "epsilon,delta\n8,1e-5\n");
  ExpectRefused("not a ledger");
  WriteFile(File(), std::string(100'000, 'x'));
  ExpectRefused("not a ledger");
  fs::remove(File());
  Sql(File(), "CREATE TABLE visits (who, day)");
  ExpectRefused("not a ledger");
  fs::remove(File());
  Sql(File(), "CREATE TABLE entries (number); CREATE TABLE head (number)");
  ExpectRefused("not a ledger");
  EXPECT_NE(Sentence([&] {
              Ledger::Create(File(), {.epsilon = Epsilon(1), .delta = Delta(0)}, NoWitness());
            }),
            "");
}

struct Edit {
  const char* name;
  const char* sql;
  const char* why;
};

class EditedLedger : public DamageTest, public testing::WithParamInterface<Edit> {};

TEST_P(EditedLedger, IsRefused) {
  Make(20, NoWitness());
  Ledger open = Ledger::Open(File(), NoWitness());
  Sql(File(), std::string(kDropTriggers) + GetParam().sql);
  ExpectRefused(GetParam().why);
}

INSTANTIATE_TEST_SUITE_P(
    Edits, EditedLedger,
    testing::Values(
        Edit{"Event", "UPDATE entries SET event = 'add-remove: pure(0.0125)' WHERE number = 5",
             "entry 5"},
        Edit{"EventGone", "UPDATE entries SET event = '' WHERE number = 5", "entry 5"},
        Edit{"Plan", "UPDATE entries SET event = 'add-remove: pure(0.125)' WHERE number = 1",
             "entry 1"},
        Edit{"Budget", "UPDATE entries SET detail = replace(detail, '8', '9') WHERE number = 0",
             "entry 0"},
        Edit{"Kind", "UPDATE entries SET kind = 'return' WHERE number = 5", "entry 5"},
        Edit{"UnknownKind", "UPDATE entries SET kind = 'gift' WHERE number = 5", "entry 5"},
        Edit{"Time", "UPDATE entries SET time = time + 1 WHERE number = 5", "entry 5"},
        Edit{"Run", "UPDATE entries SET run = replace(run, 'a', 'b') || ' ' WHERE number = 5",
             "entry 5"},
        Edit{"Failure", "UPDATE entries SET failure = 1e-300 WHERE number = 5", "entry 5"},
        Edit{"FailureIsInfinite", "UPDATE entries SET failure = 9e999 WHERE number = 5", "entry 5"},
        Edit{"Words", "UPDATE entries SET detail = replace(detail, 's', 'S') WHERE number = 5",
             "entry 5"},
        Edit{"Hash", "UPDATE entries SET hash = previous WHERE number = 5", "entry 5"},
        Edit{"Previous", "UPDATE entries SET previous = hash WHERE number = 5", "entry 5"},
        Edit{"BytesForText", "UPDATE entries SET event = CAST(event AS BLOB) WHERE number = 5",
             "ledger.db"},
        Edit{"TextForTime", "UPDATE entries SET time = 'noon' WHERE number = 5", "ledger.db"},
        Edit{"ChargeTakenOut", "DELETE FROM entries WHERE number = 5", "entry 5"},
        Edit{"ChargeTakenOutAndClosedUp",
             "DELETE FROM entries WHERE number = 5; UPDATE entries SET number = -number WHERE "
             "number > 5; UPDATE entries SET number = -number - 1 WHERE number < 0",
             "entry 5"},
        Edit{"FirstTakenOut", "DELETE FROM entries WHERE number = 0", "entry 0"},
        Edit{"LastTakenOut", "DELETE FROM entries WHERE number = 23", "missing"},
        Edit{"LastTakenOutWithTheNumberOfTheHead",
             "DELETE FROM entries WHERE number = 23; UPDATE head SET number = 22", "head"},
        Edit{"AllTakenOut", "DELETE FROM entries", "no entries"},
        Edit{"Swapped",
             "UPDATE entries SET number = -1 WHERE number = 5; UPDATE entries SET number = 5 WHERE "
             "number = 6; UPDATE entries SET number = 6 WHERE number = -1",
             "entry 5"},
        Edit{"Doubled",
             "INSERT INTO entries SELECT 24, kind, time, run, event, failure, detail, previous, "
             "hash FROM entries WHERE number = 23",
             "entry 24"},
        Edit{"NumberBelowZero",
             "INSERT INTO entries SELECT -1, kind, time, run, event, failure, detail, previous, "
             "hash FROM entries WHERE number = 5",
             "ledger.db"},
        Edit{"HeadNumber", "UPDATE head SET number = 22", "head"},
        Edit{"HeadHash", "UPDATE head SET hash = replace(hash, 'a', 'b') || '0'", "head"},
        Edit{"HeadGone", "DELETE FROM head", "head"},
        Edit{"TableGone", "DROP TABLE head", "ledger"},
        Edit{"ColumnGone", "ALTER TABLE entries RENAME COLUMN failure TO success", "ledger"}),
    [](const auto& edit) { return std::string(edit.param.name); });

// An edit of the last entry that this handle has seen, or of later ones, is found by the handle.
TEST_F(DamageTest, OpenLedgerFindsAnEditOfItsHead) {
  Make(20, NoWitness());
  Ledger ledger = Ledger::Open(File(), NoWitness());
  Sql(File(), std::string(kDropTriggers) + "DELETE FROM entries WHERE number = 23");
  ExpectAdmitsNothing(ledger, "entry 23");
}

TEST_F(DamageTest, OldCopyUnderAnOpenLedgerIsRefused) {
  for (const bool is_moved : {false, true}) {
    SCOPED_TRACE(is_moved);
    fs::remove(File());
    Make(5, NoWitness());
    const fs::path old = folder_ / "old.db";
    fs::copy_file(File(), old, fs::copy_options::overwrite_existing);
    Ledger ledger = Ledger::Open(File(), NoWitness());
    ASSERT_TRUE(ledger.Charge(run_, {.event = Step()}).admitted);
    if (is_moved) {
      fs::rename(old, File());
    } else {
      fs::copy_file(old, File(), fs::copy_options::overwrite_existing);
    }
    ExpectAdmitsNothing(ledger, is_moved ? "replaced" : "older");
  }
}

// Two copies went different ways from the same entries on.
TEST_F(DamageTest, OtherBranchUnderAnOpenLedgerIsRefused) {
  Make(5, NoWitness());
  const fs::path branch = folder_ / "branch.db";
  fs::copy_file(File(), branch);
  ASSERT_TRUE(Ledger::Open(branch, NoWitness()).Charge(run_, {.event = Step()}).admitted);
  Ledger ledger = Ledger::Open(File(), NoWitness());
  ASSERT_TRUE(ledger.Charge(run_, {.event = Step(2)}).admitted);
  fs::copy_file(branch, File(), fs::copy_options::overwrite_existing);
  ExpectAdmitsNothing(ledger, "another copy");
}

TEST_F(DamageTest, FileThatIsTakenAwayUnderAnOpenLedgerIsRefused) {
  Make(5, NoWitness());
  Ledger ledger = Ledger::Open(File(), NoWitness());
  fs::rename(File(), folder_ / "away.db");
  ExpectAdmitsNothing(ledger, "moved, removed or replaced");
  EXPECT_FALSE(fs::exists(File()));

  fs::rename(folder_ / "away.db", File());
  Ledger again = Ledger::Open(File(), NoWitness());
  fs::remove(File());
  ExpectAdmitsNothing(again, "moved, removed or replaced");
  EXPECT_FALSE(fs::exists(File()));
}

TEST_F(DamageTest, OldCopyIsRefusedWhereThisMachineHasSeenMore) {
  Make(5, WithWitness());
  const std::string old = ReadFile(File());
  Charge(WithWitness());
  const std::string fresh = ReadFile(File());
  WriteFile(File(), old);
  ExpectRefused("older copy", WithWitness());
  // The other branch has as many entries, and not the one that was seen.
  Charge(NoWitness());
  ExpectRefused("older copy, or was written anew", WithWitness());
  WriteFile(File(), fresh);
  EXPECT_EQ(VerifyLedger(File(), WithWitness()), std::ssize(hashes_) + 1);
}

// The limit that docs/ledger.md states: a whole old ledger on a machine that never saw it.
TEST_F(DamageTest, OldCopyIsTakenWhereNobodyHasSeenMore) {
  Make(5, WithWitness());
  const std::string old = ReadFile(File());
  Charge(WithWitness());
  WriteFile(File(), old);
  EXPECT_EQ(VerifyLedger(File(), {.witness_folder = folder_ / "elsewhere"}), std::ssize(hashes_));
  Charge({.witness_folder = folder_ / "elsewhere"});
}

TEST_F(DamageTest, ForgedChainIsFoundByTheWitness) {
  Make(5, WithWitness());
  std::vector<Entry> entries = Ledger::Open(File(), WithWitness()).entries();
  Forge(entries);
  EXPECT_EQ(VerifyLedger(File(), WithWitness()), std::ssize(hashes_));
  std::vector<Entry> shorter(entries.begin(), entries.end() - 2);
  Forge(shorter);
  EXPECT_EQ(VerifyLedger(File(), NoWitness()), std::ssize(hashes_) - 2);
  ExpectRefused("older copy", WithWitness());
}

TEST_F(DamageTest, ChainThatNoProgramWritesIsRefused) {
  Make(5, NoWitness());
  const std::vector<Entry> entries = Ledger::Open(File(), NoWitness()).entries();
  const auto forged = [&](std::size_t at, const std::function<void(Entry&)>& change) {
    std::vector<Entry> changed = entries;
    change(changed[at]);
    fs::remove(File());
    Make(5, NoWitness());
    Forge(changed);
  };
  forged(3, [](Entry& entry) { entry.run = std::string(32, '7'); });
  ExpectRefused("entry 3");
  forged(3, [](Entry& entry) { entry.event = "add-remove: nonsense(1)"; });
  ExpectRefused("entry 3");
  forged(3, [](Entry& entry) { entry.event = "replace-one: pure(0.125)"; });
  ExpectRefused("entry 3");
  forged(3, [](Entry& entry) { entry.failure = -0.5; });
  ExpectRefused("entry 3");
  forged(7, [](Entry& entry) { entry.event = "add-remove: 60*pure(0.125)"; });
  ExpectRefused("entry 7");
  forged(2, [&](Entry& entry) { entry = entries[0]; });
  ExpectRefused("entry 2");
  forged(0, [&](Entry& entry) { entry = entries[8]; });
  ExpectRefused("entry 0");
  forged(2, [&](Entry& entry) { entry = entries[1]; });
  ExpectRefused("entry 2");
  forged(0, [](Entry& entry) { entry.detail = "{}"; });
  ExpectRefused("entry 0");
  forged(1, [](Entry& entry) { entry.detail = "[1"; });
  ExpectRefused("entry 1");

  // These are whole as far as a charge goes; a check of everything finds them.
  forged(4, [](Entry& entry) { entry.time -= 3'600'000; });
  EXPECT_THAT(Sentence([&] { VerifyLedger(File(), NoWitness()); }), HasSubstr("entry 4"));
  forged(4, [](Entry& entry) { entry.event = "add-remove: 70*pure(0.125)"; });
  EXPECT_THAT(Sentence([&] { VerifyLedger(File(), NoWitness()); }), HasSubstr("budget"));
  EXPECT_FALSE(Ledger::Open(File(), NoWitness()).Charge(run_, {.event = Step()}).admitted);
}

TEST_F(DamageTest, EntryThatATriggerSwallowsIsNotAdmitted) {
  Make(5, NoWitness());
  Sql(File(), "CREATE TRIGGER swallow BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END");
  bool is_admitted = false;
  EXPECT_NE(Sentence([&] {
              is_admitted =
                  Ledger::Open(File(), NoWitness()).Charge(run_, {.event = Step()}).admitted;
            }),
            "");
  EXPECT_FALSE(is_admitted);
}

TEST_F(DamageTest, ClockThatWasSetBackIsRefusedUntilSomebodySaysSo) {
  std::int64_t now = 1'800'000'000'000;
  LedgerOptions options = NoWitness();
  options.clock = [&now] { return now; };
  Make(5, options);
  Ledger ledger = Ledger::Open(File(), options);
  now -= 4 * 60'000;
  EXPECT_TRUE(ledger.Charge(run_, {.event = Step()}).admitted) << "clocks differ by minutes";
  EXPECT_EQ(ledger.head().time, 1'800'000'000'000) << "time does not run back";
  now -= 3'600'000;
  const std::size_t count = ledger.entries().size();
  EXPECT_THAT(Sentence([&] { ledger.Charge(run_, {.event = Step()}); }), HasSubstr("clock"));
  EXPECT_THAT(
      Sentence([&] { ledger.BeginRun({.what = "run", .plan = Step()}, {.event = Step()}); }),
      HasSubstr("clock"));
  EXPECT_EQ(ledger.entries().size(), count);
  EXPECT_EQ(VerifyLedger(File(), options), static_cast<std::int64_t>(count));
  ledger.Note("the clock was an hour fast");
  EXPECT_EQ(ledger.head().time, now);
  EXPECT_TRUE(ledger.Charge(run_, {.event = Step()}).admitted);
  EXPECT_EQ(ledger.head().time, now);
  EXPECT_EQ(VerifyLedger(File(), options), static_cast<std::int64_t>(count) + 2);
}

// A writer is killed after it has written to the file and before it has committed.
TEST_F(DamageTest, JournalOfAKilledWriterIsPlayedBack) {
  Make(20, NoWitness());
  const std::string whole = ReadFile(File());
  const pid_t child = ::fork();
  if (child == 0) {
    sqlite3* handle = nullptr;
    sqlite3_open(File().c_str(), &handle);
    sqlite3_exec(handle, kDropTriggers, nullptr, nullptr, nullptr);
    sqlite3_exec(handle, "BEGIN IMMEDIATE; DELETE FROM entries WHERE number > 3", nullptr, nullptr,
                 nullptr);
    sqlite3_db_cacheflush(handle);
    ::kill(::getpid(), SIGKILL);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ASSERT_TRUE(fs::exists(File().string() + "-journal"));
  ASSERT_NE(ReadFile(File()), whole);
  EXPECT_EQ(Hashes(Ledger::Open(File(), NoWitness())), hashes_);
  EXPECT_EQ(VerifyLedger(File(), NoWitness()), std::ssize(hashes_));
  Charge(NoWitness());
}

TEST_F(DamageTest, FileInAnotherJournalModeIsPutBack) {
  Make(5, NoWitness());
  Sql(File(), "PRAGMA journal_mode = WAL");
  EXPECT_EQ(VerifyLedger(File(), NoWitness()), std::ssize(hashes_));
  Charge(NoWitness());
  EXPECT_EQ(ReadFile(File())[18], 1) << "the byte that says WAL";
  EXPECT_FALSE(fs::exists(File().string() + "-wal"));
  EXPECT_EQ(VerifyLedger(File(), NoWitness()), std::ssize(hashes_) + 1);
}

TEST_F(DamageTest, WhoOnlyLooksWritesNothing) {
  Make(5, NoWitness());
  const std::string whole = ReadFile(File());
  LedgerOptions options = NoWitness();
  options.read_only = true;
  Ledger ledger = Ledger::Open(File(), options);
  EXPECT_NE(Sentence([&] { ledger.Charge(run_, {.event = Step()}); }), "");
  EXPECT_NE(Sentence([&] { ledger.Note("nothing"); }), "");
  EXPECT_EQ(ReadFile(File()), whole);
}

// In a process that is nobody: root may write anything.
TEST_F(DamageTest, FileOrFolderThatCannotBeWrittenAdmitsNothing) {
  Make(5, NoWitness());
  for (const bool is_file : {true, false}) {
    fs::permissions(File(), is_file ? fs::perms(0444) : fs::perms(0666));
    fs::permissions(folder_, is_file ? fs::perms(0777) : fs::perms(0555));
    const pid_t child = ::fork();
    if (child == 0) {
      if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(77);
      int code = 1;  // admitted
      try {
        Ledger ledger = Ledger::Open(File(), NoWitness());
        code = ledger.Charge(run_, {.event = Step()}).admitted ? 1 : 2;
      } catch (const Error& error) {
        const std::string text = error.what();
        code = text.find("writ") != std::string::npos && text.back() == '.' ? 0 : 3;
      } catch (const std::exception&) {
        code = 4;
      }
      ::_exit(code);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    fs::permissions(folder_, fs::perms(0755));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "cannot become nobody";
    EXPECT_EQ(status, 0) << (is_file ? "file" : "folder");
  }
  EXPECT_EQ(VerifyLedger(File(), NoWitness()), std::ssize(hashes_));
}

}  // namespace
}  // namespace sordino
