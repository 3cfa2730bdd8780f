// A ledger of a hundred thousand releases on a terminal, as JSON, as a picture and on a page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/cli/command_test_support.h"
#include "sordino/cli/ledger_command.h"
#include "sordino/cli/report_command.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/testing/long_ledger.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LedgerSummary : public ::testing::Test {
 protected:
  void SetUp() override { setenv("SORDINO_STATE", (folder_ / "state").c_str(), 1); }
  void TearDown() override { unsetenv("SORDINO_STATE"); }

  void Make(const LongLedger& wanted) {
    const Budget budget =
        Ledger::Create(file_, {.epsilon = Epsilon(8), .delta = Delta(1e-5)}).budget();
    WriteLongLedger(file_, budget, wanted);
  }
  std::string Show(std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"ledger", "show", file_});
    const auto start = std::chrono::steady_clock::now();
    const CommandOutcome outcome = CallCommand(AddLedgerCommand, std::move(words));
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    EXPECT_EQ(outcome.error, "");
    return outcome.out;
  }

  const TestFolder folder_;
  const std::string file_ = (folder_ / "visits.db").string();
  double seconds_ = 0;
};

// The limits are for a machine that does other things too; what it took is printed.
TEST_F(LedgerSummary, OfAHundredThousandReleasesIsShortAndQuick) {
  Make({.releases = 100'000, .different = 5000});
  const std::string text = Show();
  std::cout << "[ COUNTED  ] show: " << seconds_ << " s\n";
  EXPECT_LT(seconds_, 10);
  EXPECT_LT(text.size(), 8000U);
  EXPECT_THAT(text, HasSubstr("the last 20 of 100000 runs (100000 charges, 0 returns)"));
  EXPECT_THAT(text, HasSubstr("gaussian    100000       5000"));
  EXPECT_THAT(text, HasSubstr("exact if all runs had been fixed in advance"));

  const std::filesystem::path page = folder_ / "page.html";
  const auto start = std::chrono::steady_clock::now();
  const CommandOutcome outcome = CallCommand([](CLI::App& app) { AddReportCommand(app, "test"); },
                                             {"report", file_, "--out", page.string()});
  std::cout << "[ COUNTED  ] page: "
            << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()
            << " s, " << std::filesystem::file_size(page) << " bytes\n";
  EXPECT_EQ(outcome.error, "");
  EXPECT_LT(std::filesystem::file_size(page), 500'000U);
}

TEST_F(LedgerSummary, SaysHowManyAndAllShowsEveryOne) {
  Make({.releases = 600});
  const nlohmann::json summary = nlohmann::json::parse(Show({"--json"}));
  EXPECT_EQ(summary["runs"].size(), 20U);
  EXPECT_EQ(summary["runs"][19]["id"], std::string(29, '0') + "599");
  EXPECT_EQ(summary["summary"]["charges"], 600);
  EXPECT_EQ(summary["summary"]["composed"], true);
  EXPECT_EQ(summary["summary"]["kinds"][0]["kind"], "gaussian");
  EXPECT_EQ(summary["summary"]["kinds"][0]["different"], 100);
  EXPECT_FALSE(summary.contains("charges"));
  const nlohmann::json all = nlohmann::json::parse(Show({"--json", "--all"}));
  EXPECT_EQ(all["runs"].size(), 600U);
  EXPECT_EQ(all["charges"].size(), 600U);
  EXPECT_FALSE(all.contains("summary"));
  EXPECT_EQ(all["epsilon"], summary["epsilon"]);
  EXPECT_EQ(all["verdict"], summary["verdict"]);
  EXPECT_THAT(Show({"--all"}), Not(HasSubstr("the last")));
  const std::filesystem::path picture = folder_ / "used.svg";
  Show({"--picture", picture.string()});
  EXPECT_LT(std::filesystem::file_size(picture), 200'000U);
}

}  // namespace
}  // namespace sordino
