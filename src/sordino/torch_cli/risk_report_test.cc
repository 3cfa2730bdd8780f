#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"

// Everything here goes through `sordino`, which replaces itself by sordino-torch.
namespace sordino {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

class RiskReport : public ::testing::Test {
 protected:
  // n rows of two numbers in [-1, 1] and a class that depends on their sum, by chance.
  std::string WriteTable(const std::string& name, int n, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::string path = (folder_ / name).string();
    std::ofstream out(path);
    out << "a,b,kind\n";
    for (int i = 0; i < n; ++i) {
      const double a = uniform(random);
      const double b = uniform(random);
      const double chance = 1 / (1 + std::exp(-4 * (a + b)));
      out << a << ',' << b << ',' << (uniform(random) * 0.5 + 0.5 < chance ? "yes" : "no") << '\n';
    }
    return path;
  }

  // A table with its rows from the last to the first.
  std::string Turned(const std::string& file) {
    std::ifstream in(file);
    std::string header;
    std::getline(in, header);
    std::vector<std::string> rows;
    for (std::string row; std::getline(in, row);) rows.push_back(row);
    std::string path = (folder_ / "turned.csv").string();
    std::ofstream out(path);
    out << header << '\n';
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) out << *row << '\n';
    return path;
  }

  std::string Fit(const std::string& more) {
    return "fit " + train_ + " --columns a:numeric:-1:1 b:numeric:-1:1 kind:label:no|yes --test " +
           test_ + " --json --out " + (folder_ / std::to_string(runs_++)).string() + " " + more;
  }

  const TestFolder folder_;
  const std::string train_ = WriteTable("train.csv", 3000, 1);
  const std::string test_ = WriteTable("test.csv", 2000, 2);
  int runs_ = 0;
};

// The empirical risk that `fit` prints is the mean loss of the model's own predictions, and its gap
// the distance to that of the test set.
TEST_F(RiskReport, IsTheMeanLossOfTheReleasedModel) {
  const CommandOutcome outcome = RunProgram(Words(Fit("--non-private --risk")));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  const Json& risk = json["risk"];
  EXPECT_EQ(risk["public_data_only"], true);
  EXPECT_FALSE(risk.contains("excess"));
  EXPECT_NEAR(risk["test"]["error_rate"].get<double>(), 1 - json["test_accuracy"].get<double>(),
              1e-12);
  for (const char* name : {"loss", "error_rate"}) {
    EXPECT_NEAR(risk["gap"][name].get<double>(),
                std::abs(risk["test"][name].get<double>() - risk["empirical"][name].get<double>()),
                1e-12);
  }
  // The same records in another order: 'predict' refuses the training file itself.
  const std::string turned = Turned(train_);
  const CommandOutcome predicted =
      RunProgram(Words("predict " + json["run"].get<std::string>() + " --data " + turned +
                       " --public-labels --json"));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.err;
  const Json quality = Json::parse(predicted.out);
  EXPECT_NEAR(risk["empirical"]["loss"].get<double>(), quality["log_loss"].get<double>(), 1e-5);
}

TEST_F(RiskReport, OfAPrivateFitHasItsExcess) {
  // At epsilon 8 the noise of so many records is small; at 0.01 it may be anything.
  for (const char* epsilon : {"0.01", "8"}) {
    const CommandOutcome outcome =
        RunProgram(Words(Fit(std::string("--epsilon ") + epsilon +
                             " --delta 1e-6 --method output --risk --public-data")));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const double excess = Json::parse(outcome.out)["risk"]["excess"].get<double>();
    EXPECT_GT(excess, -1e-3);
    if (std::string(epsilon) == "8") {
      EXPECT_LT(excess, 0.5);
    }
  }
}

TEST_F(RiskReport, OfATraining) {
  const CommandOutcome outcome =
      RunProgram(Words("train --data digits --model logistic --non-private --steps 200 --lr 0.5 "
                       "--batch 200 --risk --json "
                       "--out " +
                       (folder_ / "run").string()));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json json = Json::parse(outcome.out);
  const Json& risk = json["risk"];
  EXPECT_NEAR(risk["test"]["error_rate"].get<double>(), 1 - json["test_accuracy"].get<double>(),
              1e-12);
  EXPECT_GT(risk["empirical"]["loss"].get<double>(), 0);
  EXPECT_LT(risk["empirical"]["error_rate"].get<double>(), 0.5);
}

TEST_F(RiskReport, IsRefusedForPrivateData) {
  const auto refused = [](const std::string& words, const char* part) {
    const CommandOutcome outcome = RunProgram(Words(words));
    EXPECT_EQ(outcome.exit_code, 2) << words;
    EXPECT_THAT(outcome.err, HasSubstr(part));
  };
  refused(Fit("--epsilon 1 --delta 1e-6 --risk"), "give --public-data to say");
  refused(Fit("--epsilon 1 --delta 1e-6 --public-data"), "--public-data is for --risk");
  refused(Fit("--epsilon 1 --delta 1e-6 --risk --public-data --ledger x.db"),
          "charged to a ledger are private");
  refused(Fit("--epsilon 1 --delta 1e-6 --risk --public-data --tune 5"), "--tune makes several");
}

}  // namespace
}  // namespace sordino
