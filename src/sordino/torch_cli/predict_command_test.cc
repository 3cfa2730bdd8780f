#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/torch_cli/contact_sheet.h"
#include "sordino/torch_cli/testing/points_table.h"

// Everything here goes through `sordino`, which replaces itself by sordino-torch.
namespace sordino {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// One run for all tests: without privacy, so that its predictions are known.
class PredictCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    train_ = new std::string(WriteTestFile("predict_train.csv", PointsTable(300, "\"no, not\"")));
    run_ = new std::string(*train_ + ".run");
    const CommandOutcome outcome = RunProgram({"train",
                                               "--model",
                                               "logistic",
                                               "--records",
                                               "300",
                                               "--batch",
                                               "30",
                                               "--steps",
                                               "300",
                                               "--lr",
                                               "2",
                                               "--non-private",
                                               "--threads",
                                               "1",
                                               "--data",
                                               *train_,
                                               "--out",
                                               *run_,
                                               "--columns",
                                               "x:numeric:0:1",
                                               "y:numeric:0:1",
                                               "above:label:no, not|yes"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    // A model is applied on machines that never saw the data.
    fs::remove(*train_);
  }
  static void TearDownTestSuite() {
    fs::remove_all(*run_);
    delete run_;
    delete train_;
  }

  static std::string* train_;
  static std::string* run_;
};
std::string* PredictCommand::train_ = nullptr;
std::string* PredictCommand::run_ = nullptr;

TEST_F(PredictCommand, WritesAClassAndItsProbabilityForEachRow) {
  const std::string data = WriteTestFile("new.csv", "x,y\n0.1,0.9\n0.9,0.1\n");
  const CommandOutcome outcome = RunProgram({"predict", "--run", *run_, "--data", data});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              MatchesRegex("class,probability\nyes,(1|0[.][0-9]+)\n\"no, not\",(1|0[.][0-9]+)\n"));
  EXPECT_THAT(outcome.err, HasSubstr("NOT PRIVATE"));
  fs::remove(data);
}

TEST_F(PredictCommand, WritesAFileAndOneJsonObject) {
  const std::string data = WriteTestFile("new.csv", PointsTable(20, ""));
  const std::string out = data + ".predictions";
  const CommandOutcome outcome =
      RunProgram({"predict", "--run", *run_, "--data", data, "--out", out, "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(json["records"], 20);
  EXPECT_EQ(json["out"], out);
  EXPECT_EQ(json["private"], false);
  const std::string csv = ReadTestFile(out);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 21);
  const Json all =
      Json::parse(RunProgram({"predict", "--run", *run_, "--data", data, "--json"}).out);
  ASSERT_EQ(all["predictions"].size(), 20U);
  EXPECT_GE(all["predictions"][0]["probability"], 0.5);
  fs::remove(data);
  fs::remove(out);
}

TEST_F(PredictCommand, CarriesIdsThroughAndGivesTheProbabilitiesOfAllClasses) {
  const std::string data = WriteTestFile("new.csv", "who,x,y\n\"ann, a\",0.1,0.9\nbob,0.9,0.1\n");
  std::vector<std::string> line = {"predict", "--run",           *run_,  "--data",
                                   data,      "--probabilities", "--id", "who"};
  const CommandOutcome outcome = RunProgram(line);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string number = "(1|[0-9.e-]+)";
  EXPECT_THAT(outcome.out,
              MatchesRegex("who,class,probability,\"no, not\",yes\n"
                           "\"ann, a\",yes," +
                           number + "," + number + "," + number + "\nbob,\"no, not\"," + number +
                           "," + number + "," + number + "\n"));
  line.emplace_back("--json");
  const Json json = Json::parse(RunProgram(line).out);
  const Json& ann = json["predictions"][0];
  EXPECT_EQ(ann["id"], "ann, a");
  ASSERT_EQ(ann["probabilities"].size(), 2U);
  EXPECT_NEAR(ann["probabilities"][0].get<double>() + ann["probabilities"][1].get<double>(), 1,
              1e-6);
  EXPECT_EQ(ann["probabilities"][1], ann["probability"]);
  line[7] = "whom";
  const CommandOutcome missing = RunProgram(line);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("no column 'whom'"));
  fs::remove(data);
}

