// Real processes on one file: racing for what is left of a budget, killed while they do, and out of
// space.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/testing/faulty_disk.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

constexpr int kProcesses = 16;
constexpr double kCost = 0.125;

Event RaceStep(std::uint64_t count = 1) {
  return Event::Repeat(Event::Pure(Epsilon(kCost)), count);
}

// A page that parent and children see.
struct Shared {
  std::atomic<std::int64_t> ready = 0;
  std::atomic<bool> go = false;
  std::atomic<std::int64_t> admitted = 0;  // counted after the call
  std::atomic<std::int64_t> refused = 0;
  std::atomic<std::int64_t> returning = 0;  // counted before the call
  std::array<char, 512> words{};            // of a child that failed
};

class RaceTest : public testing::Test {
 protected:
  RaceTest() {
    void* const page =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (page) Shared;
  }
  ~RaceTest() override {
    EndLiving();
    ::munmap(shared_, sizeof(Shared));
  }

  LedgerOptions Options() const {
    return {.witness_folder = folder_ / "state", .memory_patience_ms = 120'000};
  }
  fs::path File() const { return folder_ / "ledger.db"; }

  // A child that throws leaves its sentence and exits with 1.
  pid_t Start(const std::function<void()>& act) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    try {
      act();
    } catch (const std::exception& error) {
      std::strncpy(shared_->words.data(), error.what(), shared_->words.size() - 1);
      ::_exit(1);
    }
    ::_exit(0);
  }
  void ExpectEndsWell(pid_t child) const {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << shared_->words.data();
  }
  // Everybody has opened the ledger before anybody charges it.
  void WaitForAll() const {
    ++shared_->ready;
    while (!shared_->go) std::this_thread::yield();
  }
  void Race(const std::function<void()>& act) const {
    shared_->ready = 0;
    shared_->go = false;
    shared_->admitted = 0;
    shared_->refused = 0;
    std::vector<pid_t> children;
    children.reserve(kProcesses);
    for (int i = 0; i < kProcesses; ++i) children.push_back(Start(act));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (shared_->ready < kProcesses && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    shared_->go = true;
    for (const pid_t child : children) ExpectEndsWell(child);
  }
  void EndLiving() {
    for (const pid_t child : std::exchange(living_, {})) {
      ::kill(child, SIGKILL);
      int status = 0;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status)) << shared_->words.data();
    }
  }
  void Count(const Verdict& verdict) const {
    ++(verdict.admitted ? shared_->admitted : shared_->refused);
  }

  const TestFolder folder_;
  Shared* shared_ = nullptr;
  std::vector<pid_t> living_;  // that do not end by themselves
};

std::int64_t CountOf(const Ledger& ledger, EntryKind kind) {
  std::int64_t count = 0;
  for (const Entry& entry : ledger.entries()) count += entry.kind == kind ? 1 : 0;
  return count;
}

TEST_F(RaceTest, ExactlyWhatIsLeftIsAdmittedOfSixteenProcesses) {
  for (int left = 1; left <= 7; left += 2) {
    fs::remove(File());
    std::string run;
    {
      Ledger ledger = Ledger::Create(File(), {.epsilon = Epsilon(1), .delta = Delta(0)}, Options());
      run = ledger.BeginRun({.what = "run", .plan = RaceStep(8)}, {.event = RaceStep(8 - left)}).id;
    }
    Race([&] {
      Ledger ledger = Ledger::Open(File(), Options());
      ledger.Rejoin(run, RaceStep(8).ToString());
      WaitForAll();
      Count(ledger.Charge(run, {.event = RaceStep()}));
    });
    EXPECT_EQ(shared_->admitted, left);
    EXPECT_EQ(shared_->refused, kProcesses - left);
    Ledger ledger = Ledger::Open(File(), Options());
    EXPECT_EQ(ledger.Total().ToString(), RaceStep(8).ToString());
    EXPECT_EQ(CountOf(ledger, EntryKind::kCharge), 1 + left);
    VerifyLedger(File(), Options());
  }
}

TEST_F(RaceTest, ExactlyAsManyRunsBeginAsTheBudgetAdmits) {
  Ledger::Create(File(), {.epsilon = Epsilon(3 * kCost), .delta = Delta(0)}, Options());
  Race([&] {
    Ledger ledger = Ledger::Open(File(), Options());
    WaitForAll();
    Count(ledger.BeginRun({.what = "run", .plan = RaceStep(8)}, {.event = RaceStep()}).verdict);
  });
  EXPECT_EQ(shared_->admitted, 3);
  EXPECT_EQ(shared_->refused, kProcesses - 3);
  const Ledger ledger = Ledger::Open(File(), Options());
  EXPECT_EQ(CountOf(ledger, EntryKind::kRun), 3);
  EXPECT_EQ(CountOf(ledger, EntryKind::kCharge), 3);
  VerifyLedger(File(), Options());
}

