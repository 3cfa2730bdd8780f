// Every write, truncation, deletion and sync of a ledger's life fails once, in every way that a
// disk fails, and what a call said before must be in the file afterwards.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/testing/faulty_disk.h"
#include "sordino/ledger/testing/ledger_story.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

// A seed of its own for each operation, of the way `way` of losing power (0 to 5).
std::uint64_t Seed(std::int64_t operation, std::uint64_t way) {
  return 6 * static_cast<std::uint64_t>(operation + 1) + way;
}

class FaultTest : public testing::Test {
 protected:
  FaultTest() : disk_("faulty") { fs::create_directories(witness_); }

  LedgerOptions Options() const {
    return {.vfs = disk_.name(), .witness_folder = witness_, .clock = {}};
  }

  // What is in the file is what was said, and perhaps what was on its way. Returns whether the file
  // could be opened, which it must be unless it was never there.
  bool Check(const Heard& heard, const std::string& where, bool must_open = true) {
    SCOPED_TRACE(where);
    std::optional<Ledger> ledger;
    try {
      ledger = Ledger::Open(kStoryFile, Options());
      EXPECT_EQ(VerifyLedger(kStoryFile, Options()), std::ssize(ledger->entries()));
    } catch (const Error& error) {
      EXPECT_FALSE(heard.was_created && must_open) << error.what();
      return false;
    }
    std::map<std::string, int> found;
    int steps = 0;
    for (const Entry& entry : ledger->entries()) {
      if (entry.kind == EntryKind::kBudget || entry.kind == EntryKind::kRun) continue;
      ++found[ParseTextJson(entry.detail)];
      if (entry.kind == EntryKind::kCharge) ++steps;
      if (entry.kind == EntryKind::kReturn) --steps;
    }
    for (const std::string& words : heard.acknowledged) {
      EXPECT_EQ(found[words], 1) << "'" << words << "' was acknowledged";
    }
    for (const auto& [words, count] : found) {
      EXPECT_LE(count, 1) << words;
      if (count == 0) continue;
      EXPECT_EQ(heard.attempted.count(words), 1U) << words << " was never said";
      EXPECT_EQ(heard.refused.count(words), 0U) << words << " was refused";
    }
    EXPECT_LE(steps, 8);
    EXPECT_EQ(ledger->Total().ToString(),
              steps == 0 ? Event::None().ToString() : Step(steps).ToString());
    return true;
  }

  // A story from the beginning, on an empty disk of a machine that has seen nothing.
  Heard Tell() {
    fs::remove_all(witness_);
    return LedgerStory::TellOn(disk_, witness_);
  }

  // What may be there after a loss of power now: each of these is another end of the story.
  struct End {
    std::uint64_t seed;
    DiskImage image;
    std::map<fs::path, std::string> witness;
  };
  std::vector<End> Ends(const std::vector<std::uint64_t>& seeds) const {
    std::map<fs::path, std::string> witness;
    std::error_code none;
    for (const auto& file : fs::directory_iterator(witness_ / "ledgers", none)) {
      std::ifstream in(file.path());
      witness[file.path()] = {std::istreambuf_iterator<char>(in), {}};
    }
    std::vector<End> ends;
    ends.reserve(seeds.size());
    for (const std::uint64_t seed : seeds) {
      ends.push_back({.seed = seed, .image = disk_.Survivors(seed), .witness = witness});
    }
    return ends;
  }
  void Restore(const End& end) {
    disk_.Restore(end.image);
    fs::remove_all(witness_);
    fs::create_directories(witness_ / "ledgers");
    for (const auto& [file, text] : end.witness) std::ofstream(file) << text;
  }

  // How many operations, and which, a story without a fault has.
  std::vector<DiskOperation> Operations() {
    disk_.Restore({});
    const Heard heard = Tell();
    EXPECT_EQ(heard.threw, 0);
    EXPECT_EQ(heard.acknowledged.size(), 11U);
    EXPECT_EQ(heard.refused.count("too much"), 1U);
    std::vector<DiskOperation> operations = disk_.operations();
    EXPECT_TRUE(Check(heard, "without a fault"));
    return operations;
  }

  void Report(const char* what, std::int64_t count) {
    RecordProperty(what, std::to_string(count));
    std::cout << "[ COUNTED  ] " << what << ": " << count << "\n";
  }

  FaultyDisk disk_;
  // In memory: what is in it is made anew thousands of times.
  const TestFolder folder_ = TestFolder::InMemory();
  const fs::path witness_ = folder_ / "witness";
};