TEST_F(PredictCommand, TakesAnotherLayoutOfTheTableFromASchema) {
  const std::string data = WriteTestFile("bare.csv", "0.1;0.9\n?;0.1\n");
  const std::string schema = WriteTestFile("schema.toml", R"([table]
header = false
delimiter = ";"
missing = ["?"]
[[column]]
name = "1"
kind = "numeric"
low = 0
high = 1
[[column]]
name = "2"
kind = "numeric"
low = 0
high = 1
[[column]]
name = "above"
kind = "label"
values = ["no, not", "yes"]
)");
  const CommandOutcome outcome =
      RunProgram({"predict", "--run", *run_, "--data", data, "--schema", schema});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, MatchesRegex("class,probability\nyes,[^\n]*\n\"no, not\",[^\n]*\n"));
  fs::remove(data);
  fs::remove(schema);
}

TEST_F(PredictCommand, NeverOverwritesItsInputsOrTheRun) {
  const std::string rows = PointsTable(20, "");
  const std::string data = WriteTestFile("mine.csv", rows);
  const std::string link = data + ".link";
  fs::create_hard_link(data, link);
  const std::string model = *run_ + "/model.safetensors";
  const std::string weights = ReadTestFile(model);
  for (const std::string& out : {data, link, model, *run_ + "/statement.txt"}) {
    for (const bool force : {false, true}) {
      std::vector<std::string> line = {"predict", "--run", *run_, "--data", data, "--out", out};
      if (force) line.emplace_back("--force");
      const CommandOutcome outcome = RunProgram(line);
      EXPECT_EQ(outcome.exit_code, 2) << out;
      EXPECT_EQ(outcome.out, "");
      EXPECT_THAT(outcome.err, HasSubstr("name another file")) << out;
    }
  }
  EXPECT_EQ(ReadTestFile(data), rows);
  EXPECT_EQ(ReadTestFile(model), weights);
  EXPECT_THAT(ReadTestFile(*run_ + "/statement.txt"), HasSubstr("NOT PRIVATE"));
  // Predictions that are made anew, also beside the run's own files.
  const std::string out = *run_ + "/predictions.csv";
  for (int i = 0; i < 2; ++i) {
    const CommandOutcome outcome =
        RunProgram({"predict", "--run", *run_, "--data", data, "--out", out});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  }
  fs::remove(out);
  fs::remove(link);
  fs::remove(data);
}

TEST_F(PredictCommand, TellsTheAccuracyOnlyOfLabelsThatAreDeclaredPublic) {
  const std::string data = WriteTestFile("labelled.csv", PointsTable(100, "\"no, not\""));
  const std::vector<std::string> line = {"predict", "--run", *run_, "--data", data, "--json"};
  const CommandOutcome silent = RunProgram(line);
  ASSERT_EQ(silent.exit_code, 0) << silent.err;
  EXPECT_EQ(Json::parse(silent.out)["accuracy"], nullptr);
  EXPECT_FALSE(Json::parse(silent.out).contains("auroc"));
  EXPECT_EQ(silent.err.find("accuracy"), std::string::npos);
  std::vector<std::string> open = line;
  open.push_back("--public-labels");
  const Json json = Json::parse(RunProgram(open).out);
  EXPECT_GT(json["accuracy"], 0.9);
  EXPECT_GT(json["auroc"], 0.9);
  EXPECT_LT(json["calibration_error"], 0.5);
  fs::remove(data);
}

TEST_F(PredictCommand, TheModelAndTheRecordsStandOnTheLine) {
  const std::string data = WriteTestFile("new.csv", "x,y\n0.1,0.9\n0.9,0.1\n");
  const std::string old = RunProgram({"predict", "--run", *run_, "--data", data}).out;
  EXPECT_THAT(old, HasSubstr("class,probability\nyes,"));
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"predict", *run_, data},
                                             {"predict", "--run", *run_, data},
                                             {"predict", *run_, "--data", data}}) {
    const CommandOutcome outcome = RunProgram(line);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out, old);
  }
  fs::remove(data);
}

