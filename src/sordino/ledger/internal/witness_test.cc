#include "sordino/ledger/internal/witness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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

TEST_F(WitnessTest, RemembersTheHeadInFoldersThatItMakes) {
  Witness witness(folder_ / "deep" / "er", kLedger);
  EXPECT_FALSE(witness.Last().has_value());
  witness.Remember({.number = 7, .hash = kHash});
  const auto last = Witness(folder_ / "deep" / "er", kLedger).Last();
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->number, 7);
  EXPECT_EQ(last->hash, kHash);
  EXPECT_FALSE(Witness(folder_ / "deep" / "er", std::string(32, 'b')).Last().has_value());
  EXPECT_FALSE(fs::exists(folder_ / "deep" / "er" / "ledgers" / (kLedger + ".new")));
}

TEST_F(WitnessTest, GoesForwardAndNeverBack) {
  Witness witness(folder_, kLedger);
  witness.Remember({.number = 7, .hash = kHash});
  witness.Remember({.number = 6, .hash = kOtherHash});
  EXPECT_EQ(witness.Last()->number, 7);
  witness.Remember({.number = 7, .hash = kOtherHash});
  EXPECT_EQ(witness.Last()->hash, kHash);
  witness.Remember({.number = 8, .hash = kOtherHash});
  EXPECT_EQ(witness.Last()->number, 8);
  EXPECT_EQ(witness.Last()->hash, kOtherHash);
}

TEST_F(WitnessTest, CountsADamagedFileAsNoneAndWritesOverIt) {
  Witness witness(folder_, kLedger);
  const std::string hash = "\"hash\": \"" + kHash + "\"";
  for (const std::string& text : std::initializer_list<std::string>{
           "", "{", std::string(4, '\0'), "[]", "12", "{\"number\": 5}", "{" + hash + "}",
           "{\"number\": -1, " + hash + "}", "{\"number\": 1.5, " + hash + "}",
           "{\"number\": \"5\", " + hash + "}", "{\"number\": 18446744073709551615, " + hash + "}",
           "{\"number\": 5, \"hash\": \"1234\"}", "{\"number\": 5, \"hash\": 5}",
           "{\"number\": 5, " + hash + "} and more", std::string(1 << 20, '[')}) {
    Write(text);
    EXPECT_FALSE(witness.Last().has_value()) << text.substr(0, 80);
    witness.Remember({.number = 3, .hash = kHash});
    ASSERT_TRUE(witness.Last().has_value()) << text.substr(0, 80);
    EXPECT_EQ(witness.Last()->number, 3);
  }
}

TEST_F(WitnessTest, TakesNothingButAnIdentityForAFileName) {
  for (const std::string& ledger : std::initializer_list<std::string>{
           "", "..", "../../etc/passwd", std::string(31, 'a'), std::string(33, 'a'),
           std::string(32, 'A'), std::string(30, 'a') + "/b", "../" + std::string(29, 'a'),
           std::string(31, 'a') + '\0'}) {
    Witness witness(folder_, ledger);
    witness.Remember({.number = 1, .hash = kHash});
    EXPECT_FALSE(witness.Last().has_value()) << ledger;
    EXPECT_TRUE(fs::is_empty(folder_)) << ledger;
  }
}

TEST_F(WitnessTest, RemembersNothingThatIsNoHead) {
  Witness witness(folder_, kLedger);
  witness.Remember({.number = -1, .hash = kHash});
  witness.Remember({.number = 1, .hash = "abc"});
  EXPECT_FALSE(witness.Last().has_value());
}

TEST_F(WitnessTest, IsSilentWhereNothingCanBeWritten) {
  Witness nowhere({}, kLedger);
  nowhere.Remember({.number = 1, .hash = kHash});
  EXPECT_FALSE(nowhere.Last().has_value());

  std::ofstream(folder_ / "file") << "in the way";
  Witness below_a_file(folder_ / "file", kLedger);
  below_a_file.Remember({.number = 1, .hash = kHash});
  EXPECT_FALSE(below_a_file.Last().has_value());

  Witness in_no_file_system("/proc/self/sordino", kLedger);
  in_no_file_system.Remember({.number = 1, .hash = kHash});
  EXPECT_FALSE(in_no_file_system.Last().has_value());

  fs::create_directories(File());  // a folder where the file should be
  Witness witness(folder_, kLedger);
  witness.Remember({.number = 1, .hash = kHash});
  EXPECT_FALSE(witness.Last().has_value());
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

TEST_F(WitnessTest, ChecksThatItsFileCanBeRead) {
  const Witness witness(folder_, kLedger);
  EXPECT_NO_THROW(witness.CheckFile());  // none yet
  Write("{");
  EXPECT_NO_THROW(witness.CheckFile());  // damaged, and written anew
  fs::remove(File());
  fs::create_directories(File());
  EXPECT_THROW(witness.CheckFile(), Error);
}

TEST_F(WitnessTest, DoesNotWaitForAPipe) {
  fs::create_directories(File().parent_path());
  ASSERT_EQ(::mkfifo(File().c_str(), 0600), 0);
  EXPECT_FALSE(Witness(folder_, kLedger).Last().has_value());
  EXPECT_THROW(Witness(folder_, kLedger).CheckFile(), Error);
}

TEST_F(WitnessTest, KeepsTheLatestOfManyProcesses) {
  constexpr int kProcesses = 8;
  constexpr int kEach = 50;
  fs::create_directories(File().parent_path());
  for (int p = 0; p < kProcesses; ++p) {
    if (::fork() == 0) {
      Witness witness(folder_, kLedger);
      std::int64_t highest = -1;
      bool is_monotone = true;
      for (int i = 0; i < kEach; ++i) {
        witness.Remember({.number = i * kProcesses + p, .hash = kHash});
        const auto last = witness.Last();
        // A folder that stays locked is given up, so there may be none yet.
        is_monotone = is_monotone && (last ? last->number : -1) >= highest;
        highest = last ? last->number : highest;
      }
      ::_exit(is_monotone ? 0 : 1);
    }
  }
  for (int p = 0; p < kProcesses; ++p) {
    int status = 0;
    ASSERT_GT(::wait(&status), 0);
    EXPECT_EQ(status, 0) << "a later head was replaced by an earlier one";
  }
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
}

}  // namespace
}  // namespace sordino
