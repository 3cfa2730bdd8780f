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
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/error.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/testing/damaged_ledger.h"
#include "sordino/ledger/testing/faulty_disk.h"
#include "sordino/ledger/testing/ledger_edits.h"
#include "sordino/ledger/testing/ledger_story.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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
  for (std::size_t at = 0; at < whole.size(); at += at < 128 ? 1 : 3) {
    SCOPED_TRACE("byte " + std::to_string(at));
    std::string damaged = whole;
    const unsigned masks[] = {0xff, 0x01, 0x03, 0x80, 0x10};
    damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ masks[at % 5]);
    disk.Restore({{"/l", damaged}});
    std::optional<Ledger> ledger;
    try {
      ledger = Ledger::Open("/l", options);
    } catch (const std::runtime_error& error) {
      ExpectSentence(error.what());
      EXPECT_THROW(VerifyLedger("/l", options), std::runtime_error);
      ++outcomes["refused"];
      continue;
    }
    EXPECT_EQ(Hashes(*ledger), hashes_);
    std::vector<std::string> longer = hashes_;
    std::string outcome = "harmless";
    try {
      EXPECT_TRUE(ledger->Charge(run_, {.event = Step()}).admitted);
      longer.push_back(ledger->head().hash);
    } catch (const std::runtime_error& error) {
      ExpectSentence(error.what());
      outcome = "refused at a charge";
    }
    ledger.reset();
    try {
      EXPECT_EQ(Hashes(Ledger::Open("/l", options)), longer);
    } catch (const std::runtime_error& error) {
      ExpectSentence(error.what());
      outcome = "refused after a charge";
    }
    ++outcomes[outcome];
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

class EditedLedger : public DamageTest, public testing::WithParamInterface<LedgerEdit> {};

TEST_P(EditedLedger, IsRefused) {
  Make(20, NoWitness());
  Sql(File(), WithoutTriggers(GetParam().sql));
  ExpectRefused(GetParam().why);
}

INSTANTIATE_TEST_SUITE_P(Edits, EditedLedger, testing::ValuesIn(kLedgerEdits),
                         [](const auto& edit) { return std::string(edit.param.name); });

// An edit of the last entry that this handle has seen, or of later ones, is found by the handle.
TEST_F(DamageTest, OpenLedgerFindsAnEditOfItsHead) {
  Make(20, NoWitness());
  Ledger ledger = Ledger::Open(File(), NoWitness());
  Sql(File(), WithoutTriggers("DELETE FROM entries WHERE number = 23"));
  ExpectAdmitsNothing(ledger, "entry 23");
}

TEST_F(DamageTest, OldCopyUnderAnOpenLedgerIsRefused) {
  for (const bool is_moved : {false, true}) {
    SCOPED_TRACE(is_moved);
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

// A journal is named after the file, so a file with two names has two.
TEST_F(DamageTest, FileWithTwoNamesIsRefused) {
  Make(5, NoWitness());
  Ledger ledger = Ledger::Open(File(), NoWitness());
  fs::create_hard_link(File(), folder_ / "second.db");
  ExpectAdmitsNothing(ledger, "second name");
  EXPECT_THAT(Sentence([&] { Charge(NoWitness()); }), HasSubstr("second name"));
  fs::remove(folder_ / "second.db");
  Charge(NoWitness());
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

// Programs that let counts wrap around have written such charges.
TEST_F(DamageTest, LedgerWhoseCountsWrappedAroundIsOverItsBudget) {
  Make(5, NoWitness());
  std::vector<Entry> entries = WithoutSums(Ledger::Open(File(), NoWitness()).entries());
  for (std::size_t i = 2; i < 6; ++i) {
    entries[i].event = "add-remove: 9223372036854775808*pure(4e-19)";
  }
  // What was returned was charged before that.
  entries[7] = entries[8];
  entries[7].number = 7;
  entries.pop_back();
  Forge(entries);
  EXPECT_THAT(Sentence([&] { VerifyLedger(File(), NoWitness()); }),
              HasSubstr("more than its budget"));
  EXPECT_GT(Ledger::Open(File(), NoWitness()).filter().UsedShare(), 1.8);
  EXPECT_FALSE(Ledger::Open(File(), NoWitness()).Charge(run_, {.event = Step()}).admitted);
}

TEST_F(DamageTest, ChainThatNoProgramWritesIsRefused) {
  Make(5, NoWitness());
  const std::vector<Entry> entries = Ledger::Open(File(), NoWitness()).entries();
  const auto forged = [&](std::size_t at, const std::function<void(Entry&)>& change) {
    std::vector<Entry> changed = entries;
    change(changed[at]);
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

  std::vector<Entry> loose = entries;
  loose[5].previous = loose[3].hash;
  Forge(loose, 5);
  ExpectRefused("entry 5");

  // These are whole as far as a charge goes; a check of everything finds them.
  forged(4, [](Entry& entry) { entry.time -= 3'600'000; });
  EXPECT_THAT(Sentence([&] { VerifyLedger(File(), NoWitness()); }), HasSubstr("entry 4"));
  forged(4, [](Entry& entry) { entry.event = "add-remove: 70*pure(0.125)"; });
  ExpectRefused("sums");
  std::vector<Entry> too_much = WithoutSums(entries);
  too_much[4].event = "add-remove: 70*pure(0.125)";
  Forge(too_much);
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

// A ledger is its two tables and two triggers.
TEST_F(DamageTest, WhatIsNotPartOfALedgerIsRefused) {
  for (const char* sql :
       {"CREATE TRIGGER x AFTER INSERT ON entries BEGIN SELECT 1; END",
        "CREATE VIEW x AS SELECT * FROM entries", "CREATE TABLE x (y)",
        "CREATE INDEX x ON entries(run)", "CREATE TRIGGER x DELETE ON head BEGIN SELECT 1; END"}) {
    SCOPED_TRACE(sql);
    Make(5, NoWitness());
    Ledger ledger = Ledger::Open(File(), NoWitness());
    Sql(File(), sql);
    ExpectRefused("'x', which is not part of a ledger");
    ExpectAdmitsNothing(ledger, "not part of a ledger");
  }
  Make(5, NoWitness());
  Sql(File(), "CREATE VIEW \"a\nb\x1b[2J'\" AS SELECT 1");
  ExpectRefused("the view 'a\\x0ab\\x1b[2J\\x27'");
  Make(5, NoWitness());
  Sql(File(), "DROP TRIGGER entries_stay");
  ExpectRefused("missing");
  Sql(File(), "CREATE TRIGGER entries_stay BEFORE DELETE ON entries BEGIN SELECT 1; END");
  ExpectRefused("its trigger entries_stay was changed");
}

TEST_F(DamageTest, ClockThatWasSetBackIsRefusedUntilSomebodySaysSo) {
  std::int64_t now = 1'800'000'000'000;
  LedgerOptions options = NoWitness();
  options.clock = [&now] { return now; };
  Make(5, options);
  Ledger ledger = Ledger::Open(File(), options);
  now -= 240'000;
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
    const std::string sql =
        "BEGIN IMMEDIATE;" + std::string(kDropTriggers) + "DELETE FROM entries WHERE number > 3";
    sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr);
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
