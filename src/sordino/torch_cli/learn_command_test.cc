#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/torch_cli/testing/points_table.h"

// Everything here goes through `sordino`, which replaces itself by sordino-torch.
namespace sordino {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

class LearnCommand : public ::testing::Test {
 protected:
  LearnCommand() { std::ofstream(table_) << PointsTable(200); }

  std::string Settings(const std::string& more = "") const {
    std::string file = (folder_.path() / "public.toml").string();
    std::ofstream(file) << "[data]\nsource = \"" << table_
                        << "\"\nrecords = 200\ncolumns = [\"x:numeric:0:1\", \"y:numeric:0:1\", "
                           "\"above:label:no|yes\"]\n[model]\nname = \"logistic\"\n[privacy]\n"
                           "noise = 20\ndelta = 1e-5\nclip = 1\nsampling = \"full\"\n[training]\n"
                           "steps = 40\nlearning-rate = 4\n"
                        << more;
    return file;
  }

  TestFolder folder_;
  std::string table_ = (folder_.path() / "points.csv").string();
};

TEST_F(LearnCommand, WritesAScheduleThatTrainingTakes) {
  const std::string schedule = (folder_.path() / "learned.csv").string();
  const CommandOutcome outcome =
      RunProgram({"plan", "--learn", Settings(), "--public-data", "--seeds", "12", "--blocks", "4",
                  "--schedule-out", schedule, "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["runs"], 12 * 5);
  EXPECT_EQ(json["blocks"].size(), 4U);
  ASSERT_EQ(json["schedule"]["noise"].size(), 40U);
  EXPECT_LT(json["decay"].get<double>(), 1);
  EXPECT_GT(json["gain"].get<double>(), 1);
  const CommandOutcome trained = RunProgram(
      {"train", Settings(), "--noise-schedule", "file:" + schedule, "--dry-run", "--json"});
  EXPECT_EQ(trained.exit_code, 0) << trained.err;
}

TEST_F(LearnCommand, IsForPublicDataAndSaysWhatIsMissing) {
  const CommandOutcome undeclared = RunProgram({"plan", "learn", Settings()});
  EXPECT_EQ(undeclared.exit_code, 2);
  EXPECT_THAT(undeclared.err, HasSubstr("--public-data"));
  const CommandOutcome nothing = RunProgram({"plan", "learn"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("there are no data to learn from"));
  const CommandOutcome few =
      RunProgram({"plan", "learn", Settings(), "--public-data", "--seeds", "1"});
  EXPECT_EQ(few.exit_code, 2);
  EXPECT_THAT(few.err, HasSubstr("the number of seeds is 1"));
  const CommandOutcome input = RunProgram(
      {"plan", "learn", Settings(), "--public-data", "--schedule-out", table_, "--force"});
  EXPECT_EQ(input.exit_code, 2);
}

}  // namespace
}  // namespace sordino