TEST_F(PredictCommand, AThresholdDecidesBetweenTwoClasses) {
  const std::string data = WriteTestFile("new.csv", PointsTable(100, "\"no, not\""));
  const auto answers = [&](const std::vector<std::string>& more) {
    std::vector<std::string> line = {"predict", *run_, data, "--json", "--probabilities"};
    line.insert(line.end(), more.begin(), more.end());
    const CommandOutcome outcome = RunProgram(line);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return Json::parse(outcome.out);
  };
  const Json plain = answers({});
  std::vector<std::size_t> found;
  for (const char* threshold : {"0", "0.2", "0.5", "0.9", "1"}) {
    const Json json = answers({"--threshold", threshold, "--public-labels"});
    std::size_t yes = 0;
    std::size_t right = 0;
    for (std::size_t i = 0; i < 100; ++i) {
      const Json& one = json["predictions"][i];
      const double second = one["probabilities"][1];
      EXPECT_EQ(one["class"] == "yes", second >= std::stod(threshold));
      EXPECT_EQ(one["probability"], one["probabilities"][one["class"] == "yes" ? 1 : 0]);
      EXPECT_EQ(one["probabilities"], plain["predictions"][i]["probabilities"]);
      yes += one["class"] == "yes" ? 1 : 0;
    }
    found.push_back(yes);
    std::istringstream rows(PointsTable(100, "\"no, not\""));
    std::string row;
    std::getline(rows, row);
    for (std::size_t i = 0; std::getline(rows, row); ++i) {
      right += row.ends_with("yes") == (json["predictions"][i]["class"] == "yes") ? 1 : 0;
    }
    EXPECT_DOUBLE_EQ(json["accuracy"], static_cast<double>(right) / 100);
  }
  EXPECT_EQ(found.front(), 100U);
  EXPECT_TRUE(std::is_sorted(found.rbegin(), found.rend()));
  EXPECT_GT(found[1], found[3]);
  const CommandOutcome beyond = RunProgram({"predict", *run_, data, "--threshold", "1.5"});
  EXPECT_EQ(beyond.exit_code, 2);
  EXPECT_THAT(beyond.err, HasSubstr("--threshold is 1.5"));
  fs::remove(data);
}

TEST_F(PredictCommand, MistakesAreToldInOneSentence) {
  const auto mistake = [&](const std::vector<std::string>& words, const std::string& part) {
    const CommandOutcome outcome = RunProgram(words);
    EXPECT_EQ(outcome.exit_code, 2) << part;
    EXPECT_THAT(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(part));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  };
  mistake({"predict"}, "2 settings are missing: the model (--run");
  mistake({"predict", *run_, "x.csv", "--run", *run_}, "name the model once");
  mistake({"predict", "x.csv", *run_},
          "the model comes first; write sordino predict " + *run_ + " x.csv.");
  mistake({"predict", "--run", "/nonexistent", "--data", "x"}, "has no config.toml");
  mistake({"predict", "--run", *run_}, "a setting is missing: the records (--data");
  mistake({"predict", "--run", *run_, "--data", "absent.csv"}, "absent.csv");
  mistake({"predict", "--run", *run_, "--data", "digits"}, "the shape 1,28,28");
  mistake({"predict", "--run", *run_, "--data", "x.csv", "--out", ""}, "'--out' is empty");
  mistake({"predict", "--run", "", "--data", "x.csv"}, "'--run' is empty");
  mistake({"predict", "--rn", *run_}, "did you mean '--run'?");
  const std::string broken = *run_ + ".broken";
  fs::copy(*run_, broken);
  std::ofstream(broken + "/model.safetensors") << "not weights";
  mistake({"predict", "--run", broken, "--data", "x.csv"}, "model.safetensors");
  fs::remove_all(broken);
}

TEST_F(PredictCommand, HelpHasAnExample) {
  const CommandOutcome outcome = RunProgram(Words("predict --help"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("Examples:\n  sordino predict runs/"));
}

// A model of two pictures, bright and dark.
TEST(PredictImages, FilesAreNamedAndOneIsEnough) {
  const TestFolder root;
  const auto picture = [&](const std::string& name, std::int64_t value, std::int64_t width = 8) {
    const at::Tensor sheet = at::full({8, width, 3}, value, at::kByte);
    const std::vector<std::uint8_t> bytes = EncodePng(sheet);
    return root.Write(name, std::string(bytes.begin(), bytes.end())).string();
  };
  for (int i = 0; i < 6; ++i) {
    picture("train/dark/" + std::to_string(i) + ".png", 2 * i);
    picture("train/bright/" + std::to_string(i) + ".png", 255 - 2 * i);
  }
  const std::string run = (root / "run").string();
  const CommandOutcome trained = RunProgram({"train",
                                             (root / "train").string(),
                                             "--resize",
                                             "6x6:crop",
                                             "--class-names",
                                             "dark,bright",
                                             "--records",
                                             "12",
                                             "--batch",
                                             "12",
                                             "--steps",
                                             "60",
                                             "--lr",
                                             "1",
                                             "--model",
                                             "logistic",
                                             "--non-private",
                                             "--threads",
                                             "1",
                                             "--out",
                                             run});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string one = picture("new/a night.png", 5);
  picture("new/noon.png", 250, 20);
  const CommandOutcome folder = RunProgram({"predict", run, (root / "new").string()});
  ASSERT_EQ(folder.exit_code, 0) << folder.err;
  EXPECT_THAT(folder.out, MatchesRegex("file,class,probability\na night.png,dark,(1|0[.][0-9]+)\n"
                                       "noon.png,bright,(1|0[.][0-9]+)\n"));
  const CommandOutcome single = RunProgram({"predict", run, one, "--json"});
  ASSERT_EQ(single.exit_code, 0) << single.err;
  const Json json = Json::parse(single.out);
  EXPECT_EQ(json["records"], 1);
  EXPECT_EQ(json["predictions"][0]["file"], "a night.png");
  EXPECT_EQ(json["predictions"][0]["class"], "dark");
  // In folders of classes the folder is part of the name.
  const CommandOutcome labelled = RunProgram({"predict", run, (root / "train").string()});
  EXPECT_THAT(labelled.out, HasSubstr("\ndark/0.png,dark,"));
  EXPECT_THAT(labelled.out, HasSubstr("\nbright/5.png,bright,"));
  const CommandOutcome refused = RunProgram(
      {"train", one, "--shape", "1,8,8", "--class-names", "dark,bright", "--records", "12",
       "--noise", "1", "--delta", "1e-5", "--steps", "2", "--out", (root / "none").string()});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("is one image without a label"));
}

