#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "sordino/cli/command_test_support.h"
#include "sordino/runs/train_settings.h"
#include "sordino/torch_cli/testing/points_table.h"

// Everything here goes through `sordino`, which replaces itself by sordino-torch.
namespace sordino {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class TrainCommand : public ::testing::Test {
 protected:
  TrainCommand()
      : train_(WriteTestFile("train.csv", PointsTable(300))),
        test_(WriteTestFile("test.csv", PointsTable(50))),
        out_(train_ + ".run") {
    setenv("SORDINO_STATE", (train_ + ".state").c_str(), 1);
  }
  ~TrainCommand() override {
    unsetenv("SORDINO_STATE");
    fs::remove_all(train_ + ".state");
    fs::remove_all(out_);
    fs::remove(train_);
    fs::remove(test_);
  }

  // A run that takes a second, with more flags after it.
  std::vector<std::string> Line(const std::string& more = "") const {
    std::vector<std::string> words =
        Words("train --model logistic --records 300 --batch 30 --lr 2 --threads 1 " + more);
    if (more.find("--non-private") == std::string::npos) {
      words.insert(words.end(), {"--clip", "1"});
    }
    if (more.find("--delta") == std::string::npos) {
      words.insert(words.end(), {"--delta", "1e-5"});
    }
    for (const std::string& word :
         {std::string("--data"), train_, std::string("--test"), test_, std::string("--out"), out_,
          std::string("--columns"), std::string("x:numeric:0:1"), std::string("y:numeric:0:1"),
          std::string("above:label:no|yes")}) {
      words.push_back(word);
    }
    return words;
  }

  std::string train_;
  std::string test_;
  std::string out_;
};

void ExpectOneSentence(const CommandOutcome& outcome, const std::string& part) {
  EXPECT_EQ(outcome.exit_code, 2) << part;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, MatchesRegex("sordino: [^\n]+\n"));
  EXPECT_THAT(outcome.err, HasSubstr(part));
}

