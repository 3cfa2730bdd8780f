#include "sordino/experiments/results_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "sordino/base/testing/test_folder.h"
#include "sordino/experiments/testing/experiment_text.h"
#include "sordino/experiments/testing/script_program.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

Experiment Named(const std::string& name, bool quick = false) {
  return ParseExperiment(PartOf("account"), name, quick);
}

std::string RefusalOf(const std::filesystem::path& folder, const Experiment& experiment) {
  return RefusalBy([&] { const ResultsFolder results(folder, experiment); });
}

// A folder with one finished cell.
class FinishedFolder {
 public:
  FinishedFolder()
      : experiment_(Named("mine")), cell_(MakeCells(experiment_, ScriptCommands, "")[0]) {
    const ResultsFolder results(folder_ / "out", experiment_);
    results.Begin(cell_);
    std::ofstream(results.OutputOf(cell_)) << "{\"m\": 1}\n";
    results.Finish(cell_, {.seconds = 1.5, .memory_mb = 20});
  }

  std::filesystem::path Place(const std::string& name) const {
    return folder_ / "out" / "cells" / cell_.id / name;
  }
  std::optional<FinishedCell> Find() const {
    return ResultsFolder(folder_ / "out", experiment_).Find(cell_);
  }
  std::string RefusalOfCell() const {
    return RefusalBy([&] { Find(); });
  }

 private:
  TestFolder folder_;
  Experiment experiment_;
  Cell cell_;
};

TEST(ResultsFolder, IsOpenedAgainByTheSameExperiment) {
  const TestFolder folder;
  EXPECT_EQ(RefusalOf(folder / "a/b", Named("mine")), kNothingRefused);
  EXPECT_EQ(RefusalOf(folder / "a/b", Named("mine")), kNothingRefused);
  EXPECT_THAT(RefusalOf(folder / "a/b", Named("yours")),
              HasSubstr("holds the full form of the experiment 'mine'"));
  EXPECT_THAT(RefusalOf(folder / "a/b", Named("mine", true)),
              HasSubstr("the quick form of 'mine'"));
}

TEST(ResultsFolder, RefusesFoldersOfOthers) {
  const TestFolder folder;
  folder.Write("full/letter.txt", "dear");
  EXPECT_THAT(RefusalOf(folder / "full", Named("mine")), HasSubstr("not of an experiment"));
  EXPECT_THAT(RefusalOf(folder / "full/letter.txt", Named("mine")), HasSubstr("is a file"));
  folder.Write("forged/experiment.json", "<html>");
  EXPECT_THAT(RefusalOf(folder / "forged", Named("mine")),
              HasSubstr("not what an experiment writes"));
  folder.Write("half/experiment.json", "{\"schema\": 1, \"exp");
  EXPECT_THAT(RefusalOf(folder / "half", Named("mine")),
              HasSubstr("not what an experiment writes"));
  folder.Write("huge/experiment.json", std::string(2'000'000, '['));
  EXPECT_THAT(RefusalOf(folder / "huge", Named("mine")), HasSubstr("2000000 bytes"));
  std::filesystem::create_directories(folder / "odd/experiment.json");
  EXPECT_THAT(RefusalOf(folder / "odd", Named("mine")), HasSubstr("is not a file"));
}

TEST(ResultsFolder, RefusesPlacesThatCannotBeWrittenTo) {
  EXPECT_THAT(RefusalOf("/proc/sordino", Named("mine")), HasSubstr("cannot be made"));
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const TestFolder folder;
  std::filesystem::create_directory(folder / "closed");
  std::filesystem::permissions(
      folder / "closed", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  EXPECT_THAT(RefusalOf(folder / "closed", Named("mine")), HasSubstr("cannot be written to"));
}

TEST(ResultsFolder, IsForOneProcessAtATime) {
  const TestFolder folder;
  const ResultsFolder first(folder / "out", Named("mine"));
  EXPECT_THAT(RefusalOf(folder / "out", Named("mine")), HasSubstr("another process"));
}

TEST(ResultsFolder, FindsWhatFinished) {
  const FinishedFolder folder;
  const auto found = folder.Find();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->seconds, 1.5);
  EXPECT_EQ(found->memory_mb, 20);
}

TEST(ResultsFolder, DoesNotFindWhatIsHalfWritten) {
  const FinishedFolder folder;
  std::filesystem::remove(folder.Place("cell.json"));
  EXPECT_FALSE(folder.Find().has_value());
}

TEST(ResultsFolder, RefusesCellsThatWereChanged) {
  {
    const FinishedFolder folder;
    std::ofstream(folder.Place("output.json")) << "{\"m\": 2}\n";
    EXPECT_THAT(folder.RefusalOfCell(), HasSubstr("another output than when it finished"));
  }
  {
    const FinishedFolder folder;
    std::filesystem::remove(folder.Place("output.json"));
    EXPECT_THAT(folder.RefusalOfCell(), HasSubstr("another output than when it finished"));
  }
  {
    const FinishedFolder folder;
    std::ofstream(folder.Place("cell.json")) << "{\"words\": [\"train\"]}";
    EXPECT_THAT(folder.RefusalOfCell(), HasSubstr("is not the one that its name says"));
  }
  {
    const FinishedFolder folder;
    std::ofstream(folder.Place("cell.json")) << std::string(2'000'000, ' ');
    EXPECT_THAT(folder.RefusalOfCell(), HasSubstr("2000000 bytes"));
  }
  {
    const FinishedFolder folder;
    std::ofstream(folder.Place("cell.json")) << std::string(500'000, '[');
    EXPECT_THAT(folder.RefusalOfCell(), HasSubstr("is not the one that its name says"));
  }
}

}  // namespace
}  // namespace sordino
