#include "sordino/training/canary_records.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sordino/base/error.h"
#include "sordino/training/testing/trainer_cases.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

DatasetDeclaration Digits() {
  DatasetDeclaration declaration;
  declaration.kind = InputKind::kImage;
  declaration.shape = {1, 6, 6};
  declaration.classes = 10;
  return declaration;
}

// Each input is a number of its own.
Dataset NumberedTest(std::int64_t records) {
  Dataset test;
  test.declaration = Digits();
  test.declaration.kind = InputKind::kFeatures;
  test.declaration.shape = {1};
  test.inputs = at::arange(records, at::kFloat).unsqueeze(1);
  test.labels = at::arange(records, at::kLong).remainder(10);
  return test;
}

std::string MistakeOf(std::string_view kind, const DatasetDeclaration& declaration, bool has_test) {
  try {
    CheckCanaryKind(kind, declaration, has_test);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(CanaryRecords, OfTheTestSetLeaveItAndHaveAnotherClass) {
  std::optional<Dataset> test = NumberedTest(103);
  const CanaryRecords canaries = MakeCanaryRecords("mislabelled", 40, test->declaration, test);
  ASSERT_EQ(canaries.records.size(), 40);
  ASSERT_EQ(test->size(), 63);
  const at::Tensor own = canaries.records.inputs.squeeze(1).to(at::kLong).remainder(10);
  EXPECT_TRUE(canaries.other_labels.equal(own));
  EXPECT_TRUE(canaries.records.labels.ne(own).all().item<bool>());
  EXPECT_GE(canaries.records.labels.min().item<std::int64_t>(), 0);
  EXPECT_LT(canaries.records.labels.max().item<std::int64_t>(), 10);
  // None is lost and none is twice.
  const at::Tensor all = at::cat({canaries.records.inputs, test->inputs}).squeeze(1);
  EXPECT_TRUE(std::get<0>(all.sort()).equal(at::arange(103, at::kFloat)));
  // The labels of what stays are its own.
  EXPECT_TRUE(test->labels.equal(test->inputs.squeeze(1).to(at::kLong).remainder(10)));
}

TEST(CanaryRecords, OfRandomInputAreTheSameEachTimeAndLikeNothing) {
  std::optional<Dataset> none;
  const CanaryRecords first = MakeCanaryRecords("random-input", 500, Digits(), none);
  const CanaryRecords second = MakeCanaryRecords("random-input", 500, Digits(), none);
  EXPECT_TRUE(first.records.inputs.equal(second.records.inputs));
  EXPECT_TRUE(first.records.labels.equal(second.records.labels));
  EXPECT_NO_THROW(CheckDeclaration(first.records));
  // 18,000 uniform bytes: ten standard errors.
  EXPECT_NEAR(first.records.inputs.to(at::kDouble).mean().item<double>(), 127.5, 5.5);
  EXPECT_TRUE(first.other_labels.ne(first.records.labels).all().item<bool>());
  DatasetDeclaration text = Digits();
  text.kind = InputKind::kTokens;
  text.shape = {7};
  text.vocabulary = 30;
  const CanaryRecords words = MakeCanaryRecords("random-input", 200, text, none);
  EXPECT_NO_THROW(CheckDeclaration(words.records));
  EXPECT_GE(words.records.inputs.min().item<std::int64_t>(), 1);
}

TEST(CanaryRecords, ThatTheDataDoNotAllowAreRefused) {
  EXPECT_EQ(MistakeOf("dirac", NumberedTest(3).declaration, false), "");
  EXPECT_EQ(MistakeOf("mislabelled", Digits(), true), "");
  EXPECT_EQ(MistakeOf("random-input", Digits(), false), "");
  EXPECT_THAT(MistakeOf("mislabelled", Digits(), false), HasSubstr("there is none; give --test"));
  EXPECT_THAT(MistakeOf("random-input", NumberedTest(3).declaration, true),
              HasSubstr("rows of features"));
  EXPECT_THAT(MistakeOf("mislabeled", Digits(), true), HasSubstr("did you mean 'mislabelled'?"));
  DatasetDeclaration number = Digits();
  number.classes = 0;
  number.target = TargetBounds{"cost", 0, 1};
  EXPECT_THAT(MistakeOf("mislabelled", number, true), HasSubstr("do not have two classes"));
  std::optional<Dataset> small = NumberedTest(40);
  EXPECT_THROW(MakeCanaryRecords("mislabelled", 40, small->declaration, small), Error);
}

}  // namespace
}  // namespace sordino