TEST_F(RaceTest, OneOfSixteenProcessesCreatesTheLedger) {
  std::atomic<std::int64_t>& created = shared_->admitted;
  Race([&] {
    WaitForAll();
    try {
      Ledger::Create(File(), {.epsilon = Epsilon(1), .delta = Delta(0)}, Options());
      ++created;
    } catch (const Error&) {
      ++shared_->refused;
    }
  });
  EXPECT_EQ(created, 1);
  EXPECT_EQ(shared_->refused, kProcesses - 1);
  EXPECT_EQ(VerifyLedger(File(), Options()), 1);
}

// Another one writes, and says so to the witness, at the very moment after the file was read.
TEST_F(RaceTest, LedgerIsNotOldBecauseAnotherHasJustWritten) {
  FaultyDisk disk("memory");
  LedgerOptions options = Options();
  options.vfs = disk.name();
  Ledger writer = Ledger::Create("/l", {.epsilon = Epsilon(kInfinity), .delta = Delta(0)}, options);
  const std::string run =
      writer.BeginRun({.what = "run", .plan = RaceStep(1'000)}, {.event = RaceStep()}).id;
  int written = 0;
  disk.AfterUnlock([&] {
    EXPECT_TRUE(writer.Charge(run, {.event = RaceStep()}).admitted);
    ++written;
  });
  EXPECT_NO_THROW(Ledger::Open("/l", options));
  EXPECT_NO_THROW(VerifyLedger("/l", options));
  disk.AfterUnlock(nullptr);
  EXPECT_GT(written, 2);
}

TEST_F(RaceTest, LedgerThatIsWrittenCanBeOpenedAllTheTime) {
  std::string run;
  {
    Ledger ledger =
        Ledger::Create(File(), {.epsilon = Epsilon(kInfinity), .delta = Delta(0)}, Options());
    run = ledger.BeginRun({.what = "run", .plan = RaceStep(100'000)}, {.event = RaceStep()}).id;
  }
  constexpr int kWriters = 4;
  constexpr int kCharges = 50;
  constexpr int kMaxOpenings = 100'000;  // ends a reader whose writers have failed
  std::vector<pid_t> children;
  for (int i = 0; i < kWriters; ++i) {
    children.push_back(Start([&] {
      Ledger ledger = Ledger::Open(File(), Options());
      for (int charge = 0; charge < kCharges; ++charge) {
        ledger.Charge(run, {.event = RaceStep()});
        ++shared_->admitted;
      }
    }));
    children.push_back(Start([&] {
      for (int opening = 0; opening < kMaxOpenings; ++opening) {
        Ledger::Open(File(), Options());
        ++shared_->ready;
        if (shared_->admitted == std::int64_t{kWriters} * kCharges) break;
      }
    }));
  }
  for (const pid_t child : children) ExpectEndsWell(child);
  EXPECT_GE(shared_->ready, kWriters);
  EXPECT_EQ(shared_->admitted, kWriters * kCharges);
  EXPECT_EQ(CountOf(Ledger::Open(File(), Options()), EntryKind::kCharge), 1 + shared_->admitted);
}

// Of many processes most are killed while they wait, of few while they write.
TEST_F(RaceTest, KilledProcessesNeverLeaveAReleaseUncharged) {
  std::string run;
  {
    Ledger ledger =
        Ledger::Create(File(), {.epsilon = Epsilon(1'000), .delta = Delta(0)}, Options());
    run = ledger.BeginRun({.what = "run", .plan = RaceStep(8'000)}, {.event = RaceStep()}).id;
  }
  const auto live = [&] {
    Ledger ledger = Ledger::Open(File(), Options());
    for (int i = 0;; ++i) {
      if (!ledger.Charge(run, {.event = RaceStep(2)}).admitted) return;
      ++shared_->admitted;
      if (i % 2 == 0) continue;
      ++shared_->returning;
      ledger.Return(run, {.event = RaceStep()});
    }
  };
  int kills = 0;
  std::mt19937_64 random(1);
  for (const auto& [processes, kills_of_them] : {std::pair(kProcesses, 100), std::pair(2, 120)}) {
    for (int i = 0; i < processes; ++i) living_.push_back(Start(live));
    for (int i = 0; i < kills_of_them; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
      pid_t& child = living_[random() % living_.size()];
      ::kill(child, SIGKILL);
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status)) << shared_->words.data();
      child = Start(live);
    }
    EndLiving();
    kills += kills_of_them + processes;
  }
  Ledger ledger = Ledger::Open(File(), Options());
  const std::int64_t charges = CountOf(ledger, EntryKind::kCharge) - 1;
  const std::int64_t returns = CountOf(ledger, EntryKind::kReturn);
  EXPECT_GE(charges, shared_->admitted);
  EXPECT_LE(charges, shared_->admitted + kills);
  EXPECT_LE(returns, shared_->returning);
  EXPECT_EQ(ledger.Total().ToString(),
            RaceStep(static_cast<std::uint64_t>(1 + 2 * charges - returns)).ToString());
  EXPECT_EQ(VerifyLedger(File(), Options()), std::ssize(ledger.entries()));
  EXPECT_GT(shared_->admitted, 10);
  RecordProperty("kills", kills);
  std::cout << "[ COUNTED  ] kills: " << kills << ", charges: " << charges
            << ", of them unknown to anybody: " << charges - shared_->admitted << "\n";
}

TEST_F(RaceTest, SpentBudgetAdmitsNothingHoweverSmall) {
  Ledger ledger = Ledger::Create(File(), {.epsilon = Epsilon(1), .delta = Delta(0)}, Options());
  const std::string run =
      ledger.BeginRun({.what = "run", .plan = RaceStep(8)}, {.event = RaceStep(8)}).id;
  Ledger other = Ledger::Open(File(), Options());
  for (const double epsilon : {1e-9, 1e-3, 1.0}) {
    const LedgerCharge small{.event = Event::Pure(Epsilon(epsilon))};
    EXPECT_FALSE(ledger.Charge(run, small).admitted) << epsilon;
    EXPECT_FALSE(other.Charge(run, small).admitted) << epsilon;
    EXPECT_FALSE(other.BeginRun({.what = "run", .plan = small.event}, small).verdict.admitted);
  }
  EXPECT_EQ(VerifyLedger(File(), Options()), 3);
}

TEST_F(RaceTest, ForkedChildThatChargesIsStopped) {
  Ledger ledger = Ledger::Create(File(), {.epsilon = Epsilon(1), .delta = Delta(0)}, Options());
  const std::string run =
      ledger.BeginRun({.what = "run", .plan = RaceStep(8)}, {.event = RaceStep()}).id;
  const pid_t child = Start([&] { ledger.Charge(run, {.event = RaceStep()}); });
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
  EXPECT_TRUE(ledger.Charge(run, {.event = RaceStep()}).admitted);
  EXPECT_EQ(VerifyLedger(File(), Options()), 4);
}

// A disk that is full for real: the system refuses to let a file grow past a limit.
TEST_F(RaceTest, FileThatMayNotGrowTakesNoChargeAndKeepsWhatWasSaid) {
  Ledger::Create(File(), {.epsilon = Epsilon(kInfinity), .delta = Delta(0)}, Options());
  ExpectEndsWell(Start([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 48 << 10, .rlim_max = 48 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Ledger ledger = Ledger::Open(File(), Options());
    const Begun run =
        ledger.BeginRun({.what = "run", .plan = RaceStep(10'000)}, {.event = RaceStep()});
    for (int i = 0; i < 1'000 && shared_->refused < 3; ++i) {
      try {
        ledger.Charge(run.id, {.event = RaceStep()});
        ++shared_->admitted;
      } catch (const Error&) {
        throw;  // a disk that fails is no mistake
      } catch (const std::runtime_error&) {
        ++shared_->refused;
        continue;
      }
      if (shared_->refused > 0) throw Error("a charge was admitted after one that failed");
    }
  }));
  EXPECT_EQ(shared_->refused, 3);
  EXPECT_GT(shared_->admitted, 10);
  const Ledger ledger = Ledger::Open(File(), Options());
  const std::int64_t charges = CountOf(ledger, EntryKind::kCharge) - 1;
  EXPECT_GE(charges, shared_->admitted);
  EXPECT_LE(charges, shared_->admitted + 1);
  EXPECT_EQ(VerifyLedger(File(), Options()), std::ssize(ledger.entries()));
}

TEST_F(RaceTest, TwoHandlesOfOneProcessSeeEachOther) {
  Ledger first = Ledger::Create(File(), {.epsilon = Epsilon(1), .delta = Delta(0)}, Options());
  Ledger second = Ledger::Open(File(), Options());
  const std::string run =
      first.BeginRun({.what = "run", .plan = RaceStep(8)}, {.event = RaceStep(4)}).id;
  EXPECT_EQ(second.entries().size(), 1U);
  second.Refresh();
  EXPECT_EQ(second.entries().size(), 3U);
  EXPECT_EQ(second.head().hash, first.head().hash);
  EXPECT_TRUE(second.Charge(run, {.event = RaceStep(2)}).admitted);
  // Not refreshed, and yet it knows when it decides.
  EXPECT_FALSE(first.Charge(run, {.event = RaceStep(3)}).admitted);
  EXPECT_TRUE(first.Charge(run, {.event = RaceStep(2)}).admitted);
  EXPECT_FALSE(second.Charge(run, {.event = RaceStep()}).admitted);
  EXPECT_EQ(second.Total().ToString(), RaceStep(8).ToString());
  EXPECT_EQ(VerifyLedger(File(), Options()), 5);
}

}  // namespace
}  // namespace sordino