TEST_F(FaultTest, PowerLossAtAnyOperationLosesNothingThatWasSaid) {
  const auto operations = std::ssize(Operations());
  std::int64_t losses = 0;
  std::int64_t opened = 0;
  for (std::int64_t n = 0; n < operations; ++n) {
    disk_.Restore({});
    disk_.FailAt(n, DiskFault::kPowerLoss);
    const Heard heard = Tell();
    ASSERT_FALSE(disk_.has_power());
    ASSERT_GT(heard.threw, 0) << n;
    for (const End& end :
         Ends({0, 1, 2, 3, 4, 5, Seed(n, 2), Seed(n, 3), Seed(n, 4), Seed(n, 5)})) {
      Restore(end);
      ++losses;
      opened +=
          Check(heard, "operation " + std::to_string(n) + ", seed " + std::to_string(end.seed));
    }
    if (HasFailure()) return;
  }
  Report("power losses", losses);
  EXPECT_GT(opened, losses * 3 / 4);
}

// The journal of a transaction that the power cut off is played back on opening, and the power
// fails again in the middle of that, and again.
TEST_F(FaultTest, PowerLossDuringRecoveryLosesNothingThatWasSaid) {
  const auto operations = std::ssize(Operations());
  std::int64_t losses = 0;
  for (std::int64_t n = 0; n < operations; ++n) {
    disk_.Restore({});
    disk_.FailAt(n, DiskFault::kPowerLoss);
    const Heard heard = Tell();
    for (const End& end : Ends({0, 1, Seed(n, 4)})) {
      Restore(end);
      for (std::int64_t m = 0;; ++m) {
        disk_.FailAt(m, DiskFault::kPowerLoss);
        try {
          Ledger::Open(kStoryFile, Options());
        } catch (const std::runtime_error&) {
        }
        if (disk_.has_power()) break;
        ++losses;
        disk_.Restore(disk_.Survivors(end.seed + static_cast<std::uint64_t>(m)));
      }
      disk_.Heal();
      Check(heard, "operation " + std::to_string(n) + ", seed " + std::to_string(end.seed));
    }
    if (HasFailure()) return;
  }
  Report("power losses during recovery", losses);
  EXPECT_GT(losses, operations / 4);
}

struct Kind {
  const char* name;
  DiskFault fault;
  bool lasts;
};

class FaultKindTest : public FaultTest, public testing::WithParamInterface<Kind> {};

