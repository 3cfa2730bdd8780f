#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

#include "sordino/cli/command_test_support.h"
#include "sordino/runs/fit_run.h"
#include "sordino/torch_cli/testing/fit_table.h"
#include "sordino/torch_cli/testing/points_table.h"

// Everything here goes through `sordino`, which replaces itself by sordino-torch.
namespace sordino {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using FitCommand = FitTable;

TEST_F(FitCommand, JsonHasTheFieldsOfTheDocs) {
  const std::string test = folder_.Write("test.csv", PointsTable(200)).string();
  const CommandOutcome outcome =
      Fit(PointsTable(2000), "--epsilon 2 --records 2000 --json --test " + test);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
  const OrderedJson json = OrderedJson::parse(outcome.out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(
      keys, ElementsAre("schema", "run", "method", "coefficients", "intervals", "epsilon", "delta",
                        "test_accuracy", "test_log_loss", "test_auroc", "test_calibration_error",
                        "predicted_excess_risk", "certificate", "plan", "seconds", "private"));
  // Whole: how long a minimum takes depends on the data.
  EXPECT_EQ(json["seconds"].get<double>(), std::floor(json["seconds"].get<double>()));
  EXPECT_EQ(json["coefficients"].size(), 3U);
  EXPECT_LT(json["coefficients"]["x"], 0);
  EXPECT_GT(json["coefficients"]["y"], 0);
  EXPECT_TRUE(json["coefficients"].contains("intercept"));
  EXPECT_GT(json["epsilon"]["upper"], 1.5);
  EXPECT_LE(json["epsilon"]["upper"], 2 * (1 + 1e-6));
  EXPECT_GT(json["test_accuracy"], 0.9);
  EXPECT_GT(json["test_auroc"], 0.95);
  EXPECT_LT(json["test_log_loss"], std::log(2));
  EXPECT_TRUE(json["predicted_excess_risk"].contains(json["method"].get<std::string>()));
  EXPECT_EQ(json["plan"]["adjacency"], "add-remove");
  EXPECT_EQ(json["private"], true);
}

TEST_F(FitCommand, CountsItsMistakesAndSaysWhatItIsFor) {
  const std::string test = folder_.Write("test.csv", PointsTable(200)).string();
  const CommandOutcome outcome =
      Fit(PointsTable(2000),
          "--epsilon 2 --records 2000 --json --curator Clinic --use beds --test " + test);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const OrderedJson predictions = OrderedJson::parse(ReadTestFile(Place("run/predictions.json")));
  const double right =
      predictions["confusion"][0][0].get<double>() + predictions["confusion"][1][1].get<double>();
  EXPECT_NEAR(right / 200, OrderedJson::parse(outcome.out)["test_accuracy"].get<double>(), 1e-12);
  EXPECT_TRUE(predictions["examples"].empty());
  EXPECT_THAT(ReadTestFile(Place("run/statement.txt")),
              HasSubstr("Curator: Clinic. Intended use: beds."));
  EXPECT_EQ(OrderedJson::parse(ReadTestFile(Place("run/record.json")))["curator"], "Clinic");
}

TEST_F(FitCommand, EveryMethodRunsAndPredictReadsItsFolder) {
  const std::string test = folder_.Write("test.csv", PointsTable(200)).string();
  for (const std::string_view name : FitMethodNames()) {
    const std::string method(name);
    if (method == "adassp") continue;  // least squares alone
    const CommandOutcome outcome =
        Fit(PointsTable(5000), "--epsilon 5 --records 5000 --json --method " + method, kPoints,
            "run-" + method);
    ASSERT_EQ(outcome.exit_code, 0) << method << outcome.err;
    if (method != kAutoMethod) {
      EXPECT_EQ(OrderedJson::parse(outcome.out)["method"], method);
    }
    const CommandOutcome predicted = RunProgram(
        {"predict", "--run", Place("run-" + method), "--data", test, "--public-labels", "--json"});
    ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
    EXPECT_GT(OrderedJson::parse(predicted.out)["accuracy"], 0.85) << method;
  }
}

TEST_F(FitCommand, TheFolderHoldsStatementEventCoefficientsAndPicture) {
  const CommandOutcome outcome = Fit(PointsTable(1000), "--epsilon 3 --records 1000");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("differentially private"));
  EXPECT_THAT(ReadTestFile(Place("run/statement.txt")), HasSubstr("Privacy statement"));
  EXPECT_THAT(ReadTestFile(Place("run/statement.txt")), Not(HasSubstr("PLANNED")));
  EXPECT_THAT(ReadTestFile(Place("run/coefficients.csv")), StartsWith("feature,class,"));
  EXPECT_THAT(ReadTestFile(Place("run/coefficients.svg")), HasSubstr("</svg>"));
  EXPECT_THAT(ReadTestFile(Place("run/record.json")),
              HasSubstr("\"logistic regression of 2 features and an intercept\""));
  EXPECT_THAT(ReadTestFile(Place("run/statement.txt")), HasSubstr("Model: logistic regression of"));
  // The event of the folder costs what was said.
  const CommandOutcome account =
      RunProgram({"account", "--event-file", Place("run/event.txt"), "--delta", "1e-5", "--json"});
  ASSERT_EQ(account.exit_code, 0) << account.err;
  EXPECT_LE(OrderedJson::parse(account.out)["epsilon"]["upper"], 3 * (1 + 1e-6));
}

TEST_F(FitCommand, ANumberIsFittedByLeastSquaresAndPredictedInItsUnits) {
  std::string table = "x,noise,cost\n";
  for (int i = 0; i < 4000; ++i) {
    const double x = (i * 37 % 101) / 100.0;
    table += std::to_string(x) + ',' + std::to_string((i * 13 % 7) / 7.0) + ',' +
             std::to_string(1000 + 3000 * x) + '\n';
  }
  const std::vector<std::string> columns = {"x:numeric:0:1", "noise:numeric:0:1",
                                            "cost:target:0:5000"};
  const std::string test = folder_.Write("test.csv", table + "0.5,0.5,2500\n").string();
  const CommandOutcome outcome =
      Fit(table, "--model least-squares --epsilon 5 --records 4000 --json --test " + test, columns);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const OrderedJson json = OrderedJson::parse(outcome.out);
  EXPECT_EQ(json["test_accuracy"], nullptr);
  EXPECT_LT(json["test_mean_absolute_error"], 400);
  EXPECT_NEAR(json["coefficients"]["x"], 3000, 900);
  EXPECT_NEAR(json["coefficients"]["intercept"], 1000, 700);
  const CommandOutcome predicted =
      RunProgram({"predict", "--run", Place("run"), "--data", test, "--public-labels", "--json"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  const OrderedJson predictions = OrderedJson::parse(predicted.out);
  EXPECT_NEAR(predictions["mean_absolute_error"], json["test_mean_absolute_error"].get<double>(),
              0.1);
  EXPECT_GT(predictions["predictions"][0]["prediction"], 0);
}

TEST_F(FitCommand, ImagesAreFittedByTheirScattering) {
  // Strokes that lie or stand: the same pixels on average.
  const int count = 1200;
  const auto number = [](int value) {
    return std::string{'\0', '\0', static_cast<char>(value >> 8), static_cast<char>(value & 255)};
  };
  std::string images = number(0x803) + number(count) + number(16) + number(16);
  std::string labels = number(0x801) + number(count);
  for (int i = 0; i < count; ++i) {
    const int at = i / 2 % 16;
    for (int pixel = 0; pixel < 256; ++pixel) {
      const bool is_on = (i % 2 == 0 ? pixel / 16 : pixel % 16) == at;
      images += is_on ? '\xff' : '\0';
    }
    labels += static_cast<char>(i % 2);
  }
  const std::string x = folder_.Write("x-idx3-ubyte", images).string();
  const std::string y = folder_.Write("y-idx1-ubyte", labels).string();
  images.back() ^= 1;  // a test file is no copy
  const std::string test_x = folder_.Write("test-x-idx3-ubyte", images).string();
  const std::string test_y = folder_.Write("test-y-idx1-ubyte", labels).string();
  const std::vector<std::string> data = {"--data",  x,         "--labels",      y,
                                         "--shape", "1,16,16", "--classes",     "2",
                                         "--test",  test_x,    "--test-labels", test_y};
  std::vector<std::string> words = {"fit",  "--features", "scattering", "--epsilon",
                                    "8",    "--delta",    "1e-5",       "--records",
                                    "1200", "--out",      Place("run"), "--json"};
  words.insert(words.end(), data.begin(), data.end());
  const CommandOutcome outcome = RunProgram(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_GT(OrderedJson::parse(outcome.out)["test_accuracy"], 0.9);
  const CommandOutcome predicted = RunProgram({"predict", "--run", Place("run"), "--data", test_x,
                                               "--labels", test_y, "--public-labels", "--json"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_GT(OrderedJson::parse(predicted.out)["accuracy"], 0.9);
  ExpectRefusal(Fit(PointsTable(20), "--epsilon 1 --records 20 --features scattering"),
                "--features are those of images");
}

// Accuracy has no noise.
TEST_F(FitCommand, TheTrainingFileAndItsCopiesAreNoPublicRecords) {
  const std::string table = PointsTable(300);
  const std::string train = folder_.Write("table.csv", table).string();
  const std::string copy = folder_.Write("copy.csv", table).string();
  const std::string ledger = Place("points.db");
  ASSERT_EQ(RunProgram({"ledger", "init", ledger, "--epsilon", "8", "--delta", "1e-5"}).exit_code,
            0);
  const std::string before = ReadTestFile(ledger);
  const std::string flags = "--epsilon 1 --records 300 --ledger " + ledger;
  ExpectRefusal(Fit(table, flags + " --test " + copy), "is a copy of the training file");
  ExpectRefusal(Fit(table, flags + " --test " + train), "is the training file");
  EXPECT_EQ(ReadTestFile(ledger), before);
  std::vector<std::string> data = {"data", train, "--test", copy, "--columns"};
  data.insert(data.end(), kPoints.begin(), kPoints.end());
  ExpectRefusal(RunProgram(data), "is a copy of the training file");

  ASSERT_EQ(Fit(table, flags).exit_code, 0);
  std::vector<std::string> words = {"predict", "--run", Place("run"), "--data", copy};
  EXPECT_EQ(RunProgram(words).exit_code, 0);
  words.emplace_back("--public-labels");
  ExpectRefusal(RunProgram(words), "is a copy of the training file");
  words[4] = train;
  ExpectRefusal(RunProgram(words), "is the training file");
  words[4] = folder_.Write("other.csv", PointsTable(200)).string();
  EXPECT_EQ(RunProgram(words).exit_code, 0);
}

TEST_F(FitCommand, ALedgerIsChargedOnceAndRefusesBeforeAnythingIsReleased) {
  const std::string ledger = Place("ledger.db");
  ASSERT_EQ(RunProgram({"ledger", "init", ledger, "--epsilon", "2", "--delta", "1e-4"}).exit_code,
            0);
  const CommandOutcome first =
      Fit(PointsTable(500), "--epsilon 1.5 --records 500 --json --ledger " + ledger);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_GT(OrderedJson::parse(first.out)["ledger"]["epsilon"]["upper"], 0.1);
  const std::string after = RunProgram({"ledger", "show", ledger, "--json"}).out;
  const CommandOutcome second =
      Fit(PointsTable(500), "--epsilon 1.5 --records 500 --ledger " + ledger, kPoints, "second");
  ExpectRefusal(second, "nothing was released");
  EXPECT_FALSE(fs::exists(Place("second")));
  EXPECT_EQ(RunProgram({"ledger", "show", ledger, "--json"}).out, after);
  // The ledger's adjacency needs a declared number.
  ExpectRefusal(Fit(PointsTable(500), "--epsilon 0.1 --ledger " + ledger, kPoints, "third"),
                "--records");
}

TEST_F(FitCommand, ASmallFitLeavesALargeBudgetOpen) {
  for (const auto& [method, epsilon, budget] :
       {std::make_tuple("output", "0.02", "40"), std::make_tuple("objective", "0.1", "8")}) {
    const std::string ledger = Place(std::string(method) + ".db");
    ASSERT_EQ(
        RunProgram({"ledger", "init", ledger, "--epsilon", budget, "--delta", "1e-6"}).exit_code,
        0);
    const std::string line = std::string("--delta 1e-6 --records 500 --json --method ") + method +
                             " --epsilon " + epsilon + " --ledger " + ledger;
    const CommandOutcome dry = Fit(PointsTable(500), line + " --dry-run", kPoints, "none");
    ASSERT_EQ(dry.exit_code, 0) << dry.err;
    const double used = OrderedJson::parse(dry.out)["ledger"]["used"];
    EXPECT_LT(used, 0.02) << method;
    const CommandOutcome outcome = Fit(PointsTable(500), line, kPoints, method);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const OrderedJson shown =
        OrderedJson::parse(RunProgram({"ledger", "show", ledger, "--json"}).out);
    EXPECT_EQ(shown["verdict"]["used"], used);
    EXPECT_EQ(shown["runs"][0]["whole"], false);
  }
}

TEST_F(FitCommand, DryRunComparesTheMethodsWithoutReadingTheData) {
  // A row that no reader takes: it is not read.
  const std::string broken = "x,y,above\nPRIVATE,PRIVATE,PRIVATE\n";
  const CommandOutcome outcome =
      Fit(broken, "--epsilon 1 --records 50000 --dry-run --json", kPoints, "none");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const OrderedJson json = OrderedJson::parse(outcome.out);
  EXPECT_EQ(json["dry_run"], true);
  const std::string method = json["method"];
  for (const auto& [name, risk] : json["predicted_excess_risk"].items()) {
    if (risk.is_null()) continue;
    EXPECT_LE(json["predicted_excess_risk"][method], risk) << name;
  }
  EXPECT_GT(json["needed_records"][method], 10);
  EXPECT_FALSE(fs::exists(Place("none")));
  const CommandOutcome text = Fit(broken, "--epsilon 1 --records 50000 --dry-run");
  EXPECT_THAT(text.out, HasSubstr("<- used"));
  EXPECT_THAT(text.out, HasSubstr("PLANNED"));
  ExpectRefusal(Fit(broken, "--epsilon 1 --dry-run"), "--records: --dry-run reads no data");
}

TEST_F(FitCommand, WithoutDeclaredRecordsTheirNumberIsPublicAndSaid) {
  const CommandOutcome open = Fit(PointsTable(7919), "--epsilon 5 --json");
  ASSERT_EQ(open.exit_code, 0) << open.err;
  EXPECT_EQ(OrderedJson::parse(open.out)["plan"]["adjacency"], "replace-one");
  EXPECT_EQ(OrderedJson::parse(open.out)["plan"]["records"], 7919);
  EXPECT_THAT(open.err, HasSubstr("taken to be public"));
  // Declared, it stays private: nothing that is printed or written depends on it. Coefficients have
  // random digits, so the number counts where it stands alone.
  const std::regex number(R"((^|[^0-9.])7919(?!\.?[0-9]))");
  EXPECT_TRUE(std::regex_search(open.out, number));
  const CommandOutcome closed =
      Fit(PointsTable(7919), "--epsilon 5 --records 10000", kPoints, "closed");
  ASSERT_EQ(closed.exit_code, 0) << closed.err;
  for (const std::string& text :
       {closed.out, closed.err, ReadTestFile(Place("closed/statement.txt")),
        ReadTestFile(Place("closed/config.toml")), ReadTestFile(Place("closed/metrics.jsonl"))}) {
    EXPECT_FALSE(std::regex_search(text, number)) << text;
  }
  // Nor is it compared with anything under replace-one, where it is public.
  for (const char* records : {"7000", "8000"}) {
    const CommandOutcome other = Fit(
        PointsTable(7919), std::string("--epsilon 5 --adjacency replace-one --records ") + records,
        kPoints, std::string("replaced-") + records);
    EXPECT_EQ(other.exit_code, 0) << other.err;
  }
}

// Rows of PointsTable, three for each person.
std::string PeopleTable(int people, int rows) {
  std::string csv = "who,x,y,above\n";
  double x = 0.1;
  double y = 0.7;
  for (int i = 0; i < people * rows; ++i) {
    x = std::fmod(x + 0.6180339887, 1);
    y = std::fmod(y + 0.7548776662, 1);
    csv += "p" + std::to_string(i / rows) + ',' + std::to_string(x) + ',' + std::to_string(y) +
           (y > x ? ",yes\n" : ",no\n");
  }
  return csv;
}

TEST_F(FitCommand, PeopleWithSeveralRowsAreProtectedWhole) {
  const std::vector<std::string> columns = {"who:user", "x:numeric:0:1", "y:numeric:0:1",
                                            "above:label:no|yes"};
  const std::string line = "--epsilon 5 --records 6000 --rows-per-user 3 --method gradient --json";
  const CommandOutcome outcome = Fit(PeopleTable(2000, 3), line, columns);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const OrderedJson json = OrderedJson::parse(outcome.out);
  EXPECT_EQ(json["plan"]["adjacency"], "add-remove");
  EXPECT_LT(json["coefficients"]["x"], 0);
  EXPECT_GT(json["coefficients"]["y"], 0);
  EXPECT_THAT(ReadTestFile(Place("run/statement.txt")),
              HasSubstr("One person, with at most 3 records in the data"));
  EXPECT_THAT(ReadTestFile(Place("run/record.json")), HasSubstr("\"rows_per_user\": 3"));
  // One row a person needs a third of the noise for the same budget.
  const auto noise = [&](const std::string& rows) {
    const CommandOutcome planned = Fit(PeopleTable(10, 1),
                                       "--epsilon 5 --records 6000 --method gradient --steps 10 "
                                       "--clip 1 --dry-run --json --rows-per-user " +
                                           rows,
                                       columns);
    EXPECT_EQ(planned.exit_code, 0) << planned.err;
    return OrderedJson::parse(planned.out)["plan"]["noise"][0]["deviation"].get<double>();
  };
  EXPECT_NEAR(noise("3") / noise("1"), 3, 1e-3);
}

TEST_F(FitCommand, RowsBeyondThoseOfAPersonChangeNothing) {
  const std::vector<std::string> columns = {"who:user", "x:numeric:0:1", "y:numeric:0:1",
                                            "above:label:no|yes"};
  const std::string line =
      "--epsilon 5 --records 300 --rows-per-user 3 --insecure-seed 5 --method output --json";
  std::string table = PeopleTable(100, 3);
  const CommandOutcome capped = Fit(table, line, columns, "capped");
  for (int i = 0; i < 50; ++i) table += "p7,1,0,yes\n";
  const CommandOutcome flooded = Fit(table, line, columns, "flooded");
  ASSERT_EQ(capped.exit_code, 0) << capped.err;
  ASSERT_EQ(flooded.exit_code, 0) << flooded.err;
  EXPECT_EQ(OrderedJson::parse(capped.out)["coefficients"],
            OrderedJson::parse(flooded.out)["coefficients"]);
}

TEST_F(FitCommand, MistakesGetOneSentence) {
  const std::string table = PointsTable(50);
  ExpectRefusal(Fit(table, ""), "a setting is missing: the budget (--epsilon: or --non-private");
  ExpectRefusal(Fit(table, "--epsilon 0"), "--epsilon is 0");
  ExpectRefusal(Fit(table, "--epsilon -1"), "--epsilon is -1");
  ExpectRefusal(Fit(table, "--epsilon nan"), "--epsilon is nan");
  ExpectRefusal(Fit(table, "--epsilon 1 --delta 1"), "--delta is 1");
  ExpectRefusal(Fit(table, "--epsilon 1 --delta -1"), "--delta is -1");
  ExpectRefusal(Fit(table, "--epsilon 1 --model logistc"), "did you mean 'logistic'?");
  ExpectRefusal(Fit(table, "--epsilon 1 --method objectve --records 50"), "objectve");
  ExpectRefusal(Fit(table, "--epsilon 1 --steps 5 --records 50"), "name it with --method");
  ExpectRefusal(Fit(table, "--epsilon 1 --lambda 0"), "--lambda is 0");
  ExpectRefusal(Fit(table, "--epsilon 1 --row-bound inf"), "--row-bound is inf");
  ExpectRefusal(Fit(table, "--epsilon 1 --adjacency sideways"), "sideways");
  ExpectRefusal(Fit(table, "--epsilon 1 --adjacency add-remove"), "give --records");
  ExpectRefusal(Fit(table, "--epsilon 1 --model least-squares --records 50"), "declare a target");
  ExpectRefusal(Fit(table, "--epsilon 1 --records 50", {"x:numeric:0:1", "y:target:0:1"}),
                "--model least-squares");
  ExpectRefusal(Fit(table, "--epsilon 1 --records 50", {"x:numeric:0:1"}),
                "give a label column, or a target column");
  ExpectRefusal(Fit("x,u,above\n1,a,no\n",
                    "--epsilon 1 --records 5 --rows-per-user 2 --adjacency replace-one",
                    {"x:numeric:0:1", "u:user", "above:label:no|yes"}),
                "people have up to 2 rows here");
  ExpectRefusal(Fit("x,u,above\n1,a,no\n", "--epsilon 1 --rows-per-user 2",
                    {"x:numeric:0:1", "u:user", "above:label:no|yes"}),
                "give --records");
  ExpectRefusal(Fit("", "--epsilon 1 --records 5"), "is empty");
  const CommandOutcome bad = Fit("x,y,above\nPRIVATE-7391,1,no\n", "--epsilon 1 --records 5");
  ExpectRefusal(bad, "no finite number in the column 'x'");
  EXPECT_THAT(bad.err, Not(HasSubstr("7391")));
  ExpectRefusal(RunProgram({"fit", "--epsilon", "1", "--delta", "1e-5"}),
                "a setting is missing: the data (--data");
  ExpectRefusal(RunProgram({"fit", "nowhere.csv", "--epsilon", "1", "--delta", "1e-5"}),
                "neither a known dataset nor a file");
}

TEST_F(FitCommand, ABaselineStandsBesideTheFitWhereTheDataArePublic) {
  const std::string test = folder_.Write("test.csv", PointsTable(200)).string();
  const std::string line = "--epsilon 2 --records 2000 --json --test " + test;
  const CommandOutcome outcome = Fit(PointsTable(2000), line + " --baseline --public-data");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const OrderedJson json = OrderedJson::parse(outcome.out);
  EXPECT_EQ(json["private"], true);
  EXPECT_EQ(json["baseline"]["private"], false);
  EXPECT_EQ(json["baseline"]["run"], Place("run-baseline"));
  EXPECT_GT(json["baseline"]["test_accuracy"], 0.95);
  EXPECT_THAT(ReadTestFile(Place("run-baseline/statement.txt")), StartsWith("NOT PRIVATE"));
  EXPECT_THAT(ReadTestFile(Place("run/statement.txt")), StartsWith("Privacy statement"));
  const CommandOutcome text =
      Fit(PointsTable(2000), "--epsilon 2 --records 2000 --baseline --public-data --test " + test,
          kPoints, "text");
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("\nNOT PRIVATE: the same without noise"));
  EXPECT_THAT(text.out, HasSubstr("% with privacy"));
  // The baseline is that of --non-private.
  const CommandOutcome open =
      Fit(PointsTable(2000), "--non-private --records 2000 --json --test " + test, kPoints, "open");
  EXPECT_EQ(OrderedJson::parse(open.out)["coefficients"], json["baseline"]["coefficients"]);
}

TEST_F(FitCommand, ABaselineOfPrivateDataIsRefusedBeforeAnythingIsSpent) {
  const std::string table = PointsTable(500);
  ExpectRefusal(Fit(table, "--epsilon 1 --records 500 --baseline"), "--public-data");
  ExpectRefusal(Fit(table, "--non-private --baseline --public-data --records 500"),
                "leave one of them out");
  EXPECT_FALSE(fs::exists(Place("run")));
  const std::string ledger = Place("points.db");
  ASSERT_EQ(RunProgram({"ledger", "init", ledger, "--epsilon", "8", "--delta", "1e-5"}).exit_code,
            0);
  const std::string before = ReadTestFile(ledger);
  ExpectRefusal(Fit(table, "--epsilon 1 --records 500 --baseline --public-data --ledger " + ledger),
                "so they are private");
  folder_.Write("table.csv.sordino.toml", "ledger = \"points.db\"\n");
  ExpectRefusal(Fit(table, "--epsilon 1 --records 500 --baseline --public-data"),
                "they have the ledger");
  EXPECT_EQ(ReadTestFile(ledger), before);
  fs::remove(Place("table.csv.sordino.toml"));
  fs::create_directory(Place("run-baseline"));
  ExpectRefusal(Fit(table, "--epsilon 1 --records 500 --baseline --public-data"),
                "is there already");
  EXPECT_FALSE(fs::exists(Place("run")));
}

TEST_F(FitCommand, ASeededFitSaysThatItIsNotPrivate) {
  const std::string line = "--epsilon 1 --records 100 --insecure-seed 7 --json";
  const CommandOutcome first = Fit(PointsTable(100), line);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const CommandOutcome second = Fit(PointsTable(100), line, kPoints, "again");
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(OrderedJson::parse(first.out)["coefficients"],
            OrderedJson::parse(second.out)["coefficients"]);
  EXPECT_EQ(OrderedJson::parse(first.out)["private"], false);
  EXPECT_THAT(first.err, HasSubstr("NOT PRIVATE"));
  EXPECT_THAT(ReadTestFile(Place("run/statement.txt")), StartsWith("NOT PRIVATE"));
  EXPECT_THAT(ReadTestFile(Place("run/event.txt")), StartsWith("NOT PRIVATE"));
}

TEST_F(FitCommand, AFitWithoutPrivacySaysSoAndTakesNoBudgetAndNoLedger) {
  const std::string test = folder_.Write("test.csv", PointsTable(200)).string();
  const CommandOutcome outcome =
      Fit(PointsTable(1000), "--non-private --json --test " + test, kPoints, "run");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("NOT PRIVATE"));
  const OrderedJson json = OrderedJson::parse(outcome.out);
  EXPECT_EQ(json["private"], false);
  EXPECT_EQ(json["method"], "none");
  EXPECT_EQ(json["delta"], nullptr);
  EXPECT_GT(json["test_accuracy"], 0.97);
  EXPECT_THAT(json["warning"].get<std::string>(), HasSubstr("NOT PRIVATE"));
  const std::string statement = ReadTestFile(Place("run/statement.txt"));
  EXPECT_THAT(statement, StartsWith("NOT PRIVATE"));
  EXPECT_THAT(statement, HasSubstr("Nothing. Treat the model"));
  EXPECT_THAT(statement, Not(HasSubstr("differentially private")));
  EXPECT_EQ(ReadTestFile(Place("run/event.txt")), "NOT PRIVATE\n");
  const CommandOutcome predicted =
      RunProgram({"predict", "--run", Place("run"), "--data", test, "--public-labels", "--json"});
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.err, HasSubstr("NOT PRIVATE"));
  const std::string ledger = Place("ledger.db");
  ASSERT_EQ(RunProgram({"ledger", "init", ledger, "--epsilon", "3", "--delta", "1e-4"}).exit_code,
            0);
  const std::string line = "--non-private ";
  ExpectRefusal(Fit(PointsTable(50), line + "--ledger " + ledger, kPoints, "none"),
                "cannot be charged to the ledger");
  for (const std::string flag : {"--epsilon 1", "--delta 1e-5", "--adjacency add-remove",
                                 "--method gradient", "--tune 4", "--insecure-seed 1"}) {
    ExpectRefusal(Fit(PointsTable(50), line + flag, kPoints, "none"), flag.substr(0, 6));
  }
  EXPECT_FALSE(fs::exists(Place("none")));
}

TEST_F(FitCommand, TuningIsOneChargeAndHidesHowManyFitsThereWere) {
  const std::string ledger = Place("ledger.db");
  ASSERT_EQ(RunProgram({"ledger", "init", ledger, "--epsilon", "3", "--delta", "1e-4"}).exit_code,
            0);
  const std::string test = folder_.Write("test.csv", PointsTable(200)).string();
  const CommandOutcome outcome = Fit(PointsTable(3000),
                                     "--epsilon 2 --delta 5e-6 --records 3000 --json --tune 4 "
                                     "--test " +
                                         test + " --ledger " + ledger);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const OrderedJson json = OrderedJson::parse(outcome.out);
  EXPECT_LE(json["epsilon"]["upper"], 2 * (1 + 1e-6));
  EXPECT_GT(json["epsilon"]["upper"], 1.9);
  EXPECT_EQ(json["seconds"], nullptr);
  EXPECT_EQ(json["intervals"], nullptr);
  EXPECT_THAT(outcome.err, Not(HasSubstr("fit:")));
  EXPECT_THAT(ReadTestFile(Place("run/event.txt")), HasSubstr("approximate("));
  EXPECT_THAT(ReadTestFile(Place("run/statement.txt")), HasSubstr("drawn in secret"));
  ExpectRefusal(Fit(PointsTable(50), "--epsilon 1 --records 50 --tune 4", kPoints, "none"),
                "give --test");
  ExpectRefusal(
      Fit(PointsTable(50), "--epsilon 1 --records 50 --tune 1 --test " + test, kPoints, "none"),
      "--tune is 1");
  ExpectRefusal(Fit(PointsTable(50), "--epsilon 1 --delta 0 --records 50 --tune 4 --test " + test,
                    kPoints, "none"),
                "--tune needs a --delta");
}

TEST_F(FitCommand, ARunIsNeverOverwritten) {
  ASSERT_EQ(Fit(PointsTable(100), "--epsilon 1 --records 100").exit_code, 0);
  ExpectRefusal(Fit(PointsTable(100), "--epsilon 1 --records 100"), "already holds something");
}

}  // namespace
}  // namespace sordino
