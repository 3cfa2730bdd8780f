#include "sordino/experiments/measured_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sordino/base/testing/test_folder.h"
#include "sordino/experiments/testing/experiment_text.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Part PartWith(const Measure& measure) {
  Part part;
  part.command = "account";
  part.measures.push_back(measure);
  return part;
}

MeasuredValue At(const std::string& path, const std::string& output,
                 const std::string& against = "") {
  return ReadMeasures(PartWith({"m", path, "", against}), output, "nowhere").at(0);
}

std::string RefusalOf(const Measure& measure, const std::string& output,
                      const std::filesystem::path& run = "nowhere") {
  return RefusalBy([&] { ReadMeasures(PartWith(measure), output, run); });
}

TEST(MeasuredValue, FollowsKeysAndPlaces) {
  EXPECT_EQ(At("a", R"({"a": 2.5})").number, 2.5);
  EXPECT_EQ(At("a.b.256", R"({"a": {"b": {"256": 3}}})").number, 3);
  EXPECT_EQ(At("a.1.x", R"({"a": [{"x": 1}, {"x": 7}]})").number, 7);
  EXPECT_EQ(At("a", R"({"a": true})").number, 1);
  EXPECT_TRUE(std::isnan(At("a", R"({"a": null})").number));
}

TEST(MeasuredValue, KeysMayHoldDotsAndNullHasNullBelowIt) {
  EXPECT_EQ(At("a.0.01.value", R"({"a": {"0.1": 1, "0.01": {"value": 4}}})").number, 4);
  EXPECT_TRUE(std::isnan(At("a.0.01.value", R"({"a": null})").number));
  EXPECT_THAT(RefusalOf({"m", "a.0.02", "", ""}, R"({"a": {"0.01": 1}})"),
              HasSubstr("there is no 'a.0.02'"));
}

TEST(MeasuredValue, CountsHowOftenACurveRises) {
  Measure measure{"m", "a", "", ""};
  measure.take = kTakeRises;
  const auto rises = [&](const char* output) {
    const MeasuredValue value = ReadMeasures(PartWith(measure), output, "nowhere").at(0);
    EXPECT_FALSE(value.is_series);
    return value.number;
  };
  EXPECT_EQ(rises(R"({"a": [4, 3, 3, 2]})"), 0);
  EXPECT_EQ(rises(R"({"a": [4, 3, 3.5, 2, 2.0000001, 2.1]})"), 2);
}

TEST(MeasuredValue, TakesListsAsSeries) {
  const MeasuredValue counted = At("a", R"({"a": [5, null, 7]})");
  EXPECT_TRUE(counted.is_series);
  EXPECT_THAT(counted.x, ElementsAre(1, 2, 3));
  EXPECT_EQ(counted.y.at(2), 7);
  const MeasuredValue against = At("a", R"({"a": [5, 6], "b": [10, 20]})", "b");
  EXPECT_THAT(against.x, ElementsAre(10, 20));
}

TEST(MeasuredValue, ReadsColumnsOfMetrics) {
  const TestFolder run;
  run.Write("metrics.jsonl",
            "{\"step\":10,\"epsilon\":0.5,\"test_loss\":2}\n"
            "{\"step\":20,\"epsilon\":0.75,\"test_loss\":1}\n");
  const MeasuredValue value =
      ReadMeasures(PartWith({"m", "", "test_loss", "epsilon"}), "{}", run).at(0);
  EXPECT_THAT(value.x, ElementsAre(0.5, 0.75));
  EXPECT_THAT(value.y, ElementsAre(2, 1));
  EXPECT_THAT(RefusalOf({"m", "", "los", "step"}, "{}", run), HasSubstr("its keys are step"));
}

TEST(MeasuredValue, SaysWhatIsNotThere) {
  EXPECT_THAT(RefusalOf({"m", "epsilon.upper", "", ""}, R"({"delta": 1})"),
              HasSubstr("there is no 'epsilon.upper'; its keys are delta"));
  EXPECT_THAT(RefusalOf({"m", "a", "", ""}, R"({"a": {"b": 1}})"), HasSubstr("is not a number"));
  EXPECT_THAT(RefusalOf({"m", "a", "", ""}, R"({"a": "text"})"), HasSubstr("is not a number"));
  EXPECT_THAT(RefusalOf({"m", "a", "", ""}, R"({"a": [1, "x"]})"), HasSubstr("more than numbers"));
  EXPECT_THAT(RefusalOf({"m", "a.5", "", ""}, R"({"a": [1]})"), HasSubstr("there is no 'a.5'"));
  EXPECT_THAT(RefusalOf({"m", "a", "", "b"}, R"({"a": [1], "b": [1, 2]})"),
              HasSubstr("same length"));
  EXPECT_THAT(RefusalOf({"m", "a", "", ""}, "not JSON"), HasSubstr("not a JSON object"));
  EXPECT_THAT(RefusalOf({"m", "", "x", "step"}, "{}"), HasSubstr("did not write"));
}

}  // namespace
}  // namespace sordino
