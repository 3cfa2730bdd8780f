#include "sordino/report/report_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "sordino/base/error.h"
#include "sordino/report/page.h"
#include "sordino/report/testing/run_folder_files.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

std::string Content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string PageOf(const fs::path& folder) {
  ReportContent content;
  content.runs = {ReadReportRun(folder)};
  return ReportPage(content);
}

std::string RefusalOf(const fs::path& folder) {
  try {
    ReadReportRun(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ReportRun, ReadsWhatARunLeaves) {
  const TestFolder folder;
  const ReportRun run = ReadReportRun(WriteRunFolder(folder, "first"));
  EXPECT_EQ(run.name, "first");
  EXPECT_EQ(run.data, "digits");  // without its path
  EXPECT_EQ(run.model, "logistic");
  EXPECT_TRUE(run.is_private);
  EXPECT_TRUE(run.has_ended);
  EXPECT_EQ(run.target_epsilon, 3);
  EXPECT_EQ(run.delta, 1e-5);
  EXPECT_EQ(run.failure, 1e-12);
  ASSERT_EQ(run.points.size(), 2U);
  EXPECT_EQ(run.points[1].step, 200);
  EXPECT_EQ(run.points[1].test_accuracy, 0.76);
  EXPECT_EQ(run.points[1].epsilon, 2.5);
  EXPECT_EQ(run.points[1].mean_squared_error, std::nullopt);
  EXPECT_THAT(run.settings, ::testing::Contains(std::make_pair("privacy.clip", "0.1")));
  EXPECT_THAT(run.statement, HasSubstr("Data: digits"));
  EXPECT_EQ(run.event, "add-remove: 200*poisson(0.01, gaussian(1))");
  ASSERT_TRUE(run.audit);
  ASSERT_EQ(run.audit->attackers.size(), 1U);
  EXPECT_EQ(run.audit->attackers[0].correct, 18);
  EXPECT_EQ(run.audit->attackers[0].curve.size(), 3U);
  ASSERT_TRUE(run.predictions);
  EXPECT_EQ(run.predictions->confusion[0][1], 10);
  ASSERT_EQ(run.predictions->examples.size(), 1U);
  EXPECT_TRUE(run.predictions->examples[0].image);
  EXPECT_THAT(run.record, ::testing::Contains(
                              std::make_pair("not protected", "what is true of the population")));
}

TEST(ReportRun, ReadsHashesOfWhatDecidedTheRun) {
  const TestFolder folder;
  const fs::path run = WriteRunFolder(folder, "first");
  const std::string hash(64, 'a');
  folder.Write("first/SHA256SUMS", hash + "  config.toml\n" + hash +
                                       "  /home/somebody/net.pt\nplanted  notes\n" +
                                       std::string(64, 'x') + "  other.txt\n" + hash);
  const std::string statement = Content(run / "statement.txt");
  folder.Write("first/model.safetensors",
               WeightsWith("\"statement_sha256\":\"" + Sha256Hex(statement) +
                           "\",\"weights_sha256\":\"" + std::string(64, 'b') + "\""));
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"config.toml", hash},
      {"net.pt", hash},  // without its path
      {"weights", std::string(64, 'b')},
      {"statement.txt", Sha256Hex(statement)}};
  EXPECT_EQ(ReadReportRun(run).hashes, expected);
  EXPECT_EQ(ReadReportRun(run).statement, statement);
}

// Without noise, coefficients say more about the records than anything else.
TEST(ReportRun, ReadsCoefficientsOfPrivateFitsAlone) {
  const TestFolder folder;
  const fs::path run = WriteRunFolder(folder, "first");
  folder.Write("first/coefficients.csv",
               "feature,class,coefficient,noise,lower,upper\nage,,31337.5,,,\n");
  ASSERT_EQ(ReadReportRun(run).coefficients.size(), 1U);
  EXPECT_THAT(PageOf(run), HasSubstr("31337.5"));
  for (const char* event : {"NOT PRIVATE\n", "NOT PRIVATE\nadd-remove: gaussian(4)\n"}) {
    folder.Write("first/event.txt", event);
    EXPECT_THAT(PageOf(run), Not(HasSubstr("31337.5")));
  }
}

