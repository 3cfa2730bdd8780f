// Every write, truncation, deletion and sync of a ledger's life fails once, in every way that a
// disk fails, and what a call said before must be in the file afterwards.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/error.h"
#include "sordino/ledger/faulty_disk.h"
#include "sordino/ledger/ledger.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "/ledger.db";
constexpr double kStep = 0.125;  // eight of them spend the budget of 1 exactly

Event Step(std::uint64_t count = 1) { return Event::Repeat(Event::Pure(Epsilon(kStep)), count); }

// What a story said and heard. Words tell entries apart.
struct Heard {
  std::set<std::string> acknowledged;  // the call returned
  std::set<std::string> attempted;     // the call was made
  std::set<std::string> refused;       // the call returned a refusal
  bool was_created = false;
  int threw = 0;
  int errors = 0;  // of `threw`: sentences of the kind Error
};

// Two runs through three handles on one file, the last two of which are open at once: a budget of
// eight steps, nine charges, one of them returned, and a tenth that is one too many.
class Story {
 public:
  Story(FaultyDisk& disk, fs::path witness)
      : options_{.vfs = disk.name(), .witness_folder = std::move(witness), .clock = {}} {}

  Heard Tell() {
    Try(first_, [&] {
      first_ = Ledger::Create(kFile, {.epsilon = Epsilon(1), .delta = Delta(0)}, options_);
      heard_.was_created = true;
    });
    Begin(first_, first_run_, "a0");
    Charge(first_, first_run_, "a1");
    Charge(first_, first_run_, "a2");
    Return(first_, first_run_, "back");
    if (!heard_.was_created) return heard_;
    Open(first_);
    Charge(first_, first_run_, "a3");
    Open(second_);
    Begin(second_, second_run_, "b0");
    Charge(first_, first_run_, "a4");
    Charge(second_, second_run_, "b1");
    Say(second_, "note");
    Charge(first_, first_run_, "a5");
    Charge(second_, second_run_, "b2");
    Charge(first_, first_run_, "too much");
    return heard_;
  }

  static Heard TellOn(FaultyDisk& disk, const fs::path& witness) {
    return Story(disk, witness).Tell();
  }

 private:
  using Handle = std::optional<Ledger>;

  // A ledger whose disk failed admits nothing any more, also where the disk works again.
  void Try(Handle& handle, const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      ++heard_.threw;
      ++heard_.errors;
      ExpectSentence(error.what());
      handle.reset();
    } catch (const std::runtime_error& error) {
      ++heard_.threw;
      ExpectSentence(error.what());
      if (handle) ExpectUsedUp(*handle);
      handle.reset();
    }
  }
  static void ExpectSentence(const std::string& text) {
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.back(), '.') << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  void ExpectUsedUp(Ledger& ledger) {
    const std::string run = first_run_.empty() ? second_run_ : first_run_;
    heard_.attempted.insert("after the fault");
    EXPECT_THROW(ledger.Charge(run, {.event = Step(), .words = "after the fault"}),
                 std::runtime_error);
    heard_.attempted.erase("after the fault");
  }

  void Open(Handle& handle) {
    handle.reset();
    Try(handle, [&] { handle = Ledger::Open(kFile, options_); });
  }
  void Hear(const std::string& words, const Verdict& verdict) {
    (verdict.admitted ? heard_.acknowledged : heard_.refused).insert(words);
  }
  void Begin(Handle& handle, std::string& run, const std::string& words) {
    if (!handle) return;
    Try(handle, [&] {
      heard_.attempted.insert(words);
      const Begun begun = handle->BeginRun({.what = "run " + words, .plan = Step(8)},
                                           {.event = Step(), .words = words});
      Hear(words, begun.verdict);
      run = begun.id;
    });
  }
  void Charge(Handle& handle, const std::string& run, const std::string& words) {
    if (!handle || run.empty()) return;
    Try(handle, [&] {
      heard_.attempted.insert(words);
      Hear(words, handle->Charge(run, {.event = Step(), .words = words}));
    });
  }
  void Return(Handle& handle, const std::string& run, const std::string& words) {
    if (!handle || run.empty()) return;
    Try(handle, [&] {
      heard_.attempted.insert(words);
      handle->Return(run, {.event = Step(), .words = words});
      heard_.acknowledged.insert(words);
    });
  }
  void Say(Handle& handle, const std::string& words) {
    if (!handle) return;
    Try(handle, [&] {
      heard_.attempted.insert(words);
      handle->Note(words);
      heard_.acknowledged.insert(words);
    });
  }

  LedgerOptions options_;
  Heard heard_;
  Handle first_;
  Handle second_;
  std::string first_run_;
  std::string second_run_;
};