TEST_F(TrainCommand, LearnsANumberAndPredictsItInItsUnits) {
  std::string table = "x,cost\n";
  for (int i = 0; i < 2000; ++i) {
    const double x = (i * 37 % 101) / 100.0;
    table += std::to_string(x) + ',' + std::to_string(1000 + 3000 * x) + '\n';
  }
  const std::string data = WriteTestFile("cost.csv", table);
  const std::string test = WriteTestFile("test-cost.csv", table + "0.5,2500\n");
  const CommandOutcome outcome = RunProgram({"train",
                                             "--data",
                                             data,
                                             "--test",
                                             test,
                                             "--columns",
                                             "x:numeric:0:1",
                                             "cost:target:0:5000",
                                             "--model",
                                             "logistic",
                                             "--epsilon",
                                             "5",
                                             "--delta",
                                             "1e-5",
                                             "--records",
                                             "2000",
                                             "--batch",
                                             "200",
                                             "--steps",
                                             "300",
                                             "--clip",
                                             "1",
                                             "--lr",
                                             "0.5",
                                             "--out",
                                             out_,
                                             "--json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const OrderedJson json = OrderedJson::parse(outcome.out);
  EXPECT_EQ(json["test_accuracy"], nullptr);
  // The deviation of the target is 870; the noise leaves a tenth of it.
  EXPECT_LT(json["test_mean_absolute_error"], 200);
  EXPECT_GE(json["test_mean_squared_error"].get<double>(),
            std::pow(json["test_mean_absolute_error"].get<double>(), 2) * 0.999);
  const CommandOutcome predicted =
      RunProgram({"predict", "--run", out_, "--data", test, "--public-labels", "--json"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_NEAR(OrderedJson::parse(predicted.out)["mean_absolute_error"],
              json["test_mean_absolute_error"].get<double>(), 0.1);
  const CommandOutcome csv = RunProgram({"predict", "--run", out_, "--data", data});
  EXPECT_THAT(csv.out, StartsWith("prediction\n"));
  ExpectOneSentence(RunProgram({"predict", "--run", out_, "--data", data, "--probabilities"}),
                    "the model predicts a number");
  ExpectOneSentence(RunProgram({"train", "--data", data, "--columns", "x:numeric:0:1",
                                "cost:target:0:5000", "--model", "logistic", "--epsilon", "5",
                                "--delta", "1e-5", "--records", "2000", "--class-weights", "1,2"}),
                    "a number without classes");
}

TEST_F(TrainCommand, AdaptiveNoiseEndsWithItsEpsilonAndSaysHowOftenItWasLowered) {
  // The gain is all held-out records: of eleven counts at least one misses it.
  std::vector<std::string> full = Line(
      "--epsilon 5 --sampling full --steps 60 --noise-schedule adaptive --validation-every 5 "
      "--validation-gain 1 --json");
  const auto batch = std::find(full.begin(), full.end(), "--batch");
  full.erase(batch, batch + 2);
  const CommandOutcome outcome = RunProgram(full);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const OrderedJson json = OrderedJson::parse(outcome.out);
  EXPECT_EQ(json["epsilon"]["upper"], 5);
  EXPECT_EQ(json["interrupted"], false);
  EXPECT_EQ(json["planned_steps"], 60);
  EXPECT_LT(json["steps"], 60);
  EXPECT_GE(json["noise_lowered"], 1);
  EXPECT_LT(json["last_noise_multiplier"], json["noise_multiplier"]);
  fs::remove_all(out_);
  ExpectOneSentence(RunProgram(Line("--noise 1 --noise-schedule adaptive")), "give --epsilon");
  ExpectOneSentence(RunProgram(Line("--epsilon 5 --validation-share 0.2")),
                    "--validation-share is for --noise-schedule adaptive");
}

TEST_F(TrainCommand, JsonIsTheOnlyLineAndHasTheFieldsInOrder) {
  const CommandOutcome outcome = RunProgram(Line("--epsilon 5 --steps 20 --json"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
  const OrderedJson json = OrderedJson::parse(outcome.out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys,
              ElementsAre("schema", "run", "epsilon", "delta", "renyi_epsilon", "noise_multiplier",
                          "sampling_rate", "steps", "test_accuracy", "test_log_loss", "test_auroc",
                          "test_calibration_error", "seconds", "private", "interrupted"));
  EXPECT_EQ(json["run"], out_);
  EXPECT_LE(json["epsilon"]["upper"], 5);
  EXPECT_LE(json["epsilon"]["lower"], json["epsilon"]["upper"]);
  // What Renyi divergences say of the same steps is more, by less than half.
  EXPECT_GT(json["renyi_epsilon"], json["epsilon"]["upper"]);
  EXPECT_LT(json["renyi_epsilon"].get<double>(), 1.5 * json["epsilon"]["upper"].get<double>());
  EXPECT_EQ(json["delta"], 1e-5);
  EXPECT_EQ(json["steps"], 20);
  EXPECT_EQ(json["sampling_rate"], 0.1);
  EXPECT_EQ(json["private"], true);
  EXPECT_EQ(json["interrupted"], false);
  // Progress is on standard error, with public values only.
  EXPECT_THAT(outcome.err, HasSubstr("train: 100%"));
  EXPECT_THAT(outcome.err, HasSubstr("test accuracy"));
}

TEST_F(TrainCommand, PeopleGetNumbersAndTheGuarantee) {
  const CommandOutcome outcome = RunProgram(Line("--noise 1 --rate 0.1 --steps 5"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("test accuracy"));
  EXPECT_THAT(outcome.out, HasSubstr("test quality"));
  EXPECT_THAT(outcome.out, HasSubstr("noise multiplier  1\n"));
  EXPECT_THAT(outcome.out, HasSubstr("-differentially private: adding or removing one record"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("NOT PRIVATE")));
}

TEST_F(TrainCommand, TheConfigurationOfARunRunsAgainAndFlagsWinOverIt) {
  ASSERT_EQ(RunProgram(Line("--epsilon 5 --steps 10 --json")).exit_code, 0);
  const std::string again = out_ + ".again";
  const CommandOutcome outcome =
      RunProgram({"train", out_ + "/config.toml", "--out", again, "--json", "--epsilon", "2"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const OrderedJson json = OrderedJson::parse(outcome.out);
  EXPECT_EQ(json["steps"], 10);
  EXPECT_LE(json["epsilon"]["upper"], 2);
  EXPECT_GT(json["epsilon"]["upper"], 1.5);
  fs::remove_all(again);
}

TEST_F(TrainCommand, AModelWithAWeightThatIsNotFiniteIsAFailure) {
  // Each step multiplies the weights by 2e9.
  const CommandOutcome outcome = RunProgram(Line("--noise 1 --steps 20 --weight-decay 1e9"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("is not a finite number"), HasSubstr("stay charged")));
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(fs::exists(out_ + "/model.safetensors"));
}

TEST_F(TrainCommand, ARefusedLabelIsToldOnlyOnRequest) {
  std::ofstream(train_, std::ios::app) << "0.5,0.5,PRIVATE-7391\n";
  const CommandOutcome silent = RunProgram(Line("--noise 1 --steps 2"));
  EXPECT_EQ(silent.exit_code, 2);
  EXPECT_THAT(silent.err, AllOf(HasSubstr("'above'"), HasSubstr("not declared"),
                                Not(HasSubstr("7391")), Not(HasSubstr("302"))));
  const CommandOutcome told = RunProgram(Line("--noise 1 --steps 2 --show-private"));
  EXPECT_EQ(told.exit_code, 2);
  EXPECT_THAT(told.err, HasSubstr("line 302 has 'PRIVATE-7391'; this is about the private data"));
}

TEST_F(TrainCommand, ADryRunShowsThePlanAndTrainsNothing) {
  const CommandOutcome outcome = RunProgram(Line("--epsilon 5 --steps 20 --dry-run"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("noise multiplier"));
  EXPECT_THAT(outcome.out, HasSubstr("add-remove: "));
  EXPECT_THAT(outcome.out, HasSubstr("PLANNED"));
  EXPECT_THAT(outcome.out, HasSubstr("What is not covered"));
  EXPECT_FALSE(fs::exists(out_));
  const OrderedJson json =
      OrderedJson::parse(RunProgram(Line("--epsilon 5 --steps 20 --dry-run --json")).out);
  EXPECT_EQ(json["run"], nullptr);
  EXPECT_EQ(json["dry_run"], true);
  EXPECT_THAT(json["event"].get<std::string>(), StartsWith("add-remove: "));
}

// From the flag to the ledger: the plan, the run and 'sordino account' speak of the same event.
TEST_F(TrainCommand, AllocationIsPlannedChargedAndAccountedAlike) {
  const std::string flags = "--sampling allocation --epsilon 5 --epochs 3 --json";
  const OrderedJson planned = OrderedJson::parse(RunProgram(Line(flags + " --dry-run")).out);
  EXPECT_EQ(planned["steps"], 30);
  EXPECT_EQ(planned["sampling_rate"], 0.1);
  EXPECT_THAT(planned["statement"].get<std::string>(), HasSubstr("one of 10 batches an epoch"));
  EXPECT_FALSE(fs::exists(out_));
  const CommandOutcome outcome = RunProgram(Line(flags));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const OrderedJson trained = OrderedJson::parse(outcome.out);
  EXPECT_LE(trained["epsilon"]["upper"], 5);
  const OrderedJson accounted = OrderedJson::parse(
      RunProgram(Words("account --sampling allocation --rate 0.1 --steps 30 --delta 1e-5 --json "
                       "--noise " +
                       planned["noise_multiplier"].dump()))
          .out);
  EXPECT_EQ(accounted["event"], planned["event"]);
  EXPECT_EQ(ReadTestFile(out_ + "/event.txt"), accounted["event"].get<std::string>() + "\n");
  // Failures are paid out of delta, and cost next to nothing.
  const double alone = accounted["epsilon"]["upper"];
  EXPECT_NEAR(trained["epsilon"]["upper"].get<double>(), alone, 1e-3 * alone);
  const CommandOutcome ledger = RunProgram({"ledger", "show", out_ + "/ledger.db", "--json"});
  EXPECT_THAT(ledger.out, HasSubstr("3*allocation(10, gaussian("));
  // Its own configuration makes the same plan.
  const CommandOutcome again = RunProgram({"train", out_ + "/config.toml", "--dry-run", "--json"});
  EXPECT_EQ(OrderedJson::parse(again.out)["event"], planned["event"]);
}

TEST_F(TrainCommand, WithoutPrivacyItSaysSoOnEveryChannel) {
  const CommandOutcome outcome = RunProgram(Line("--non-private --steps 20"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith("NOT PRIVATE"));
  EXPECT_THAT(outcome.err, StartsWith("sordino: NOT PRIVATE"));
  fs::remove_all(out_);
  const OrderedJson json =
      OrderedJson::parse(RunProgram(Line("--non-private --steps 5 --json")).out);
  EXPECT_EQ(json["private"], false);
  EXPECT_EQ(json["epsilon"]["upper"], nullptr);
  EXPECT_EQ(json["delta"], nullptr);
  EXPECT_EQ(json["noise_multiplier"], 0);
  EXPECT_THAT(json["warning"].get<std::string>(), StartsWith("NOT PRIVATE"));
  fs::remove_all(out_);
  const CommandOutcome clipped =
      RunProgram(Line("--noise 0 --clipping layerwise --steps 5 --json"));
  EXPECT_THAT(clipped.err, StartsWith("sordino: NOT PRIVATE: this run clipped"));
  const OrderedJson clipped_json = OrderedJson::parse(clipped.out);
  EXPECT_EQ(clipped_json["private"], false);
  EXPECT_EQ(clipped_json["epsilon"]["upper"], nullptr);
  EXPECT_EQ(clipped_json["delta"], nullptr);
  EXPECT_EQ(clipped_json["noise_multiplier"], 0);
  EXPECT_THAT(clipped_json["warning"].get<std::string>(), StartsWith("NOT PRIVATE"));
  const std::string page = train_ + ".html";
  ASSERT_EQ(RunProgram({"report", out_, "--out", page}).exit_code, 0);
  EXPECT_THAT(ReadTestFile(page), HasSubstr("NOT PRIVATE"));
  fs::remove(page);
  fs::remove_all(out_);
  const CommandOutcome seeded = RunProgram(Line("--insecure-seed 3 --epsilon 5 --steps 5 --json"));
  EXPECT_EQ(OrderedJson::parse(seeded.out)["private"], false);
  EXPECT_THAT(seeded.err, StartsWith("sordino: NOT PRIVATE"));
}

TEST_F(TrainCommand, RefusesWhatARunWithoutPrivacyWouldNotUse) {
  const auto refused = [&](const std::string& flag, const std::string& value,
                           const std::string& said) {
    std::vector<std::string> words = Line("--non-private --steps 5");
    words.insert(words.end(), {flag, value});
    ExpectOneSentence(RunProgram(words), said);
    EXPECT_FALSE(fs::exists(out_)) << flag;
  };
  refused("--clip", "0.1", "give --noise 0 to clip without noise");
  refused("--noise", "1.1", "adds no noise, so --noise 1.1 has no meaning beside it");
  refused("--noise", "0", "so --noise 0 has no meaning beside it");
  refused("--epsilon", "3", "spends nothing, so --epsilon 3 has no meaning beside it");
  // That of a file is the private run that is compared with.
  const std::string file = train_ + ".toml";
  std::ofstream(file) << "[privacy]\nepsilon = 3\nclip = 0.5\n";
  const CommandOutcome recipe =
      RunProgram(Line("--non-private --steps 5 --dry-run --config " + file));
  EXPECT_EQ(recipe.exit_code, 0) << recipe.err;
  fs::remove(file);
}

// Without it, the matrix products of some Arm machines never return (device/blas_kernels.h).
TEST_F(TrainCommand, RunsInAnEmptyEnvironment) {
  std::vector<std::string> words = Line("--noise 5 --steps 3 --json");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::vector<char*> arguments = {const_cast<char*>(SORDINO_PROGRAM)};
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::string state = "SORDINO_STATE=" + train_ + ".state";
    std::array<char*, 2> environment = {state.data(), nullptr};
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(99);
    alarm(300);
    execve(SORDINO_PROGRAM, arguments.data(), environment.data());
    _exit(98);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(TrainCommand, CtrlCEndsAfterTheStepInHandWithEverythingWritten) {
  // So many steps that it would take hours.
  std::vector<std::string> words = Line("--noise 5 --steps 100000000 --evaluate-every 1000 --json");
  const std::string stdout_file = out_ + ".stdout";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::vector<char*> arguments = {const_cast<char*>(SORDINO_PROGRAM)};
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (std::freopen(stdout_file.c_str(), "w", stdout) == nullptr) _exit(99);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(99);
    execv(SORDINO_PROGRAM, arguments.data());
    _exit(98);
  }
  // The first line of the metrics shows that steps are being made.
  for (int i = 0; i < 600 && ReadTestFile(out_ + "/metrics.jsonl").empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  kill(child, SIGINT);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  const OrderedJson json = OrderedJson::parse(ReadTestFile(stdout_file));
  EXPECT_EQ(json["interrupted"], true);
  EXPECT_GT(json["steps"], 0);
  EXPECT_LT(json["steps"], 100000000);
  EXPECT_TRUE(fs::exists(out_ + "/model.safetensors"));
  EXPECT_TRUE(fs::exists(out_ + "/accuracy-and-epsilon.svg"));
  EXPECT_THAT(ReadTestFile(out_ + "/statement.txt"), HasSubstr("was stopped after"));
  fs::remove(stdout_file);
}

TEST_F(TrainCommand, ARunThatWasKilledGoesOnFromItsCheckpoint) {
  std::vector<std::string> words =
      Line("--epsilon 3 --delta 1e-5 --steps 4000 --insecure-seed 1 --checkpoint-every 20");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::vector<char*> arguments = {const_cast<char*>(SORDINO_PROGRAM)};
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (std::freopen("/dev/null", "w", stdout) == nullptr) _exit(99);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(99);
    execv(SORDINO_PROGRAM, arguments.data());
    _exit(98);
  }
  for (int i = 0; i < 3000 && !fs::exists(out_ + "/checkpoints/step-000000040"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));

  const CommandOutcome charged = RunProgram({"ledger", "show", out_ + "/ledger.db", "--json"});
  ASSERT_EQ(charged.exit_code, 0) << charged.err;
  const CommandOutcome resumed = RunProgram({"train", "--resume", out_, "--json"});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("resuming after "));
  const OrderedJson json = OrderedJson::parse(resumed.out);
  EXPECT_EQ(json["steps"], 4000);
  const CommandOutcome shown = RunProgram({"ledger", "show", out_ + "/ledger.db", "--json"});
  const OrderedJson ledger = OrderedJson::parse(shown.out);
  // All of it is charged: the steps of the plan, and again those that the kill took.
  const auto lost = json.value("lost_steps", std::int64_t{0});
  EXPECT_EQ(ledger["runs"][0]["releases"], 4000 + lost);
  EXPECT_EQ(ledger["runs"].size(), 1U);
  EXPECT_EQ(RunProgram({"ledger", "verify", out_ + "/ledger.db"}).exit_code, 0);

  const CommandOutcome ended = RunProgram({"train", "--resume", out_});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_THAT(ended.err, HasSubstr("has ended"));
}

TEST_F(TrainCommand, RunsAreChargedToTheLedgerThatIsNamed) {
  const std::string ledger = out_ + ".ledger.db";
  fs::remove(ledger);
  ASSERT_EQ(RunProgram({"ledger", "init", ledger, "--epsilon", "3", "--delta", "1e-5"}).exit_code,
            0);
  const std::string flags = "--delta 1e-5 --steps 20 --json --ledger " + ledger + " --epsilon ";
  const CommandOutcome dry = RunProgram(Line(flags + "2 --dry-run"));
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  const CommandOutcome first = RunProgram(Line(flags + "2"));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const OrderedJson json = OrderedJson::parse(first.out);
  EXPECT_EQ(json["ledger"]["budget"]["epsilon"], 3);
  EXPECT_LE(json["ledger"]["epsilon"]["upper"], 2);
  EXPECT_THAT(json["ledger"]["head"].get<std::string>(), MatchesRegex("[0-9a-f]{64}"));
  EXPECT_FALSE(fs::exists(out_ + "/ledger.db"));
  // A run that would pass the budget makes the steps that are left, and says so before.
  fs::remove_all(out_);
  const CommandOutcome second = RunProgram(Line(flags + "2.9"));
  ASSERT_EQ(second.exit_code, 3) << second.err;
  EXPECT_THAT(second.err, HasSubstr("of the 20 steps, and the run ends there"));
  const OrderedJson stopped = OrderedJson::parse(second.out);
  EXPECT_EQ(stopped["interrupted"], true);
  EXPECT_THAT(stopped["stopped_by_ledger"].get<std::string>(), HasSubstr("of the budget"));
  EXPECT_LT(stopped["steps"], 20);
  EXPECT_LE(stopped["ledger"]["epsilon"]["upper"], 3);
  // And one that not a step is left for makes nothing.
  fs::remove_all(out_);
  const CommandOutcome third = RunProgram(Line(flags + "2.9"));
  EXPECT_EQ(third.exit_code, 2);
  EXPECT_EQ(OrderedJson::parse(third.out)["error"]["exit_code"], 2);
  EXPECT_FALSE(fs::exists(out_));
  fs::remove(ledger);
}

TEST_F(TrainCommand, ResumeTakesNoOtherSettings) {
  const CommandOutcome outcome = RunProgram({"train", "--resume", out_, "--steps", "5"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("leave out all other settings"));
  const CommandOutcome nowhere = RunProgram({"train", "--resume", out_});
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("is not the folder of a run"));
  const CommandOutcome missing =
      RunProgram(Line("--epsilon 3 --delta 1e-5 --steps 5 --ledger /no"));
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("does not exist"));
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(TrainCommand, HelpHasEveryFlagAndExamples) {
  const CommandOutcome outcome = RunProgram(Words("train --help-all"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("Examples:\n  sordino train digits"));
  for (const Setting& setting : TrainSettings()) {
    EXPECT_THAT(outcome.out, HasSubstr("  " + std::string(setting.flag)));
  }
  EXPECT_THAT(outcome.out, HasSubstr("  --epsilon X  "));
  for (const char* title : {"Data:", "Model:", "Privacy:", "Training:", "Run:"}) {
    EXPECT_THAT(outcome.out, HasSubstr(std::string("\n") + title + "\n"));
  }
}

TEST_F(TrainCommand, TakesASchemaAndWritesItsColumnsIntoTheRun) {
  const std::string schema = WriteTestFile("schema.toml", R"([table]
missing = ["?"]
[[column]]
name = "x"
kind = "numeric"
low = 0
high = 1
[[column]]
name = "y"
kind = "numeric"
low = 0
high = 1
[[column]]
name = "above"
kind = "label"
values = ["no", "yes"]
)");
  std::vector<std::string> line = Line("--epsilon 5 --steps 20");
  line.resize(line.size() - 4);  // without --columns
  line.insert(line.end(), {"--schema", schema});
  std::ofstream(train_, std::ios::app) << "?,0.5,yes\n";
  line[4] = "301";
  const CommandOutcome outcome = RunProgram(line);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string config = ReadTestFile(out_ + "/config.toml");
  EXPECT_THAT(config, HasSubstr("columns = [\"x:numeric:0:1\", \"y:numeric:0:1\", "
                                "\"above:label:no|yes\"]"));
  EXPECT_THAT(config, HasSubstr("missing = [\"?\"]"));
  EXPECT_THAT(config, HasSubstr("# schema is left out"));
  fs::remove(schema);
  EXPECT_EQ(RunProgram({"predict", "--run", out_, "--data", test_}).exit_code, 0);
}

TEST_F(TrainCommand, DataAreDeclaredByTheSameFlagsAsInTheDataCommand) {
  const std::string help = RunProgram(Words("data --help-all")).out;
  for (const Setting& setting : TrainSettings()) {
    if (setting.section != "data") continue;
    EXPECT_THAT(help, HasSubstr("  " + std::string(setting.flag) + " "));
  }
}

TEST_F(TrainCommand, MistakesAreToldInOneSentenceAndMakeNoFolder) {
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"--epsilon 5 --steps 20 --noise 1", "--epsilon and --noise are both given"},
      {"--steps 20", "a setting is missing: the budget (--epsilon: or --noise"},
      {"--epsilon 5 --delta 1e-30 --steps 20", "no noise meets epsilon 5 and delta 1e-30"},
      {"--epsilon 5 --steps 20 --epochs 3", "--epochs and --steps are both given"},
      {"--epsilon five", "'five' in --epsilon"},
      {"--epsilon 5 --sampling poison", "did you mean 'poisson'?"},
      {"--epsilon 5 --optimiser sgd", "did you mean '--optimizer'?"},
      {"--epsilon 5 --device gpu", "--device is 'gpu'"},
      {"--epsilon 5 --lr-schedule sine", "sine"},
      {"--epsilon 5 --activation relu", "activation"},
      {"--epsilon 5 --copies 4", "the data are none"},
      {"--epsilon 5 --pretrained /nonexistent.safetensors", "/nonexistent.safetensors"},
      {"--epsilon 5 --freeze nothing", "nothing"},
      {"--epsilon 5 --sampling fixed --adjacency add-remove", "add-remove"},
      {"--epsilon 5 --sampling allocation --adjacency replace-one", "add-remove and zero-out only"},
      {"--epsilon 5 --sampling allocation --noise-kind laplace", "Gaussian noise only"},
      {"--epsilon 5 --sampling allocation --noise-schedule linear:0.5", "steps of equal noise"},
      {"--epsilon 5 --sampling allocation --rate-schedule linear:0.5", "needs poisson sampling"},
      {"--epsilon 5 --sampling allocation --micro-batch 2", "no bounded sensitivity"},
      {"--epsilon 5 --sampling allocation --rate 0.3", "one over a whole number of batches"},
      {"--epsilon 5 --sampling full --rate 0.3",
       "--rate is for --sampling poisson, allocation or cyclic"},
      {"--epsilon 5 --test-labels x", "labels"},
  };
  for (const auto& [more, part] : mistakes) {
    ExpectOneSentence(RunProgram(Line(more)), part);
    EXPECT_FALSE(fs::exists(out_)) << more;
  }
}

TEST_F(TrainCommand, WhatIsMissingIsToldAtOnceWithALineThatWorks) {
  const std::vector<std::string> line = {"train",         train_,
                                         "--columns",     "x:numeric:0:1",
                                         "y:numeric:0:1", "above:label:no|yes",
                                         "--epochs",      "1",
                                         "--out",         out_};
  const CommandOutcome told = RunProgram(line);
  ExpectOneSentence(told, "3 settings are missing: the number of records (--records: ");
  EXPECT_THAT(told.err, HasSubstr("the budget (--epsilon: "));
  EXPECT_THAT(told.err, HasSubstr("and delta (--delta: "));
  EXPECT_FALSE(fs::exists(out_));
  const std::string begin = "this would work: ";
  std::string suggested = told.err.substr(told.err.find(begin) + begin.size());
  suggested.pop_back();
  EXPECT_THAT(suggested, HasSubstr("'above:label:no|yes'"));
  // Words as a shell reads them.
  std::vector<std::string> words = Words(suggested);
  ASSERT_EQ(words.front(), "sordino");
  words.erase(words.begin());
  for (std::string& word : words) std::erase(word, '\'');
  const CommandOutcome trained = RunProgram(words);
  EXPECT_EQ(trained.exit_code, 0) << suggested << '\n' << trained.err;
  EXPECT_THAT(trained.err, HasSubstr("no --model was given; 'mlp' is the default for such data."));
  EXPECT_THAT(ReadTestFile(out_ + "/config.toml"), HasSubstr("name = \"mlp\""));
}

TEST_F(TrainCommand, TheFirstWordIsDataOrAConfigurationByItsContent) {
  std::vector<std::string> line = {"train", train_};
  for (const std::string& word : Line("--noise 1 --steps 3")) {
    if (word != "train" && word != "--data" && word != train_) line.push_back(word);
  }
  const CommandOutcome data = RunProgram(line);
  ASSERT_EQ(data.exit_code, 0) << data.err;
  EXPECT_THAT(data.err, Not(HasSubstr("holds settings")));
  // The settings of that run under a name that tells nothing.
  const std::string config = WriteTestFile("settings", ReadTestFile(out_ + "/config.toml"));
  fs::remove_all(out_);
  const CommandOutcome read = RunProgram({"train", config, "--out", out_, "--dry-run", "--json"});
  ASSERT_EQ(read.exit_code, 0) << read.err;
  EXPECT_THAT(read.err, HasSubstr("holds settings, not data, and is read as --config."));
  const CommandOutcome said = RunProgram({"train", "--config", config, "--dry-run", "--json"});
  EXPECT_EQ(said.out, read.out);
  EXPECT_EQ(said.err.find("holds settings"), std::string::npos);
  // With --config the word is the data, in the place of those of the file.
  const CommandOutcome other = RunProgram({"train", "gone.csv", "--config", config, "--dry-run"});
  ExpectOneSentence(other, "'gone.csv' is neither a known dataset nor a file");
  for (const char* command : {"fit", "data", "kernel"}) {
    ExpectOneSentence(RunProgram({command, config}), "holds settings of 'sordino train'");
  }
}

TEST_F(TrainCommand, ADamagedFileIsAMistake) {
  std::ofstream(train_) << "x,y,above\n0.5,0.5,perhaps\n";
  ExpectOneSentence(RunProgram(Line("--epsilon 5 --steps 5")), "the column 'above'");
  EXPECT_FALSE(fs::exists(out_));
}

TEST_F(TrainCommand, AnExistingRunIsNotOverwritten) {
  fs::create_directories(out_);
  std::ofstream(out_ + "/precious") << "x";
  ExpectOneSentence(RunProgram(Line("--epsilon 5 --steps 5")), "never overwritten");
  EXPECT_EQ(ReadTestFile(out_ + "/precious"), "x");
}

TEST_F(TrainCommand, TakesEveryPrecisionAndWritesItIntoTheRun) {
  for (const std::string precision : {"bfloat16", "float32"}) {
    const CommandOutcome outcome =
        RunProgram(Line("--noise 1 --rate 0.1 --steps 5 --precision " + precision));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(ReadTestFile(out_ + "/config.toml"), HasSubstr("precision = \"" + precision));
    fs::remove_all(out_);
  }
}

class TrainMistakes : public ::testing::TestWithParam<Mistake> {};
TEST_P(TrainMistakes, AreToldInOneSentence) { ExpectMistake(GetParam()); }
INSTANTIATE_TEST_SUITE_P(
    CommandLines, TrainMistakes,
    ::testing::Values(
        Mistake{"train",
                "2 settings are missing: the data (--data: or any file or folder), and "
                "the budget (--epsilon"},
        Mistake{"train digits --model mlp",
                "this would work: sordino train digits --model mlp "
                "--epsilon 3"},
        Mistake{"train digits --data digits --epsilon 1", "name the data once"},
        Mistake{"train digits --config /nonexistent.toml --epsilon 1", "/nonexistent.toml"},
        Mistake{"train digits --eps 3", "did you mean '--epsilon'?"},
        Mistake{"train digits --epsilon 1 --device cpu --script x.pt --threads 4",
                "takes at most 2 on a processor"},
        Mistake{"train digits --learning-rate 3", "did you mean '--lr'?"},
        Mistake{"train digits --batch-size 3", "did you mean '--batch'?"},
        Mistake{"train --data digits --model mlp --epsilon 1 --ledger= --dry-run",
                "'--ledger' is empty"},
        Mistake{"train --data digts --model mlp --epsilon 1", "did you mean 'digits'?"},
        Mistake{"train --data digits --model cnn-mnits --epsilon 1", "did you mean 'cnn-mnist'?"},
        Mistake{"train --data digits --model lstm --epsilon 1", "lstm"},
        Mistake{"train --data digits --model mlp --epsilon 1 --batch 0", "--batch is 0"},
        Mistake{"train --data digits --model mlp --epsilon 1 --mean 0,0,0 --deviation 1,1,1 "
                "--dry-run",
                "3 means and 3 deviations were declared"},
        Mistake{"train --data digits --model logistic --noise 1e-300 --steps 3 --dry-run",
                "too small"},
        Mistake{"train --data digits --model mlp --epsilon 1 --batch 70000", "at most that many"},
        Mistake{"train --data digits --model mlp --epsilon 1 --delta 2", "--delta is 2"},
        Mistake{"train --data digits --model mlp --epsilon -1", "--epsilon"},
        Mistake{"train --data digits --model mlp --epsilon 1 --delta 1e-320", "--delta is"},
        Mistake{"train --data digits --model mlp --epsilon 1 --copies 1000000000", "--copies is"},
        Mistake{"train --data digits --model mlp --epsilon 1 --threads 100000", "--threads is"},
        Mistake{"train --dry-run --data digits --model mlp --epsilon 1 --lr 1e300",
                "the learning rate is 1e+300"},
        Mistake{"train --dry-run --data digits --model mlp --epsilon 1 --lr -1",
                "the learning rate is -1"},
        Mistake{"train --dry-run --data digits --model mlp --epsilon 1 --momentum 2",
                "the momentum is 2"},
        Mistake{"train --dry-run --data digits --model mlp --epsilon 1 --optimizer adam --beta1 1",
                "beta1 is 1"},
        Mistake{"train --dry-run --data digits --model mlp --epsilon 1 --weight-decay 1e300",
                "the weight decay is"},
        Mistake{"train --dry-run --data digits --model mlp --epsilon 1 --clip 1e300", "--clip is"},
        Mistake{"train --dry-run --data digits --model mlp --noise 1e300", "--noise is"},
        Mistake{"train --dry-run --data digits --model mlp --epsilon 1 --precision bfloat61",
                "did you mean 'bfloat16'?"},
        Mistake{"train --dry-run --data digits --model mlp --epsilon 1 --precision bfloat16 "
                "--norms jl",
                "use exact norms"},
        Mistake{"train --data digits --script /nonexistent.pt --epsilon 1", "/nonexistent.pt"},
        Mistake{"train --data digits --model mlp --script m.pt --epsilon 1", "two models"},
        Mistake{"train --data digits --model scatternet-linear --epsilon 1 --flip",
                "features once for each record"},
        Mistake{"train --data digits --epsilon 1 --epsilon 2", "--epsilon is given 2 times"},
        Mistake{"train /nonexistent.toml", "/nonexistent.toml"},
        Mistake{"train one.toml two.toml", "'two.toml' was not expected"},
        Mistake{"trian --data digits", "did you mean 'train'?"}));

TEST(TrainConfigFile, MistakesNameTheLine) {
  const std::string file =
      WriteTestFile("bad.toml", "[data]\nsource = \"digits\"\n[model]\nnam = 1\n");
  const CommandOutcome outcome = RunProgram({"train", file});
  ExpectOneSentence(outcome,
                    file + ", line 4: 'nam' is not a key of [model]; did you mean 'name'?");
  fs::remove(file);
}

}  // namespace
}  // namespace sordino
