#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
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
using ::testing::MatchesRegex;

TEST(KernelCommand, AnswersForEveryClipping) {
  const TestFolder folder;
  const std::string picture = (folder.path() / "kernel.svg").string();
  const CommandOutcome outcome =
      RunProgram(Words("kernel --data digits --model cnn-mnist --examples 8 --clipping all "
                       "--clip 0.5 --json --picture " +
                       picture));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["public_data_only"], true);
  EXPECT_EQ(json["outputs"], 10);
  EXPECT_EQ(json["layers"].size(), 4U);
  ASSERT_EQ(json["clippings"].size(), 5U);
  for (const Json& row : json["clippings"]) {
    const double predicted = row["predicted_decrease"].get<double>();
    EXPECT_NEAR(row["measured_decrease"].get<double>(), predicted, 0.01 * std::abs(predicted))
        << row;
    const std::string name = row["clipping"].get<std::string>();
    EXPECT_EQ(row["symmetric"].get<bool>(), name != "local-flat" && name != "local-layerwise");
    EXPECT_TRUE(name == "local-layerwise" || row["positive_eigenvalues"].get<bool>()) << name;
  }
  EXPECT_THAT(ReadTestFile(picture), HasSubstr("local-layerwise"));
}

TEST(KernelCommand, SaysThatItIsForPublicData) {
  const CommandOutcome outcome =
      RunProgram(Words("kernel --data digits --model logistic --examples 4 --clipping local-flat "
                       "--clip 0.5"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("For public data only"));
  EXPECT_THAT(outcome.out, HasSubstr("local-flat"));
  EXPECT_THAT(outcome.out, HasSubstr("\nNext: a step with local-flat lowers the loss most here; "
                                     "'sordino train --clipping flat --clip 0.5' clips so.\n"));
  EXPECT_THAT(
      RunProgram(Words("kernel --data digits --model logistic --examples 4 --clipping none")).out,
      HasSubstr("\nNext: compare the ways to clip with --clipping all.\n"));
}

TEST(KernelCommand, PrivateDataAreRefused) {
  const TestFolder folder;
  const std::string table = (folder.path() / "points.csv").string();
  std::ofstream(table) << PointsTable(20);
  const std::vector<std::string> words = {
      "kernel", "--data",    table,           "--model",       "logistic",           "--examples",
      "4",      "--columns", "x:numeric:0:1", "y:numeric:0:1", "above:label:no|yes",
  };
  const auto expect = [&](const std::vector<std::string>& line, const char* part) {
    const CommandOutcome outcome = RunProgram(line);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, MatchesRegex("sordino: [^\n]+\n"));
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  expect(words, "--public-data");
  std::vector<std::string> said = words;
  said.push_back("--public-data");
  EXPECT_EQ(RunProgram(said).exit_code, 0);
  // A ledger says that they are private, whatever else is said.
  std::ofstream(table + ".sordino.toml") << "ledger = \"ledger.db\"\n";
  expect(said, "they have the ledger");
}

class KernelMistakes : public ::testing::TestWithParam<Mistake> {};
TEST_P(KernelMistakes, AreToldInOneSentence) { ExpectMistake(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    CommandLines, KernelMistakes,
    ::testing::Values(Mistake{"kernel", "give --data"},
                      Mistake{"kernel --data digits", "give one model"},
                      Mistake{"kernel --data digits --model logistic --examples 1", "from 2 to"},
                      Mistake{"kernel --data digits --model logistic --examples 5000", "from 2 to"},
                      Mistake{"kernel --data digits --model logistic --clipping flat",
                              "--clipping"},
                      Mistake{"kernel --data digits --model logistic --clip 0", "--clip"},
                      Mistake{"kernel --data digits --model logistic --step 0", "--step"}));

}  // namespace
}  // namespace sordino