class FaultTest : public testing::Test {
 protected:
  FaultTest() : disk_("faulty") {
    fs::remove_all(witness_);
    fs::create_directories(witness_);
  }
  ~FaultTest() override { fs::remove_all(witness_); }

  LedgerOptions Options() const {
    return {.vfs = disk_.name(), .witness_folder = witness_, .clock = {}};
  }

  // What is in the file is what was said, and perhaps what was on its way. Returns whether the file
  // could be opened.
  bool Check(const Heard& heard, const std::string& where) {
    SCOPED_TRACE(where);
    std::optional<Ledger> ledger;
    try {
      ledger = Ledger::Open(kFile, Options());
      EXPECT_EQ(VerifyLedger(kFile, Options()), std::ssize(ledger->entries()));
    } catch (const Error& error) {
      EXPECT_FALSE(heard.was_created) << error.what();
      EXPECT_TRUE(heard.acknowledged.empty());
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
    EXPECT_EQ(ledger->filter().Total().ToString(),
              steps == 0 ? Event::None().ToString() : Step(steps).ToString());
    return true;
  }

  // How many operations, and which, a story without a fault has.
  std::vector<DiskOperation> Operations() {
    disk_.Restore({});
    const Heard heard = Story::TellOn(disk_, witness_);
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
  fs::path witness_ = fs::path(testing::TempDir()) / ("fault-" + std::to_string(::getpid()));
};

TEST_F(FaultTest, PowerLossAtAnyOperationLosesNothingThatWasSaid) {
  constexpr std::uint64_t kSeeds = 12;
  const auto operations = std::ssize(Operations());
  std::int64_t losses = 0;
  std::int64_t opened = 0;
  for (std::int64_t n = 0; n < operations; ++n) {
    disk_.Restore({});
    disk_.FailAt(n, DiskFault::kPowerLoss);
    const Heard heard = Story::TellOn(disk_, witness_);
    ASSERT_FALSE(disk_.has_power());
    ASSERT_GT(heard.threw, 0) << n;
    std::vector<DiskImage> images;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) images.push_back(disk_.Survivors(seed));
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      disk_.Restore(images[seed]);
      ++losses;
      opened += Check(heard, "operation " + std::to_string(n) + ", seed " + std::to_string(seed));
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
    const Heard heard = Story::TellOn(disk_, witness_);
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      if (seed != 0) {
        disk_.Restore({});
        disk_.FailAt(n, DiskFault::kPowerLoss);
      }
      const Heard again = seed == 0 ? heard : Story::TellOn(disk_, witness_);
      disk_.Restore(disk_.Survivors(seed));
      for (std::int64_t m = 0;; ++m) {
        disk_.FailAt(m, DiskFault::kPowerLoss);
        try {
          Ledger::Open(kFile, Options());
        } catch (const std::runtime_error&) {
        }
        if (disk_.has_power()) break;
        ++losses;
        disk_.Restore(disk_.Survivors(seed + static_cast<std::uint64_t>(m)));
      }
      disk_.Heal();
      Check(again, "operation " + std::to_string(n) + ", seed " + std::to_string(seed));
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
    const Heard heard = Story::TellOn(disk_, witness_);
    ASSERT_TRUE(disk_.HasFailed());
    // SQLite's own file system does not tell anybody that the sync of a folder failed when a
    // journal was made, and neither does a deletion that need not be durable.
    const bool may_be_silent =
        operations[n] == DiskOperation::kSyncFolder || operations[n] == DiskOperation::kDelete;
    if (!may_be_silent) {
      EXPECT_GT(heard.threw, 0) << "operation " << n;
    }
    went_on += heard.acknowledged.count("b2");
    ++faults;
    disk_.Heal();
    const std::string where = std::string(GetParam().name) + " at operation " + std::to_string(n);
    std::vector<DiskImage> images;
    for (std::uint64_t seed = 0; seed < 6; ++seed) images.push_back(disk_.Survivors(seed));
    Check(heard, where + ", on the same disk");
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      disk_.Restore(images[seed]);
      Check(heard, where + ", power loss " + std::to_string(seed));
    }
    if (HasFailure()) return;
  }
  Report("faults", faults);
  EXPECT_GT(faults, 5);
  if (!GetParam().lasts) EXPECT_GT(went_on, 0);
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
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(FaultTest, ReadErrorAtAnyReadLosesNothingThatWasSaid) {
  Operations();
  disk_.Restore({});
  Story::TellOn(disk_, witness_);
  const std::int64_t reads = disk_.reads();
  for (std::int64_t n = 0; n < reads; ++n) {
    disk_.Restore({});
    disk_.FailReadsFrom(n, n % 2 == 0);
    const Heard heard = Story::TellOn(disk_, witness_);
    disk_.Heal();
    Check(heard, "read " + std::to_string(n));
    if (HasFailure()) return;
  }
  Report("read errors", reads);
  EXPECT_GT(reads, 10);
}

TEST_F(FaultTest, FailedSyncOfAChargeThrowsAndUsesTheLedgerUp) {
  disk_.Restore({});
  Ledger ledger = Ledger::Create(kFile, {.epsilon = Epsilon(1), .delta = Delta(0)}, Options());
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

// A disk that is full for real: the system refuses to let a file grow past a limit.
TEST_F(FaultTest, FileThatMayNotGrowEndsInASentenceAndKeepsWhatWasSaid) {
  const fs::path file = witness_ / "real.db";
  const LedgerOptions options{.vfs = {}, .witness_folder = witness_, .clock = {}};
  Ledger::Create(file, {.epsilon = Epsilon(kInfinity), .delta = Delta(0)}, options);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 48 << 10, .rlim_max = 48 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    int code = 1;  // the limit was never met
    try {
      Ledger ledger = Ledger::Open(file, options);
      const Begun run = ledger.BeginRun({.what = "run", .plan = Step(10'000)}, {.event = Step()});
      try {
        for (int i = 0; i < 2'000; ++i) {
          if (!ledger.Charge(run.id, {.event = Step()}).admitted) break;
          if (::write(pipe[1], "+", 1) != 1) break;
        }
      } catch (const Error&) {
        code = 2;
      } catch (const std::runtime_error&) {
        code = 3;  // as it should be, if it stays so
        try {
          ledger.Charge(run.id, {.event = Step()});
        } catch (const std::runtime_error&) {
          code = 0;
        }
      }
    } catch (const std::exception&) {
      code = 4;
    }
    ::_exit(code);
  }
  ::close(pipe[1]);
  std::int64_t said = 0;
  for (char plus = 0; ::read(pipe[0], &plus, 1) == 1;) ++said;
  ::close(pipe[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_GT(said, 10);
  const Ledger ledger = Ledger::Open(file, options);
  const std::int64_t charges = std::ssize(ledger.entries()) - 3;  // budget, run, first charge
  EXPECT_GE(charges, said);
  EXPECT_LE(charges, said + 1);
  VerifyLedger(file, options);
}

}  // namespace
}  // namespace sordino
