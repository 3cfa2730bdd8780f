#include "sordino/runs/internal/test_predictions.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "sordino/base/testing/test_folder.h"
#include "sordino/report/report_predictions.h"

namespace sordino::internal {
namespace {

using Json = nlohmann::json;

// Random pictures of three classes, and a linear model that knows nothing of them.
class TestPredictionsTest : public ::testing::Test {
 protected:
  TestPredictionsTest() {
    DatasetDeclaration& declaration = data_.declaration;
    declaration.name = "pictures";
    declaration.shape = {1, 4, 6};
    declaration.classes = 3;
    declaration.class_names = {"a", "b", "c"};
    data_.inputs = at::randint(0, 256, {700, 1, 4, 6}, at::kByte);
    data_.labels = at::randint(0, 3, {700}, at::kLong);
    model_ = MakeModel("logistic", {.input = {1, 4, 6}, .classes = 3}, {.seed = 7}, c10::kCPU);
    model_->Train(false);
  }

  std::string File(TestDisclosure disclosure) const {
    const auto answers = TestPredictions(
        *model_, data_, {}, {.disclosure = disclosure, .pictures = data_.inputs}, c10::kCPU);
    return answers ? answers->file : "";
  }

  Dataset data_;
  std::unique_ptr<Model> model_;
};

TEST_F(TestPredictionsTest, CountsWhatEvaluateCounts) {
  const Json json = Json::parse(File(TestDisclosure::kCounts));
  EXPECT_EQ(json["classes"], Json::array({"a", "b", "c"}));
  std::int64_t right = 0;
  for (std::size_t truth = 0; truth < 3; ++truth) {
    std::int64_t row = 0;
    for (const Json& count : json["confusion"][truth]) row += count.get<std::int64_t>();
    EXPECT_EQ(row, data_.labels.eq(static_cast<std::int64_t>(truth)).sum().item<std::int64_t>());
    right += json["confusion"][truth][truth].get<std::int64_t>();
  }
  const TestMetrics metrics = Evaluate(*model_, data_, c10::kCPU, {});
  EXPECT_NEAR(static_cast<double>(right) / 700, *metrics.accuracy, 1e-12);
  const auto answers = TestPredictions(
      *model_, data_, {}, {.disclosure = TestDisclosure::kCounts, .pictures = {}}, c10::kCPU);
  EXPECT_NEAR(answers->quality.accuracy, *metrics.accuracy, 1e-12);
  EXPECT_NEAR(answers->quality.log_loss, metrics.loss, 1e-6);
  EXPECT_TRUE(json["examples"].empty());
}

TEST_F(TestPredictionsTest, ShowsTheFirstRecordsAndTheSurestMistakes) {
  const Json json = Json::parse(File(TestDisclosure::kRecords));
  const Json& examples = json["examples"];
  ASSERT_EQ(examples.size(), 16U);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(examples[i]["record"], i + 1);
    const at::Tensor picture = data_.inputs[static_cast<std::int64_t>(i)].contiguous();
    const auto* const bytes = reinterpret_cast<const char*>(picture.const_data_ptr<std::uint8_t>());
    EXPECT_EQ(examples[i]["image"]["pixels"], Base64({bytes, 24}));
    EXPECT_EQ(examples[i]["image"]["width"], 6);
    EXPECT_EQ(examples[i]["image"]["height"], 4);
  }
  double before = 1;
  for (std::size_t i = 8; i < 16; ++i) {
    const auto record = examples[i]["record"].get<std::int64_t>();
    EXPECT_EQ(examples[i]["truth"], data_.labels[record - 1].item<std::int64_t>());
    EXPECT_NE(examples[i]["truth"], examples[i]["predictions"][0][0]);
    const double sure = examples[i]["predictions"][0][1].get<double>();
    EXPECT_LE(sure, before);
    before = sure;
  }
  double sum = 0;
  for (const Json& prediction : examples[0]["predictions"]) sum += prediction[1].get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST_F(TestPredictionsTest, TakesEveryFewPixelsOfALargePicture) {
  data_.inputs = at::full({2, 3, 65, 130}, 9, at::kByte);
  data_.labels = data_.labels.slice(0, 0, 2);
  data_.declaration.shape = {3, 65, 130};
  model_ = MakeModel("logistic", {.input = {3, 65, 130}, .classes = 3}, {}, c10::kCPU);
  const Json json = Json::parse(File(TestDisclosure::kRecords));
  const Json& image = json["examples"][0]["image"];
  EXPECT_EQ(image["width"], 44);
  EXPECT_EQ(image["height"], 22);
  EXPECT_EQ(image["channels"], 3);
}

TEST_F(TestPredictionsTest, WritesNothingOfWhatMayNotBeTold) {
  EXPECT_EQ(File(TestDisclosure::kNothing), "");
  data_.declaration.classes = kMaxConfusionClasses + 1;
  EXPECT_EQ(File(TestDisclosure::kRecords), "");
  data_.declaration.classes = 0;  // a number is predicted
  EXPECT_EQ(File(TestDisclosure::kRecords), "");
}

TEST(TestDisclosure, IsWhatIsKnownToBePublic) {
  const TestFolder folder;
  DataRequest request;
  request.source = "digits";
  EXPECT_EQ(DisclosureOf(request), TestDisclosure::kRecords);
  request.source = folder.Write("train.csv", "x\n").string();
  EXPECT_EQ(DisclosureOf(request), TestDisclosure::kNothing);
  request.test = folder.Write("test.csv", "x\n").string();
  EXPECT_EQ(DisclosureOf(request), TestDisclosure::kCounts);
  // The records of a file are not shown because the training data have a name.
  request.source = "digits";
  EXPECT_EQ(DisclosureOf(request), TestDisclosure::kCounts);
  // A ledger says that the file is private, whatever the flag says.
  folder.Write("test.csv.sordino.toml", "ledger = \"visits.db\"\n");
  EXPECT_EQ(DisclosureOf(request), TestDisclosure::kNothing);
}

}  // namespace
}  // namespace sordino::internal