// The other handle goes on where the disk does. Then the power fails too, and takes with it what
// no sync made durable.
TEST_P(FaultKindTest, AtAnyOperationLosesNothingThatWasSaid) {
  const std::vector<DiskOperation> operations = Operations();
  std::int64_t faults = 0;
  std::int64_t went_on = 0;
  for (std::size_t n = 0; n < operations.size(); ++n) {
    if (!Applies(GetParam().fault, operations[n])) continue;
    disk_.Restore({});
    disk_.FailAt(static_cast<std::int64_t>(n), GetParam().fault, GetParam().lasts);
    const Heard heard = Tell();
    ASSERT_TRUE(disk_.HasFailed());
    // SQLite's own file system does not look at whether the sync of a folder failed when a journal
    // was made. After a loss of power the file may then be refused; it never says less.
    const bool is_folder = operations[n] == DiskOperation::kSyncFolder;
    const bool is_sync = GetParam().fault == DiskFault::kSyncError;
    EXPECT_TRUE(heard.threw > 0 || is_folder) << "operation " << n;
    went_on += heard.acknowledged.count("b2");
    ++faults;
    disk_.Heal();
    const std::string where = std::string(GetParam().name) + " at operation " + std::to_string(n);
    const std::vector<End> ends = Ends({0, Seed(static_cast<std::int64_t>(n), 4)});
    Check(heard, where + ", on the same disk");
    for (const End& end : ends) {
      Restore(end);
      const bool must_open = !is_folder && !(is_sync && GetParam().lasts);
      Check(heard, where + ", power loss " + std::to_string(end.seed), must_open);
    }
    if (HasFailure()) return;
  }
  Report("faults", faults);
  EXPECT_GT(faults, 5);
  EXPECT_TRUE(GetParam().lasts || went_on > 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, FaultKindTest,
                         testing::Values(Kind{"WriteErrorOnce", DiskFault::kWriteError, false},
                                         Kind{"WriteErrorFromThenOn", DiskFault::kWriteError, true},
                                         Kind{"ShortWriteOnce", DiskFault::kShortWrite, false},
                                         Kind{"FullDiskFromThenOn", DiskFault::kFull, true},
                                         Kind{"FullDiskOnce", DiskFault::kFull, false},
                                         Kind{"SyncErrorOnce", DiskFault::kSyncError, false},
                                         Kind{"SyncErrorFromThenOn", DiskFault::kSyncError, true},
                                         Kind{"DeleteErrorOnce", DiskFault::kDeleteError, false},
                                         Kind{"ReadOnlyFromThenOn", DiskFault::kReadOnly, true}),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_F(FaultTest, ReadErrorAtAnyReadLosesNothingThatWasSaid) {
  Operations();
  disk_.Restore({});
  Tell();
  const std::int64_t reads = disk_.reads();
  for (std::int64_t n = 0; n < reads; ++n) {
    disk_.Restore({});
    disk_.FailReadsFrom(n, n % 2 == 0);
    const Heard heard = Tell();
    disk_.Heal();
    Check(heard, "read " + std::to_string(n));
    if (HasFailure()) return;
  }
  Report("read errors", reads);
  EXPECT_GT(reads, 10);
}

TEST_F(FaultTest, FailedSyncOfAChargeThrowsAndUsesTheLedgerUp) {
  disk_.Restore({});
  Ledger ledger = Ledger::Create(kStoryFile, {.epsilon = Epsilon(1), .delta = Delta(0)}, Options());
  const Begun run = ledger.BeginRun({.what = "run", .plan = Step(8)}, {.event = Step()});
  ASSERT_TRUE(run.verdict.admitted);
  const std::size_t before = disk_.operations().size();
  ASSERT_TRUE(ledger.Charge(run.id, {.event = Step()}).admitted);
  std::vector<std::size_t> syncs;
  for (std::size_t i = before; i < disk_.operations().size(); ++i) {
    if (disk_.operations()[i] == DiskOperation::kSync) syncs.push_back(i - before);
  }
  ASSERT_GE(syncs.size(), 2U) << "the journal and the file";
  disk_.FailAt(static_cast<std::int64_t>(disk_.operations().size() + syncs.back()),
               DiskFault::kSyncError);
  try {
    ledger.Charge(run.id, {.event = Step()});
    FAIL() << "a charge that was not synced was admitted";
  } catch (const Error& error) {
    FAIL() << "a disk that fails is no mistake: " << error.what();
  } catch (const std::runtime_error&) {
  }
  ASSERT_TRUE(disk_.HasFailed());
  disk_.Heal();
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(ledger.Charge(run.id, {.event = Step()}), std::runtime_error);
    EXPECT_THROW(ledger.BeginRun({.what = "run", .plan = Step()}, {.event = Step()}),
                 std::runtime_error);
  }
}

TEST_F(FaultTest, FailedReadUsesTheLedgerUp) {
  disk_.Restore({});
  Ledger ledger = Ledger::Create(kStoryFile, {.epsilon = Epsilon(1), .delta = Delta(0)}, Options());
  const Begun run = ledger.BeginRun({.what = "run", .plan = Step(8)}, {.event = Step()});
  disk_.FailReadsFrom(disk_.reads(), true);
  EXPECT_THROW(ledger.Refresh(), std::runtime_error);
  ASSERT_TRUE(disk_.HasFailed());
  disk_.Heal();
  EXPECT_THROW(ledger.Charge(run.id, {.event = Step()}), std::runtime_error);
}

// Without this the disk might be one that nothing is ever lost on.
TEST(FaultyDisk, LosesWhatADatabaseDoesNotSync) {
  const auto lost = [](const std::string& synchronous) {
    FaultyDisk disk("plain");
    const auto execute = [](sqlite3* handle, const std::string& sql) {
      return sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
    };
    const auto open = [] {
      sqlite3* handle = nullptr;
      sqlite3_open_v2("/plain.db", &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "plain");
      return std::unique_ptr<sqlite3, decltype(&sqlite3_close)>(handle, &sqlite3_close);
    };
    int losses = 0;
    for (std::int64_t n = 0;; ++n) {
      disk.Restore({});
      disk.FailAt(n, DiskFault::kPowerLoss);
      int committed = 0;
      {
        const auto handle = open();
        execute(handle.get(), "PRAGMA synchronous = " + synchronous);
        if (execute(handle.get(), "CREATE TABLE t (i)")) {
          while (committed < 5 && execute(handle.get(), "INSERT INTO t VALUES (1)")) ++committed;
        }
      }
      if (disk.has_power()) return losses;
      std::vector<DiskImage> images;
      for (std::uint64_t seed = 0; seed < 12; ++seed) images.push_back(disk.Survivors(seed));
      for (const DiskImage& image : images) {
        disk.Restore(image);
        const auto handle = open();
        int rows = 0;
        const bool is_whole = sqlite3_exec(
                                  handle.get(), "SELECT i FROM t",
                                  [](void* count, int, char**, char**) {
                                    ++*static_cast<int*>(count);
                                    return 0;
                                  },
                                  &rows, nullptr) == SQLITE_OK;
        if (committed > 0 && (!is_whole || rows < committed)) ++losses;
      }
    }
  };
  EXPECT_EQ(lost("EXTRA"), 0);
  EXPECT_GT(lost("FULL"), 0) << "a journal whose deletion was lost is played back";
  EXPECT_GT(lost("OFF"), 0);
}

}  // namespace
}  // namespace sordino
