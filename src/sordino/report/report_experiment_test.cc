#include "sordino/report/report_experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kResults =
    R"({"experiment": "noise", "title": "Accuracy against noise", "public": true,
        "axes": [{"name": "privacy.noise", "values": [0.5, 1]},
                 {"name": "training.optimizer", "values": ["sgd", "adam"]}],
        "cells": [{"settings": {"privacy.noise": 0.5, "training.optimizer": "sgd", "other": 7},
                   "repeat": 0, "values": {"test_accuracy": 0.9, "train_loss": 0.3, "who": "me"}}],
        "pictures": ["accuracy.svg", "gone.svg"]})";

std::string RefusalOf(const TestFolder& folder, const std::string& results) {
  folder.Write("results.json", results);
  try {
    ReadReportExperiment(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ReportExperiment, ReadsAxesCellsAndPictures) {
  const TestFolder folder;
  folder.Write("results.json", kResults);
  folder.Write("accuracy.svg", "<svg></svg>");
  ASSERT_TRUE(IsExperimentFolder(folder));
  const ReportExperiment experiment = ReadReportExperiment(folder);
  EXPECT_EQ(experiment.title, "Accuracy against noise");
  ASSERT_EQ(experiment.axes.size(), 2U);
  EXPECT_THAT(experiment.axes[0].values, ElementsAre("0.5", "1"));
  ASSERT_EQ(experiment.cells.size(), 1U);
  EXPECT_EQ(experiment.cells[0].settings.size(), 2U);  // of the axes only
  EXPECT_EQ(experiment.cells[0].values.at("train_loss"), 0.3);
  ASSERT_EQ(experiment.pictures.size(), 1U);
  EXPECT_EQ(experiment.pictures[0].name, "accuracy.svg");
}

TEST(ReportExperiment, LeavesOutTrainingLossesUnlessTheDataArePublic) {
  const TestFolder folder;
  std::string results = kResults;
  results.replace(results.find("\"public\": true"), 14, "\"public\": false");
  folder.Write("results.json", results);
  const ReportExperiment experiment = ReadReportExperiment(folder);
  EXPECT_THAT(experiment.measures, ElementsAre("test_accuracy"));
  EXPECT_EQ(experiment.measures_left_out, 1U);
  EXPECT_EQ(experiment.cells[0].values.size(), 1U);
}

TEST(ReportExperiment, RefusesWhatIsNotAnExperiment) {
  const TestFolder folder;
  EXPECT_THAT(RefusalOf(folder, "{}"), HasSubstr("does not say its 'experiment'"));
  EXPECT_THAT(RefusalOf(folder, "[]"), HasSubstr("one whole JSON object"));
  EXPECT_THAT(RefusalOf(folder, R"({"experiment":"a","axes":{}})"), HasSubstr("not a list"));
  EXPECT_THAT(RefusalOf(folder, R"({"experiment":"a","axes":[{}]})"), HasSubstr("has no name"));
  EXPECT_THAT(RefusalOf(folder, R"({"experiment":"a","cells":[1]})"), HasSubstr("not an object"));
  EXPECT_THAT(RefusalOf(folder, R"({"experiment":"a","pictures":["../b.svg"]})"),
              HasSubstr("of its own folder"));
  std::string cells = R"({"experiment":"a","cells":[{})";
  for (int i = 0; i < 30'000; ++i) cells += ",{}";
  EXPECT_THAT(RefusalOf(folder, cells + "]}"), HasSubstr("more than 20000 entries"));
}

}  // namespace
}  // namespace sordino
