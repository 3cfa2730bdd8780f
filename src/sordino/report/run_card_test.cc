#include "sordino/report/run_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sordino/base/error.h"
#include "sordino/report/testing/run_folder_files.h"

namespace sordino {
namespace {

using Json = nlohmann::json;

TEST(RunCard, HoldsTheNumbersOfTheRun) {
  const TestFolder folder;
  ReportContent content;
  content.version = "1.2.3";
  content.runs = {ReadReportRun(WriteRunFolder(folder, "first"))};
  ClassQuality quality;
  quality.log_loss = 0.5;
  quality.auroc = 0.875;
  quality.calibration_error = 0.0625;
  content.runs[0].predictions->quality = quality;
  content.runs[0].guarantee = GuaranteeOf(Event::Parse(content.runs[0].event), 1e-5, 0);
  ReportLedger ledger;
  ledger.name = "visits.db";
  ledger.used = 0.25;
  ledger.left = "enough";
  content.ledgers = {ledger};
  const Json card = Json::parse(RunCard(content));
  const Json& model = card["model_card"];
  EXPECT_EQ(card["made_by"]["version"], "1.2.3");
  EXPECT_EQ(model["model"], "logistic");
  EXPECT_EQ(model["public_test_set"]["test_accuracy"], 0.76);  // of the last evaluation
  EXPECT_EQ(model["public_test_set"]["confusion"][0][1], 10);
  EXPECT_FALSE(model["public_test_set"].contains("test_mean_squared_error"));
  EXPECT_EQ(model["public_test_set"]["log_loss"], 0.5);
  EXPECT_EQ(model["public_test_set"]["auroc"], 0.875);
  EXPECT_EQ(model["public_test_set"]["calibration_error"], 0.0625);
  EXPECT_EQ(model["public_test_set"]["calibration"].size(), kCalibrationBins);
  EXPECT_EQ(model["settings"]["privacy.clip"], "0.1");
  EXPECT_EQ(model["sha256"]["statement.txt"], Sha256Hex(content.runs[0].statement));
  EXPECT_TRUE(model["intended_use"].is_null());  // nobody said it
  const Json& record = card["data_protection"];
  EXPECT_EQ(record["private"], true);
  EXPECT_EQ(record["protected_unit"], "record");
  EXPECT_EQ(record["failure"], "1e-12");
  EXPECT_TRUE(record["trust_model"].is_null());
  EXPECT_EQ(record["at_most"]["epsilon"], content.runs[0].guarantee->epsilon);
  EXPECT_EQ(record["at_most"]["attack_accuracy"], content.runs[0].guarantee->attack_accuracy);
  EXPECT_EQ(record["audit"]["attackers"][0]["epsilon_lower"]["gdp"], 0.42);
  EXPECT_EQ(record["not_protected"], Json({"what is true of the population"}));
  EXPECT_EQ(record["ledgers"][0]["used"], 0.25);
}

TEST(RunCard, SaysWhereNothingIsProtected) {
  const TestFolder folder;
  WriteRunFolder(folder, "first");
  folder.Write("first/event.txt", "NOT PRIVATE\n");
  ReportContent content;
  content.runs = {ReadReportRun(folder / "first")};
  const Json record = Json::parse(RunCard(content))["data_protection"];
  EXPECT_EQ(record["private"], false);
  EXPECT_TRUE(record["at_most"].is_null());
}

TEST(RunCard, IsThatOfOneRun) {
  EXPECT_THROW(RunCard({}), Error);
  ReportContent content;
  content.runs.resize(2);
  EXPECT_THROW(RunCard(content), Error);
}

}  // namespace
}  // namespace sordino
