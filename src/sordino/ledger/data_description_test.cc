#include "sordino/ledger/data_description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
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
    fs::create_directories(folder_ / "clinic");
    Write("clinic/visits.csv", "age\n1\n");
  }

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

}  // namespace
}  // namespace sordino
