#include "sordino/data/dataset.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "sordino/base/error.h"
#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

Dataset Images() {
  Dataset data;
  data.declaration.name = "some";
  data.declaration.shape = {1, 2, 3};
  data.declaration.classes = 4;
  data.inputs = at::zeros({5, 1, 2, 3}, at::kByte);
  data.labels = at::arange(5, at::kLong).remainder(4);
  return data;
}

Dataset Features() {
  Dataset data = Images();
  data.declaration.kind = InputKind::kFeatures;
  data.declaration.shape = {3};
  data.inputs = at::zeros({5, 3}, at::kFloat);
  return data;
}

Dataset TokenData() {
  Dataset data = Images();
  data.declaration.kind = InputKind::kTokens;
  data.declaration.shape = {3};
  data.declaration.vocabulary = 7;
  data.inputs = at::zeros({5, 3}, at::kLong);
  return data;
}

std::string Complaint(const Dataset& data) {
  try {
    CheckDeclaration(data);
  } catch (const Error& error) {
    return WithDetail(error);
  }
  return "";
}

TEST(CheckDeclaration, TakesWhatWasDeclared) {
  EXPECT_EQ(Complaint(Images()), "");
  EXPECT_EQ(Complaint(Features()), "");
  EXPECT_EQ(Complaint(TokenData()), "");
}

TEST(CheckDeclaration, TakesRecordsWithoutLabelsAndNoRecords) {
  Dataset data = Images();
  data.labels = at::Tensor();
  EXPECT_EQ(Complaint(data), "");
  data.inputs = at::zeros({0, 1, 2, 3}, at::kByte);
  data.labels = at::zeros({0}, at::kLong);
  EXPECT_EQ(Complaint(data), "");
}

TEST(CheckDeclaration, RefusesInputsOfAnotherTypeOrShape) {
  Dataset data = Images();
  data.inputs = data.inputs.to(at::kFloat);
  EXPECT_THAT(Complaint(data), HasSubstr("are Float; Byte was declared"));
  data = Images();
  data.inputs = at::zeros({5, 1, 3, 2}, at::kByte);
  EXPECT_THAT(Complaint(data), HasSubstr("(their shape is (5, 1, 3, 2))"));
  data.inputs = at::zeros({}, at::kByte);
  EXPECT_THAT(Complaint(data), HasSubstr("(their shape is ())"));
  data.inputs = at::Tensor();
  EXPECT_THAT(Complaint(data), HasSubstr("has no inputs"));
}

TEST(CheckDeclaration, RefusesLabelsBeyondTheClassesOrOfAnotherNumber) {
  Dataset data = Images();
  data.labels[2] = 4;
  EXPECT_THAT(Complaint(data), HasSubstr("beyond the declared classes 0 to 3"));
  data.labels[2] = -1;
  EXPECT_THAT(Complaint(data), HasSubstr("beyond the declared classes 0 to 3"));
  data.labels = at::zeros({4}, at::kLong);
  EXPECT_THAT(Complaint(data), HasSubstr("one whole number for each"));
  data.labels = at::zeros({5}, at::kFloat);
  EXPECT_THAT(Complaint(data), HasSubstr("one whole number for each"));
}

TEST(CheckDeclaration, RefusesFeaturesThatAreNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Dataset data = Features();
    data.inputs[4][2] = bad;
    EXPECT_THAT(Complaint(data), HasSubstr("not a number")) << bad;
  }
}

TEST(CheckDeclaration, RefusesTokensOutsideTheVocabulary) {
  for (const std::int64_t bad : {7, -1}) {
    Dataset data = TokenData();
    data.inputs[1][1] = bad;
    EXPECT_THAT(Complaint(data), HasSubstr("not among the declared 0 to 6")) << bad;
  }
  Dataset data = TokenData();
  data.declaration.vocabulary = 0;
  EXPECT_THAT(Complaint(data), HasSubstr("a vocabulary of 0 ids"));
}

TEST(CheckDeclaration, RefusesADeclarationThatContradictsItself) {
  Dataset data = Images();
  data.declaration.shape = {2, 3};
  EXPECT_THAT(Complaint(data), HasSubstr("give channels, height and width"));
  data = Images();
  data.declaration.classes = 1;
  EXPECT_THAT(Complaint(data), HasSubstr("1 classes were declared"));
  data = Images();
  data.declaration.class_names = {"a", "b"};
  EXPECT_THAT(Complaint(data), HasSubstr("2 class names were declared for 4 classes"));
}

TEST(CheckDeclaration, RefusesConstantsThatDoNotFitTheChannels) {
  Dataset data = Images();
  data.declaration.normalisation = {{0.5, 0.5}, {1, 1}, "declared"};
  EXPECT_THAT(Complaint(data), HasSubstr("one of each for each channel, 1 in all"));
  data.declaration.normalisation = {{0.5}, {0}, "declared"};
  EXPECT_THAT(Complaint(data), HasSubstr("deviations positive"));
  data.declaration.normalisation = {{std::numeric_limits<double>::infinity()}, {1}, "declared"};
  EXPECT_THAT(Complaint(data), HasSubstr("means must be finite"));
  data = TokenData();
  data.declaration.normalisation = {{0.5, 0.5, 0.5}, {1, 1, 1}, "declared"};
  EXPECT_THAT(Complaint(data), HasSubstr("declared for tokens"));
}

}  // namespace
}  // namespace sordino