// The words of sst2 come from its public files, which another machine does not have.
TEST(PredictText, AModelOfNamedTextNeedsNeitherItsVocabularyNorItsLengthAgain) {
  const TestFolder root;
  root.Write("sst2/train.tsv", "1\tgood fine film\n0\tbad dull film\n1\tgood\n0\tdull\n");
  root.Write("sst2/dev.tsv", "1\tgood fine\n0\tbad dull\n");
  root.Write("sst2/test.tsv", "1\tfine film\n0\tdull film\n");
  setenv("SORDINO_DATA", (root / "").c_str(), 1);
  const std::string run = (root / "run").string();
  const CommandOutcome trained =
      RunProgram({"train", "--data", "sst2", "--model", "lstm", "--width", "4", "--non-private",
                  "--batch", "2", "--steps", "2", "--rate", "0.5", "--out", run});
  unsetenv("SORDINO_DATA");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  std::filesystem::remove_all(root / "sst2");
  const std::string fresh = root.Write("new.tsv", "good film\nbad film\n").string();
  const CommandOutcome outcome = RunProgram({"predict", "--run", run, "--data", fresh});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, MatchesRegex("class,probability\n(negative|positive),[0-9.]+\n"
                                        "(negative|positive),[0-9.]+\n"));
  std::ofstream(run + "/vocabulary.txt") << "film\n";
  const CommandOutcome changed = RunProgram({"predict", "--run", run, "--data", fresh});
  EXPECT_EQ(changed.exit_code, 2);
  EXPECT_THAT(changed.err, HasSubstr("vocabulary.txt' was changed"));
}

// Neither a vocabulary nor its file: hashed words, and words of public text.
TEST(PredictText, WordsAreHashedOrTakenFromPublicText) {
  const TestFolder root;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "1\tgood fine film\n0\tbad dull film\n";
  const std::string train = root.Write("train.tsv", text).string();
  const std::string words =
      root.Write("public.txt", "fine words are good\nbad dull film\n").string();
  const std::string fresh = root.Write("new.tsv", "good fine film\nbad dull film\n").string();
  for (const std::string& vocabulary : {std::string("hash:64"), "text:" + words}) {
    const std::string run = (root / ("run" + vocabulary.substr(0, 4))).string();
    const CommandOutcome trained = RunProgram({"train",
                                               train,
                                               "--format",
                                               "text",
                                               "--vocabulary",
                                               vocabulary,
                                               "--length",
                                               "4",
                                               "--class-names",
                                               "bad,good",
                                               "--model",
                                               "lstm",
                                               "--width",
                                               "8",
                                               "--non-private",
                                               "--records",
                                               "80",
                                               "--batch",
                                               "40",
                                               "--steps",
                                               "60",
                                               "--optimizer",
                                               "adam",
                                               "--lr",
                                               "0.05",
                                               "--threads",
                                               "1",
                                               "--out",
                                               run});
    ASSERT_EQ(trained.exit_code, 0) << trained.err;
    EXPECT_EQ(fs::exists(run + "/vocabulary.txt"), vocabulary != "hash:64");
    fs::remove(words);
    const CommandOutcome outcome = RunProgram({"predict", run, fresh});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, MatchesRegex("class,probability\ngood,[0-9.]+\nbad,[0-9.]+\n"))
        << vocabulary;
    root.Write("public.txt", "fine words are good\nbad dull film\n");
  }
}

}  // namespace
}  // namespace sordino
