#include "sordino/ledger/internal/witness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

const std::string kLedger(32, 'a');
const std::string kHash(64, '1');
const std::string kOtherHash(64, '2');

class WitnessTest : public testing::Test {
 protected:
  void Write(const std::string& text) const {
    fs::create_directories(File().parent_path());
    std::ofstream(File(), std::ios::binary) << text;
  }
  static void Remember(const Witness& witness, const Sighting& seen) {
    witness.Prepare(seen);
    witness.Confirm();
  }
  fs::path File() const { return folder_ / "ledgers" / kLedger; }

  const TestFolder folder_;
};

// Of the environment, put back afterwards.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* old = std::getenv(name);
    had_ = old != nullptr;
    if (had_) old_ = old;
    if (value == nullptr) {
      ::unsetenv(name);
    } else {
      ::setenv(name, value, 1);
    }
  }
  ~Variable() {
    if (had_) {
      ::setenv(name_, old_.c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  bool had_ = false;
  std::string old_;
};

TEST_F(WitnessTest, RemembersTheHeadInFoldersThatAreMade) {
  const fs::path folder = folder_ / "deep" / "er";
  CheckWitnessFolder(folder);
  const Witness witness(folder, kLedger);
  EXPECT_FALSE(witness.Last().has_value());
  Remember(witness, {.number = 7, .hash = kHash});
  EXPECT_EQ(Witness(folder, kLedger).Last(), (Sighting{.number = 7, .hash = kHash}));
  EXPECT_FALSE(Witness(folder, std::string(32, 'b')).Last().has_value());
  EXPECT_FALSE(fs::exists(folder / "ledgers" / (kLedger + ".new")));
}

// A crash leaves the old sighting until the ledger has committed.
TEST_F(WitnessTest, WhatIsPreparedCountsWhenItIsConfirmed) {
  CheckWitnessFolder(folder_);
  const Witness witness(folder_, kLedger);
  Remember(witness, {.number = 7, .hash = kHash});
  witness.Prepare({.number = 8, .hash = kOtherHash});
  EXPECT_EQ(witness.Last()->number, 7);
  witness.Prepare({.number = 9, .hash = kOtherHash});
  witness.Confirm();
  EXPECT_EQ(witness.Last()->number, 9);
}

TEST_F(WitnessTest, ADamagedFileIsRefusedAndLeftAsItIs) {
  const Witness witness(folder_, kLedger);
  const std::string hash = "\"hash\": \"" + kHash + "\"";
  for (const std::string& text : std::initializer_list<std::string>{
           "", "{", std::string(4, '\0'), "[]", "12", "{\"number\": 5}", "{" + hash + "}",
           "{\"number\": -1, " + hash + "}", "{\"number\": 1.5, " + hash + "}",
           "{\"number\": \"5\", " + hash + "}", "{\"number\": 18446744073709551615, " + hash + "}",
           "{\"number\": 5, \"hash\": \"1234\"}", "{\"number\": 5, \"hash\": 5}",
           "{\"number\": 5, " + hash + "} and more", std::string(1 << 20, '[')}) {
    Write(text);
    EXPECT_THAT([&] { witness.Last(); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("is damaged")))
        << text.substr(0, 80);
    EXPECT_EQ(fs::file_size(File()), text.size());
  }
}

TEST_F(WitnessTest, TakesNothingButAnIdentityForAFileName) {
  for (const std::string& ledger : std::initializer_list<std::string>{
           "", "..", "../../etc/passwd", std::string(31, 'a'), std::string(33, 'a'),
           std::string(32, 'A'), std::string(30, 'a') + "/b", "../" + std::string(29, 'a'),
           std::string(31, 'a') + '\0'}) {
    EXPECT_THROW(Witness(folder_, ledger), Error) << ledger;
  }
}

TEST_F(WitnessTest, WhatCannotBeWrittenIsSaidBeforeTheLedgerCommits) {
  CheckWitnessFolder(folder_);
  const Witness witness(folder_, kLedger);
  fs::create_directories(File().string() + ".new");  // a folder where the draft should be
  EXPECT_THROW(witness.Prepare({.number = 1, .hash = kHash}), Error);
  fs::remove(File().string() + ".new");
  witness.Prepare({.number = 1, .hash = kHash});
  fs::create_directories(File() / "in the way");
  EXPECT_THROW(witness.Confirm(), std::runtime_error);
}

TEST_F(WitnessTest, TheFolderIsClosedToOthers) {
  const auto mode = [](const fs::path& place) {
    return static_cast<unsigned>(fs::status(place).permissions());
  };
  CheckWitnessFolder(folder_ / "new");
  EXPECT_EQ(mode(folder_ / "new"), 0700U);
  EXPECT_EQ(mode(folder_ / "new" / "ledgers"), 0700U);
  // One that an older program left open.
  fs::create_directories(folder_ / "old" / "ledgers");
  fs::permissions(folder_ / "old", fs::perms(0777));
  fs::permissions(folder_ / "old" / "ledgers", fs::perms(0755));
  CheckWitnessFolder(folder_ / "old");
  EXPECT_EQ(mode(folder_ / "old"), 0755U);
  EXPECT_EQ(mode(folder_ / "old" / "ledgers"), 0700U);
}

TEST_F(WitnessTest, AFolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  fs::create_directories(folder_ / "theirs" / "ledgers");
  ASSERT_EQ(::chown((folder_ / "theirs" / "ledgers").c_str(), 65534, 65534), 0);
  EXPECT_THAT([&] { CheckWitnessFolder(folder_ / "theirs"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("another user")));
}

TEST_F(WitnessTest, AFolderThatOthersCanWriteToIsRefusedWhereItIsNotOurs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  fs::create_directories(folder_ / "open" / "ledgers");
  ASSERT_EQ(::chown((folder_ / "open").c_str(), 65534, 65534), 0);
  fs::permissions(folder_ / "open", fs::perms(0777));
  EXPECT_THROW(CheckWitnessFolder(folder_ / "open"), Error);
}

TEST_F(WitnessTest, ALockThatIsHeldIsWaitedForAndThenRefused) {
  CheckWitnessFolder(folder_);
  const Witness witness(folder_, kLedger);
  {
    const WitnessLock held(witness.lock_file(), std::chrono::milliseconds(0));
    EXPECT_THAT([&] { WitnessLock(witness.lock_file(), std::chrono::milliseconds(20)); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("nothing was charged")));
  }
  EXPECT_NO_THROW(WitnessLock(witness.lock_file(), std::chrono::milliseconds(0)));
}

TEST_F(WitnessTest, ChecksThatSomethingCanBeRemembered) {
  EXPECT_NO_THROW(CheckWitnessFolder(folder_ / "deep" / "er"));
  EXPECT_TRUE(fs::is_directory(folder_ / "deep" / "er"));
  std::ofstream(folder_ / "file") << "in the way";
  std::vector<fs::path> unusable = {"", folder_ / "file", "/proc/self/sordino"};
  if (::geteuid() != 0) {  // root may write everywhere
    unusable.push_back(folder_ / "locked");
    fs::create_directories(folder_ / "locked" / "ledgers");
    fs::permissions(folder_ / "locked" / "ledgers", fs::perms::owner_read | fs::perms::owner_exec);
  }
  for (const fs::path& folder : unusable) {
    EXPECT_THAT([&] { CheckWitnessFolder(folder); },
                testing::ThrowsMessage<Error>(testing::HasSubstr("set SORDINO_STATE")))
        << folder;
  }
}

// A limit of 0 bytes a file stands in for a disk that is full: the folder can be made, and a file
// in it, and not a byte is taken.
TEST_F(WitnessTest, ADiskThatTakesNoBytesIsSeenBeforeACharge) {
  CheckWitnessFolder(folder_ / "");
  EXPECT_EXIT(
      {
        std::signal(SIGXFSZ, SIG_IGN);
        const struct rlimit nothing = {};  // a comma would end an argument of the macro
        setrlimit(RLIMIT_FSIZE, &nothing);
        try {
          CheckWitnessFolder(folder_ / "");
        } catch (const Error&) {
          _exit(2);
        } catch (const std::runtime_error&) {
          _exit(1);
        }
        _exit(0);
      },
      testing::ExitedWithCode(1), "");
  EXPECT_TRUE(fs::is_empty(folder_ / "ledgers"));
}

TEST_F(WitnessTest, WhatIsNoFileIsRefused) {
  const Witness witness(folder_, kLedger);
  EXPECT_FALSE(witness.Last().has_value());  // none yet
  fs::create_directories(File());
  EXPECT_THROW(witness.Last(), Error);
  fs::remove(File());
  ASSERT_EQ(::mkfifo(File().c_str(), 0600), 0);
  EXPECT_THROW(witness.Last(), Error) << "and a pipe is not waited for";
}

TEST_F(WitnessTest, OneOfManyProcessesHoldsTheLock) {
  constexpr int kProcesses = 8;
  constexpr int kEach = 50;
  CheckWitnessFolder(folder_);
  for (int p = 0; p < kProcesses; ++p) {
    if (::fork() == 0) {
      const Witness witness(folder_, kLedger);
      for (int i = 0; i < kEach; ++i) {
        const WitnessLock lock(witness.lock_file(), std::chrono::seconds(60));
        const auto last = witness.Last();
        Remember(witness, {.number = last ? last->number + 1 : 1, .hash = kHash});
      }
      ::_exit(0);
    }
  }
  for (int p = 0; p < kProcesses; ++p) {
    int status = 0;
    ASSERT_GT(::wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Witness(folder_, kLedger).Last()->number, kProcesses * kEach);
}

TEST_F(WitnessTest, DefaultFolderFollowsTheEnvironment) {
  const Variable named("SORDINO_STATE", "/named");
  const Variable state("XDG_STATE_HOME", "/state");
  const Variable home("HOME", "/home/of");
  EXPECT_EQ(DefaultWitnessFolder(), "/named");
  {
    const Variable unset("SORDINO_STATE", nullptr);
    EXPECT_EQ(DefaultWitnessFolder(), "/state/sordino");
    const Variable relative("XDG_STATE_HOME", "state");
    EXPECT_EQ(DefaultWitnessFolder(), "/home/of/.local/state/sordino");
    const Variable empty("XDG_STATE_HOME", "");
    EXPECT_EQ(DefaultWitnessFolder(), "/home/of/.local/state/sordino");
    const Variable homeless("HOME", nullptr);
    EXPECT_EQ(DefaultWitnessFolder(), "");
  }
  const Variable relative("SORDINO_STATE", "state");
  EXPECT_THAT([] { DefaultWitnessFolder(); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("begins with '/'")));
}

}  // namespace
}  // namespace sordino
