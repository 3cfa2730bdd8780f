// The memory against older copies: what somebody, or an accident, may do to it. A budget of 1 and
// releases of 0.3: three fit, and an old copy that is put back must not make it four.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>

#include "sordino/accounting/event.h"
#include "sordino/base/error.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/testing/damaged_ledger.h"
#include "sordino/ledger/testing/ledger_test_support.h"

namespace sordino {
namespace {

class MemoryTest : public LedgerTest {
 protected:
  MemoryTest() {
    const Ledger ledger = Create(1, 0);
    memory_ = folder_ / "witness" / "ledgers" / ledger.id();
    old_ = Bytes();
  }
  LedgerOptions Impatient() const {
    LedgerOptions options = Options();
    options.memory_patience_ms = 50;
    return options;
  }
  bool Releases(const LedgerOptions& options) const {
    const Event event = Event::Pure(Epsilon(0.3));
    return Ledger::Open(file_, options)
        .BeginRun({.what = "release", .plan = event}, {.event = event})
        .verdict.admitted;
  }
  // Releases that are made of an old copy that is put back before each of them. `attack` comes
  // after each.
  int ReleasesOfOldCopies(const std::function<void()>& attack) {
    int released = 0;
    for (int i = 0; i < 5; ++i) {
      WriteFile(file_, old_);
      try {
        released += Releases(Impatient()) ? 1 : 0;
      } catch (const std::runtime_error& error) {
        sentence_ = error.what();
      }
      attack();
    }
    return released;
  }

  std::filesystem::path memory_;
  std::string old_;
  std::string sentence_;  // of the last refusal
};

// Another program's flock.
class HeldLock {
 public:
  HeldLock(const std::filesystem::path& place, int flags)
      : descriptor_(::open(place.c_str(), flags | O_CLOEXEC, 0600)) {
    EXPECT_EQ(::flock(descriptor_, LOCK_EX | LOCK_NB), 0) << place;
  }
  ~HeldLock() { ::close(descriptor_); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  int descriptor_;
};

TEST_F(MemoryTest, ALockOnTheFolderDoesNotTurnItOff) {
  const HeldLock state(folder_ / "witness", O_RDONLY | O_DIRECTORY);
  const HeldLock heads(memory_.parent_path(), O_RDONLY | O_DIRECTORY);
  EXPECT_EQ(ReleasesOfOldCopies([] {}), 1);
  EXPECT_THAT(sentence_, testing::HasSubstr("older copy"));
}

TEST_F(MemoryTest, WhileItIsLockedNothingIsReleased) {
  const HeldLock lock(memory_.string() + ".lock", O_RDWR | O_CREAT);
  EXPECT_EQ(ReleasesOfOldCopies([] {}), 0);
  EXPECT_THAT(sentence_, testing::HasSubstr("another program holds"));
  EXPECT_EQ(Bytes(), old_) << "nothing was charged";
}

TEST_F(MemoryTest, OneThatIsDamagedRefusesTheCharge) {
  const std::string whole = ReadFile(memory_);
  for (const std::string& text :
       {std::string(), whole.substr(0, whole.size() / 2), whole.substr(0, 1), std::string("[]"),
        std::string(200, '\0'), std::string("garbage\n")}) {
    WriteFile(memory_, text);
    EXPECT_EQ(ReleasesOfOldCopies([&] { WriteFile(memory_, text); }), 0) << text;
    EXPECT_THAT(sentence_, testing::HasSubstr("is damaged"));
    EXPECT_EQ(Bytes(), old_);
    EXPECT_EQ(ReadFile(memory_), text);
  }
  // Who only looks needs none.
  LedgerOptions look = Options();
  look.read_only = true;
  EXPECT_EQ(Ledger::Open(file_, look).size(), 1);
  EXPECT_EQ(VerifyLedger(file_, Options()), 1);
}

TEST_F(MemoryTest, OneThatCannotBeReadOrWrittenRefusesTheCharge) {
  namespace fs = std::filesystem;
  fs::create_directories(memory_.string() + ".new");
  EXPECT_EQ(ReleasesOfOldCopies([] {}), 0);
  EXPECT_THAT(sentence_, testing::HasSubstr("cannot be remembered"));
  EXPECT_EQ(Bytes(), old_) << "refused before the commit";
  fs::remove(memory_.string() + ".new");
  fs::remove(memory_);
  fs::create_directories(memory_);
  EXPECT_EQ(ReleasesOfOldCopies([] {}), 0);
  EXPECT_THAT(sentence_, testing::HasSubstr("is not a file"));
  EXPECT_EQ(Bytes(), old_);
}

TEST_F(MemoryTest, ARelativeFolderIsRefused) {
  const char* const before = std::getenv("SORDINO_STATE");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("SORDINO_STATE", "state", 1);
  EXPECT_THAT([&] { Releases({}); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("begins with '/'")));
  EXPECT_THROW(Ledger::Create(folder_ / "new.db", {.epsilon = Epsilon(1), .delta = Delta(0)}, {}),
               Error);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new.db"));
  before == nullptr ? ::unsetenv("SORDINO_STATE") : ::setenv("SORDINO_STATE", kept.c_str(), 1);
}

// The library's own: it stays where it was when the process goes elsewhere.
TEST_F(MemoryTest, ARelativeFolderOfTheLibraryIsFixedAtOnce) {
  namespace fs = std::filesystem;
  const fs::path here = fs::current_path();
  fs::current_path(folder_);
  LedgerOptions options = Options();
  options.witness_folder = "witness";
  Ledger ledger = Ledger::Open("ledger.db", options);
  fs::current_path(here);
  ledger.Note("from elsewhere");
  EXPECT_THAT(ReadFile(memory_), testing::HasSubstr(ledger.head().hash));
}

// What a crash leaves after the commit of the ledger and before that of the memory: one charge that
// nobody was told of.
TEST_F(MemoryTest, ACrashBeforeItsCommitLetsTheLedgerGoOn) {
  const std::string before = ReadFile(memory_);
  EXPECT_TRUE(Releases(Options()));
  WriteFile(memory_.string() + ".new", ReadFile(memory_));
  WriteFile(memory_, before);
  EXPECT_TRUE(Releases(Options()));
  EXPECT_TRUE(Releases(Options()));
  EXPECT_FALSE(Releases(Options()));
  EXPECT_EQ(ReleasesOfOldCopies([] {}), 0);
}

// The memory has the charge when the call returns: of two copies that are open, one is charged.
TEST_F(MemoryTest, OfTwoCopiesOneIsCharged) {
  const std::filesystem::path copy = folder_ / "copy.db";
  WriteFile(copy, old_);
  Ledger one = Open();
  Ledger two = Ledger::Open(copy, Options());
  const LedgerCharge charge{.event = Event::Pure(Epsilon(0.3))};
  EXPECT_TRUE(one.BeginRun({.what = "a", .plan = charge.event}, charge).verdict.admitted);
  EXPECT_THAT(ReadFile(memory_), testing::HasSubstr(one.head().hash));
  EXPECT_THAT([&] { two.BeginRun({.what = "b", .plan = charge.event}, charge); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("older copy")));
}

}  // namespace
}  // namespace sordino
