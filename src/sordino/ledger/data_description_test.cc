#include "sordino/ledger/data_description.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class DataDescription : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("SORDINO_STATE", At("state").c_str(), 1);
    fs::create_directories(folder_ / "clinic");
    Write("clinic/visits.csv", "age\n1\n");
  }

  void TearDown() override { unsetenv("SORDINO_STATE"); }

  fs::path At(const std::string& name) const { return folder_ / name; }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(At(name), std::ios::binary) << text;
  }
  static std::string ErrorOf(const fs::path& data, const std::string& asked_for = "") {
    try {
      const std::vector<fs::path> all = {data};
      ChooseLedger(asked_for, all);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  static std::optional<fs::path> Chosen(const fs::path& data) {
    const std::vector<fs::path> all = {data};
    return ChooseLedger("", all);
  }
  // Of the name, which need not exist.
  static fs::path Real(const std::optional<fs::path>& path) {
    return path ? fs::weakly_canonical(*path) : fs::path("none");
  }

  const TestFolder folder_;
};

TEST_F(DataDescription, DataWithoutOneHaveNoLedger) {
  EXPECT_EQ(LedgerOfData(At("clinic/visits.csv")), std::nullopt);
  EXPECT_EQ(LedgerOfData(At("clinic")), std::nullopt);
  EXPECT_EQ(LedgerOfData(At("nowhere/visits.csv")), std::nullopt);
  EXPECT_EQ(ChooseLedger("", {}), std::nullopt);
}

TEST_F(DataDescription, BesideAFileItSpeaksForThatFileAndNamesTheLedgerRelativeToItself) {
  Write("clinic/visits.csv.sordino.toml", "ledger = \"books/visits.db\"\n");
  EXPECT_EQ(Real(LedgerOfData(At("clinic/visits.csv"))), At("clinic/books/visits.db"));
  EXPECT_EQ(LedgerOfData(At("clinic/other.csv")), std::nullopt);
}

TEST_F(DataDescription, InAFolderItSpeaksForEverythingInTheFolder) {
  Write("clinic/sordino.toml", "ledger = \"../visits.db\"\n");
  for (const char* name : {"clinic/visits.csv", "clinic/other.csv", "clinic", "clinic/", "clinic/.",
                           "clinic/../clinic/visits.csv"}) {
    EXPECT_EQ(Real(LedgerOfData(At(name))), At("visits.db")) << name;
  }
  EXPECT_EQ(LedgerOfData(At("elsewhere.csv")), std::nullopt);
}

TEST_F(DataDescription, BesideAFolderItSpeaksForTheFilesInIt) {
  Write("clinic.sordino.toml", "ledger = \"visits.db\"\n");
  for (const char* name : {"clinic/visits.csv", "clinic", "clinic/"}) {
    EXPECT_EQ(Real(LedgerOfData(At(name))), At("visits.db")) << name;
  }
}

TEST_F(DataDescription, ALinkIsNoWayAroundIt) {
  Write("clinic/visits.csv.sordino.toml", "ledger = \"visits.db\"\n");
  fs::create_symlink("clinic/visits.csv", At("one.csv"));
  fs::create_symlink("one.csv", At("two.csv"));
  fs::create_directory_symlink("clinic", At("linked"));
  for (const char* name : {"one.csv", "two.csv", "linked/visits.csv"}) {
    EXPECT_EQ(Real(LedgerOfData(At(name))), At("clinic/visits.db")) << name;
  }
}

TEST_F(DataDescription, OneBesideALinkOnTheWayCounts) {
  fs::create_symlink("clinic/visits.csv", At("one.csv"));
  fs::create_symlink("one.csv", At("two.csv"));
  Write("one.csv.sordino.toml", "ledger = \"one.db\"\n");
  EXPECT_EQ(Real(LedgerOfData(At("two.csv"))), At("one.db"));
  // Nobody who names the file itself comes past the link.
  EXPECT_EQ(LedgerOfData(At("clinic/visits.csv")), std::nullopt);
}

TEST_F(DataDescription, ALinkedDescriptionMeansTheSameAsWhereItLies) {
  fs::create_directory(At("books"));
  Write("books/common.toml", "ledger = \"visits.db\"\n");
  fs::create_symlink("../books/common.toml", At("clinic/sordino.toml"));
  EXPECT_EQ(Real(LedgerOfData(At("clinic/visits.csv"))), At("books/visits.db"));
}

TEST_F(DataDescription, TwoThatAgreeAreOneAndTwoThatDoNotAreRefused) {
  Write("clinic/sordino.toml", "ledger = \"visits.db\"\n");
  Write("clinic/visits.csv.sordino.toml", "ledger = \"../clinic/visits.db\"\n");
  EXPECT_EQ(Real(LedgerOfData(At("clinic/visits.csv"))), At("clinic/visits.db"));
  Write("clinic/visits.csv.sordino.toml", "ledger = \"other.db\"\n");
  EXPECT_THAT(ErrorOf(At("clinic/visits.csv")),
              AllOf(HasSubstr("different ledgers"), HasSubstr("visits.db"), HasSubstr("other.db")));
}

TEST_F(DataDescription, WhatCannotBeReadStopsTheReleaseWithOneSentence) {
  const auto error = [this](const std::string& text) {
    Write("clinic/sordino.toml", text);
    std::string sentence = ErrorOf(At("clinic/visits.csv"));
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
    EXPECT_THAT(sentence, HasSubstr("sordino.toml"));
    return sentence;
  };
  EXPECT_THAT(error("ledgr = \"visits.db\"\n"),
              AllOf(HasSubstr("'ledgr'"), HasSubstr("did you mean 'ledger'?")));
  EXPECT_THAT(error("ledger = \"visits.db\"\nepsilon = 8\n"), HasSubstr("'epsilon'"));
  EXPECT_THAT(error("ledger = 8\n"), HasSubstr("in quotes"));
  EXPECT_THAT(error("\nledger = \"\"\n"), HasSubstr("line 2"));
  EXPECT_THAT(error("ledger = \n"), HasSubstr("not TOML"));
  EXPECT_THAT(error(std::string("\0\x01\x02", 3)), HasSubstr("not TOML"));
  EXPECT_THAT(error(std::string(2 << 20, '#')), HasSubstr("too large"));
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += "a.";
  EXPECT_THAT(error("\n[" + deep + "a]\n"), HasSubstr("line 2: keys and brackets are nested"));
}

TEST_F(DataDescription, OneThatNamesNoLedgerIsAMistake) {
  for (const char* text : {"", "# to be written\n"}) {
    Write("clinic/sordino.toml", text);
    EXPECT_THAT(ErrorOf(At("clinic/visits.csv")), HasSubstr("names no ledger")) << text;
  }
}

TEST_F(DataDescription, OneThatIsLostOrAFolderIsNotNone) {
  fs::create_symlink("gone.toml", At("clinic/sordino.toml"));
  EXPECT_THAT(ErrorOf(At("clinic/visits.csv")), HasSubstr("cannot be read"));
  fs::remove(At("clinic/sordino.toml"));
  fs::create_directory(At("clinic/sordino.toml"));
  EXPECT_THAT(ErrorOf(At("clinic/visits.csv")), HasSubstr("cannot be read"));
}

TEST_F(DataDescription, TheLedgerThatIsAskedForMustBeTheirs) {
  const std::vector<fs::path> data = {At("clinic/visits.csv"), At("clinic/other.csv")};
  EXPECT_EQ(ChooseLedger("mine.db", data), fs::path("mine.db"));
  Write("clinic/visits.csv.sordino.toml", "ledger = \"../visits.db\"\n");
  EXPECT_EQ(Real(ChooseLedger("", data)), At("visits.db"));
  const std::string same = At("clinic/../visits.db").string();
  EXPECT_EQ(ChooseLedger(same, data), fs::path(same));
  EXPECT_THAT(ErrorOf(data[0], At("mine.db").string()),
              AllOf(HasSubstr("mine.db"), HasSubstr("visits.db"), HasSubstr("leave --ledger out")));
  // A link to the ledger is the ledger; another file is not, although both exist.
  Write("visits.db", "");
  Write("mine.db", "");
  fs::create_symlink("visits.db", At("link.db"));
  EXPECT_EQ(ChooseLedger(At("link.db").string(), data), At("link.db"));
  EXPECT_NE(ErrorOf(data[0], At("mine.db").string()), "");
}

TEST_F(DataDescription, DataOfTwoLedgersAreNotUsedTogether) {
  Write("clinic/visits.csv.sordino.toml", "ledger = \"a.db\"\n");
  Write("clinic/other.csv.sordino.toml", "ledger = \"b.db\"\n");
  const std::vector<fs::path> data = {At("clinic/visits.csv"), At("clinic/other.csv")};
  EXPECT_THROW(ChooseLedger("", data), Error);
  EXPECT_EQ(Real(ChooseLedger("", std::vector<fs::path>{data[1]})), At("clinic/b.db"));
}

// Standard input from a file, as a shell redirects it, or from a pipe.
class StandardInput {
 public:
  explicit StandardInput(const fs::path& file)
      : StandardInput(::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {}
  explicit StandardInput(int descriptor) : before_(::dup(STDIN_FILENO)) {
    EXPECT_GE(::dup2(descriptor, STDIN_FILENO), 0);
    ::close(descriptor);
  }
  ~StandardInput() {
    ::dup2(before_, STDIN_FILENO);
    ::close(before_);
  }
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

 private:
  int before_;
};

TEST_F(DataDescription, StandardInputThatIsAFileIsThatFile) {
  Write("clinic/sordino.toml", "ledger = \"visits.db\"\n");
  Write("open.csv", "age\n2\n");
  {
    const StandardInput input(At("clinic/visits.csv"));
    EXPECT_EQ(Real(Chosen("-")), At("clinic/visits.db"));
    EXPECT_THAT(ErrorOf("-", "mine.db"), HasSubstr("mine.db is not the ledger of"));
  }
  {
    const StandardInput input(At("open.csv"));
    EXPECT_EQ(Chosen("-"), std::nullopt);
    // Without a name nobody can look beside it.
    fs::remove(At("open.csv"));
    EXPECT_THAT(ErrorOf("-"), HasSubstr("whose name cannot be found"));
    EXPECT_EQ(ErrorOf("-", "mine.db"), "");
  }
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[1]);
  const StandardInput input(ends[0]);
  EXPECT_EQ(Chosen("-"), std::nullopt);
}

TEST_F(DataDescription, AHardLinkIsNoWayAroundIt) {
  Write("clinic/sordino.toml", "ledger = \"visits.db\"\n");
  fs::create_directory(At("elsewhere"));
  fs::create_hard_link(At("clinic/visits.csv"), At("elsewhere/v.csv"));
  // Nobody has used the described name yet.
  for (const char* name : {"elsewhere/v.csv", "elsewhere"}) {
    EXPECT_THAT(ErrorOf(At(name)), AllOf(HasSubstr("hard link"), HasSubstr("give --ledger")));
    EXPECT_EQ(ErrorOf(At(name), "mine.db"), "");
  }
  EXPECT_EQ(Real(Chosen(At("clinic/visits.csv"))), At("clinic/visits.db"));
  EXPECT_EQ(Real(Chosen(At("elsewhere/v.csv"))), At("clinic/visits.db"));
  EXPECT_THAT(ErrorOf(At("elsewhere/v.csv"), "mine.db"), HasSubstr("is not the ledger of"));
  // Its inode is known, whatever was written since.
  Write("clinic/visits.csv", "age\n1\n2\n");
  EXPECT_EQ(Real(LedgerOfData(At("elsewhere/v.csv"))), At("clinic/visits.db"));
  const StandardInput input(At("elsewhere/v.csv"));
  EXPECT_EQ(Real(Chosen("-")), At("clinic/visits.db"));
}

TEST_F(DataDescription, ACopyAndDataThatWereMovedAreRecognised) {
  Write("clinic/sordino.toml", "ledger = \"visits.db\"\n");
  Write("clinic/visits.csv", "age\n" + std::string(5 << 20, '7') + "\n");
  fs::copy_file(At("clinic/visits.csv"), At("copy.csv"));
  EXPECT_EQ(Chosen(At("copy.csv")), std::nullopt);  // not seen yet
  ASSERT_NE(Chosen(At("clinic/visits.csv")), std::nullopt);
  EXPECT_EQ(Real(Chosen(At("copy.csv"))), At("clinic/visits.db"));
  fs::rename(At("clinic/visits.csv"), At("moved.csv"));
  EXPECT_EQ(Real(Chosen(At("moved.csv"))), At("clinic/visits.db"));
  // Other data are not, also of the same size.
  Write("other.csv", "age\n" + std::string(5 << 20, '8') + "\n");
  EXPECT_EQ(Chosen(At("other.csv")), std::nullopt);
  // Where the description was taken away, it counts no more.
  fs::remove(At("clinic/sordino.toml"));
  EXPECT_EQ(Chosen(At("copy.csv")), std::nullopt);
}

TEST_F(DataDescription, WhatIsRememberedIsForItsOwnerAlone) {
  Write("clinic/sordino.toml", "ledger = \"visits.db\"\n");
  ASSERT_NE(Chosen(At("clinic/visits.csv")), std::nullopt);
  const fs::path folder = At("state/data");
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write);
    names.insert(entry.path().filename());
  }
  EXPECT_EQ(names.size(), 3U);  // the key, the inode and the content
  // Under another key the same data have other marks.
  setenv("SORDINO_STATE", At("other").c_str(), 1);
  ASSERT_NE(Chosen(At("clinic/visits.csv")), std::nullopt);
  for (const fs::directory_entry& entry : fs::directory_iterator(At("other/data"))) {
    if (entry.path().filename() == "key") continue;
    EXPECT_FALSE(names.contains(entry.path().filename()));
  }
  // Nothing can be remembered: descriptions hold all the same.
  setenv("SORDINO_STATE", "/proc/nowhere", 1);
  EXPECT_EQ(Real(Chosen(At("clinic/visits.csv"))), At("clinic/visits.db"));
  EXPECT_EQ(Chosen(At("nothing.csv")), std::nullopt);
}

}  // namespace
}  // namespace sordino