TEST(ReportRun, SaysThatNothingWasClippedOrNoised) {
  const TestFolder folder;
  const fs::path run = WriteRunFolder(folder, "first");
  EXPECT_FALSE(ReadReportRun(run).without_privacy);
  folder.Write("first/config.toml", "[data]\nsource = \"digits\"\n[run]\nnon-private = true\n");
  EXPECT_TRUE(ReadReportRun(run).without_privacy);
}

// Adds keys with this text or number to every object of a JSON value, nested ones too.
void Plant(nlohmann::json& json, int& number) {
  if (json.is_object() || json.is_array()) {
    for (auto& entry : json) Plant(entry, number);
  }
  if (!json.is_object()) return;
  for (const char* key : {"train_loss", "batch_size", "gradient_norm", "clipped"}) {
    json[key] = "planted-" + std::to_string(++number);
    json[std::string(key) + "_value"] = 31337000 + ++number;
  }
}

TEST(ReportRun, ShowsNothingThatHasNoName) {
  const TestFolder folder;
  const fs::path run = WriteRunFolder(folder, "first");
  int number = 0;
  for (const char* name : {"audit.json", "record.json", "predictions.json"}) {
    nlohmann::json json = nlohmann::json::parse(Content(run / name));
    Plant(json, number);
    folder.Write(fs::path("first") / name, json.dump());
  }
  std::string lines;
  std::istringstream in(Content(run / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    Plant(json, number);
    lines += json.dump() + "\n";
  }
  folder.Write("first/metrics.jsonl", lines);
  folder.Write("first/config.toml", Content(run / "config.toml") +
                                        "loss = \"planted-a\"\n[secret]\nnorm = 313379999\n"
                                        "[run]\nledger = \"/planted-b/ledger.db\"\n");
  folder.Write("first/statement.txt", Content(run / "statement.txt") + "planted-c\n");
  folder.Write("first/SHA256SUMS",
               "planted-e  config.toml\n" + std::string(64, 'a') + "  /planted-f/x\n");
  for (const char* name : {"notes.txt", "vocabulary.txt", "coefficients.svg", "audit.svg",
                           "accuracy-and-epsilon.svg", "checkpoints/step-1", "script/model.pt"}) {
    folder.Write(fs::path("first") / name, "planted-d 31337");
  }
  ASSERT_GT(number, 40);
  const std::string page = PageOf(run);
  EXPECT_THAT(page, HasSubstr("0.76"));
  for (const char* planted : {"planted-", "31337", "somebody"}) {
    EXPECT_THAT(page, Not(HasSubstr(planted)));
  }
}

TEST(ReportRun, LeavesOutAStatementThatWasChanged) {
  const TestFolder folder;
  const fs::path run = WriteRunFolder(folder, "first");
  folder.Write("first/statement.txt", "Epsilon is 0.1.\n");
  EXPECT_THAT(ReadReportRun(run).statement, HasSubstr("was changed"));
  // A run that goes on has no weights yet.
  fs::remove(run / "model.safetensors");
  EXPECT_EQ(ReadReportRun(run).statement, "Epsilon is 0.1.\n");
  EXPECT_FALSE(ReadReportRun(run).has_ended);
}

TEST(ReportRun, SaysThatARunIsNotPrivateWhicheverFileSaysIt) {
  const TestFolder folder;
  const fs::path run = WriteRunFolder(folder, "first");
  folder.Write("first/event.txt", "NOT PRIVATE\nadd-remove: gaussian(4)\n");
  EXPECT_FALSE(ReadReportRun(run).is_private);
  EXPECT_EQ(ReadReportRun(run).event, "add-remove: gaussian(4)");
  folder.Write("first/event.txt", "NOT PRIVATE\n");
  EXPECT_EQ(ReadReportRun(run).event, "");
  folder.Write("first/event.txt", "add-remove: gaussian(4)\n");
  EXPECT_TRUE(ReadReportRun(run).is_private);
  folder.Write("first/metrics.jsonl", "{\"private\":false,\"step\":1}\n");
  EXPECT_FALSE(ReadReportRun(run).is_private);
}

TEST(ReportRun, TakesAFolderThatIsHalfWritten) {
  const TestFolder folder;
  folder.Write("early/config.toml", "[privacy]\ndelta = 1e-05\n");
  const ReportRun run = ReadReportRun(folder / "early");
  EXPECT_TRUE(run.points.empty());
  EXPECT_EQ(run.statement, "");
  folder.Write("early/metrics.jsonl", "{\"step\":1,\"epsilon\":1}\n{\"step\":2,\"epsi");
  EXPECT_EQ(ReadReportRun(folder / "early").points.size(), 1U);
  EXPECT_THAT(PageOf(folder / "early"), HasSubstr("</html>"));
}

TEST(ReportRun, RefusesFilesThatAreNotWhatTheirNameSays) {
  const TestFolder folder;
  const fs::path run = WriteRunFolder(folder, "first");
  folder.Write("first/audit.json", "[1, 2");
  EXPECT_THAT(RefusalOf(run), HasSubstr("audit.json' cannot be shown: it does not hold"));
  folder.Write("first/audit.json", std::string(5'000'000, ' '));
  EXPECT_THAT(RefusalOf(run), HasSubstr("larger than"));
  fs::remove(run / "audit.json");
  fs::create_directory(run / "audit.json");
  EXPECT_THAT(RefusalOf(run), HasSubstr("not a regular file"));
  fs::remove(run / "audit.json");
  folder.Write("first/event.txt", "add-remove: everything\n");
  EXPECT_THAT(RefusalOf(run), HasSubstr("event.txt' cannot be shown"));
  folder.Write("first/event.txt", "");
  folder.Write("first/config.toml", "[data\n");
  EXPECT_THAT(RefusalOf(run), HasSubstr("config.toml' cannot be shown: it is not a TOML file"));
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += "a.";
  folder.Write("first/config.toml", '[' + deep + "a]\n");
  EXPECT_THAT(RefusalOf(run), HasSubstr("config.toml, line 1: keys and brackets are nested"));
}

// What lies deeper than in any file of a run is left out.
TEST(ReportRun, TakesJsonOfAnyDepth) {
  const TestFolder folder;
  const fs::path run = WriteRunFolder(folder, "first");
  std::string deep;
  for (int i = 0; i < 400'000; ++i) deep += "{\"a\":";
  deep += '1' + std::string(400'000, '}');
  for (const char* const file : {"audit.json", "deployment.json", "predictions.json"}) {
    if (!fs::exists(run / file)) continue;
    const std::string whole = Content(run / file);
    folder.Write(fs::path("first") / file, "{\"deep\":" + deep + ',' + whole.substr(1));
  }
  folder.Write("first/metrics.jsonl", "{\"private\":true,\"step\":1,\"deep\":" + deep + "}\n");
  EXPECT_EQ(ReadReportRun(run).points.size(), 1U);
  EXPECT_THAT(PageOf(run), HasSubstr("</html>"));
}

// Objects in objects as deep as a file allows, in every place where JSON is read.
TEST(ReportRun, TakesDeepJsonWithoutHarm) {
  const TestFolder folder;
  const fs::path run = WriteRunFolder(folder, "first");
  const std::string deep = "{\"a\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}";
  folder.Write("first/audit.json", deep);
  folder.Write("first/metrics.jsonl", deep + "\n");
  const ReportRun read = ReadReportRun(run);
  EXPECT_TRUE(read.points.empty());
  EXPECT_TRUE(read.audit->attackers.empty());
}

TEST(ReportRun, SettingsAreShownOrHiddenAndNotBoth) {
  std::set<std::string_view> all(ShownSettings().begin(), ShownSettings().end());
  for (const std::string_view name : HiddenSettings()) EXPECT_TRUE(all.insert(name).second) << name;
  EXPECT_EQ(all.size(), ShownSettings().size() + HiddenSettings().size());
}

}  // namespace
}  // namespace sordino
