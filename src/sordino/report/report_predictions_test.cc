#include "sordino/report/report_predictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

ReportPredictions TwoClasses() {
  ReportPredictions predictions;
  predictions.classes = {"cat", "dog <b>"};
  predictions.confusion = {{3, 1}, {0, 2}};
  ReportExample example{
      .record = 4, .truth = 0, .predictions = {{1, 0.75}, {0, 0.25}}, .image = {}};
  example.image = ReportImage{.width = 2, .height = 1, .channels = 3, .pixels = Base64("abcdef")};
  predictions.examples.push_back(example);
  ClassQualityMeter meter;
  for (int i = 0; i < 3; ++i) meter.Add(std::vector{0.75, 0.25}, 0);
  meter.Add(std::vector{0.25, 0.75}, 0);
  for (int i = 0; i < 2; ++i) meter.Add(std::vector{0.1, 0.9}, 1);
  predictions.quality = meter.Quality();
  return predictions;
}

std::string RefusalOfText(const std::string& text) {
  const TestFolder folder;
  folder.Write("predictions.json", text);
  try {
    ReadReportPredictions(folder.path());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Base64, GivesThePublishedValues) {
  // RFC 4648, section 10.
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foob"), "Zm9vYg==");
  EXPECT_EQ(Base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64("\xff\xfe\xfd"), "//79");
}

TEST(ReportPredictions, ReadsWhatItWrote) {
  const TestFolder folder;
  EXPECT_FALSE(ReadReportPredictions(folder.path()));
  folder.Write("predictions.json", PredictionsJson(TwoClasses()));
  const auto read = ReadReportPredictions(folder.path());
  ASSERT_TRUE(read);
  EXPECT_EQ(PredictionsJson(*read), PredictionsJson(TwoClasses()));
  ASSERT_TRUE(read->examples[0].image);
  EXPECT_EQ(read->examples[0].image->pixels, "YWJjZGVm");
  ASSERT_TRUE(read->quality);
  EXPECT_EQ(read->quality->auroc, 1);
  EXPECT_EQ(read->quality->calibration[11].records, 4);
}

TEST(ReportPredictions, FilesOfEarlierVersionsHaveNoQuality) {
  Json json = Json::parse(PredictionsJson(TwoClasses()));
  json.erase("quality");
  const TestFolder folder;
  folder.Write("predictions.json", json.dump());
  EXPECT_FALSE(ReadReportPredictions(folder.path())->quality);
}

TEST(ReportPredictions, LeavesOutPicturesThatAreNone) {
  const Json whole = Json::parse(PredictionsJson(TwoClasses()));
  const auto image_after = [&](const char* key, const Json& value) {
    Json json = whole;
    json["examples"][0]["image"][key] = value;
    const TestFolder folder;
    folder.Write("predictions.json", json.dump());
    return ReadReportPredictions(folder.path())->examples[0].image.has_value();
  };
  EXPECT_TRUE(image_after("width", 2));
  EXPECT_FALSE(image_after("width", 3));
  EXPECT_FALSE(image_after("width", -2));
  EXPECT_FALSE(image_after("height", 1e9));
  EXPECT_FALSE(image_after("channels", 4));
  EXPECT_FALSE(image_after("pixels", "YWJj"));
  EXPECT_FALSE(image_after("pixels", "YWJj<b>="));
  EXPECT_FALSE(image_after("pixels", "YW=jZGVm"));
  EXPECT_FALSE(image_after("pixels", 7));
}

TEST(ReportPredictions, RefusesWhatIsNoMatrix) {
  const Json whole = Json::parse(PredictionsJson(TwoClasses()));
  const auto refusal = [&](const char* pointer, const Json& value) {
    Json json = whole;
    json[Json::json_pointer(pointer)] = value;
    return RefusalOfText(json.dump());
  };
  EXPECT_EQ(refusal("/confusion/0/0", 5), "");
  EXPECT_THAT(refusal("/confusion/0/0", -1), HasSubstr("not a count"));
  EXPECT_THAT(refusal("/confusion/0/0", 0.5), HasSubstr("not a count"));
  EXPECT_THAT(refusal("/confusion/0", Json::array({1})), HasSubstr("not square"));
  EXPECT_THAT(refusal("/confusion", Json::array()), HasSubstr("a row for each class"));
  EXPECT_THAT(refusal("/classes", Json::array()), HasSubstr("1 to 50 classes"));
  EXPECT_THAT(refusal("/classes", Json(std::vector<std::string>(51, "x"))),
              HasSubstr("1 to 50 classes"));
  EXPECT_THAT(refusal("/examples/0/truth", 2), HasSubstr("the class of an example"));
  EXPECT_THAT(refusal("/examples/0/predictions/0/0", 9), HasSubstr("not a class and its"));
  EXPECT_THAT(refusal("/examples/0/predictions", Json::array()), HasSubstr("no prediction"));
  EXPECT_THAT(RefusalOfText("{\"cl"), HasSubstr("one whole JSON object"));
}

}  // namespace
}  // namespace sordino
