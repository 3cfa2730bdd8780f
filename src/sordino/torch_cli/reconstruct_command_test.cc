#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"

// Everything here goes through `sordino`, which replaces itself by sordino-torch.
namespace sordino {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

TEST(ReconstructCommand, RebuildsDigitsWithoutPrivacyAndNotWithIt) {
  const TestFolder folder;
  const std::string picture = (folder.path() / "rebuilt.svg").string();
  const CommandOutcome outcome =
      RunProgram(Words("audit reconstruct --data digits --epsilon 8 --epsilon 1 --trials 12 "
                       "--records 30 --candidates 50 --json --picture " +
                       picture));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["public_data_only"], true);
  ASSERT_EQ(json["levels"].size(), 3U);
  const Json& none = json["levels"][0];
  EXPECT_TRUE(none["epsilon"].is_null());
  EXPECT_EQ(none["found"], 1.0);
  EXPECT_LT(none["pixel_error"].get<double>(), 0.01);
  double before = 1;
  for (std::size_t i = 1; i < 3; ++i) {
    const Json& level = json["levels"][i];
    EXPECT_GT(level["pixel_error"], json["blind"]["pixel_error"]);
    EXPECT_LE(level["interval"][0], level["bound"]);
    EXPECT_LE(level["bound"], level["renyi_bound"]);
    EXPECT_LT(level["bound"].get<double>(), before);
    before = level["bound"].get<double>();
  }
  EXPECT_LT(before, 0.1);
  const std::string svg = ReadTestFile(picture);
  EXPECT_THAT(svg, HasSubstr("rebuilt and guessed at epsilon 8"));
  EXPECT_THAT(svg, HasSubstr("data:image/png;base64,"));
}

TEST(ReconstructCommand, SaysWhatTheAdversaryKnows) {
  const CommandOutcome outcome = RunProgram(
      Words("audit reconstruct --data digits --epsilon 1 --trials 2 --records 1 --candidates 2"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("knows 0 of 1 records, every model of 1 full-batch step,"));
  EXPECT_THAT(outcome.out, HasSubstr("none, clipped"));
  EXPECT_THAT(outcome.out, HasSubstr("no adversary finds it more often"));
}

TEST(ReconstructCommand, RefusesPrivateDataAndWhatCannotBeDrawn) {
  const TestFolder folder;
  const auto refused = [](const std::string& words, const char* part) {
    const CommandOutcome outcome = RunProgram(Words("audit reconstruct " + words));
    EXPECT_EQ(outcome.exit_code, 2) << words;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  refused("", "there are no data");
  refused("--data digits --epsilon 0", "epsilon");
  refused("--data digits --candidates 1", "candidates");
  refused("--data digits --candidates 1000000", "ask for fewer");
  refused("--data digits --epsilon 1 --epsilon 2 --epsilon 3 --epsilon 4 --epsilon 5 --picture " +
              (folder.path() / "x.svg").string(),
          "at most 4 budgets");
  refused("--data digits --picture " + (folder.path() / "x.png").string(), "x.png");
}

}  // namespace
}  // namespace sordino
