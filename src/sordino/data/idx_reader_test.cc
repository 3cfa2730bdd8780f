#include "sordino/data/idx_reader.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Bytes Header(int type, std::initializer_list<std::uint32_t> shape) {
  Bytes bytes = ToBytes({0, 0, type, static_cast<int>(shape.size())});
  for (const std::uint32_t length : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes.push_back(static_cast<std::byte>(length >> shift));
    }
  }
  return bytes;
}

Bytes SmallFile() { return Joined(Header(8, {2, 3}), ToBytes({1, 2, 3, 4, 5, 255})); }

DatasetDeclaration Images(std::vector<std::int64_t> shape, std::int64_t classes) {
  DatasetDeclaration declaration;
  declaration.name = "test";
  declaration.shape = std::move(shape);
  declaration.classes = classes;
  return declaration;
}

TEST(IdxReader, ReadsEveryTypeInBigEndianOrder) {
  EXPECT_TRUE(at::equal(ParseIdx(SmallFile(), "x"),
                        at::tensor({1, 2, 3, 4, 5, 255}, at::kByte).view({2, 3})));
  EXPECT_TRUE(at::equal(ParseIdx(Joined(Header(9, {2}), ToBytes({0xFF, 0x7F})), "x"),
                        at::tensor({-1, 127}, at::kChar)));
  EXPECT_TRUE(at::equal(ParseIdx(Joined(Header(0x0B, {2}), ToBytes({0x01, 0x02, 0xFF, 0xFE})), "x"),
                        at::tensor({258, -2}, at::kShort)));
  EXPECT_TRUE(at::equal(ParseIdx(Joined(Header(0x0C, {1}), ToBytes({0x01, 0x02, 0x03, 0x04})), "x"),
                        at::tensor({0x01020304}, at::kInt)));
  EXPECT_TRUE(at::equal(ParseIdx(Joined(Header(0x0D, {1}), ToBytes({0x40, 0x49, 0x0F, 0xDB})), "x"),
                        at::tensor({3.14159274F}, at::kFloat)));
  EXPECT_TRUE(
      at::equal(ParseIdx(Joined(Header(0x0E, {1}), ToBytes({0xC0, 0x04, 0, 0, 0, 0, 0, 0})), "x"),
                at::tensor({-2.5}, at::kDouble)));
}

TEST(IdxReader, RefusesEveryPrefix) {
  ExpectEveryPrefixIsRefused(SmallFile(), 0, [](const Bytes& bytes) { ParseIdx(bytes, "cut"); });
}

TEST(IdxReader, RefusesALengthThatTheFileDoesNotHave) {
  EXPECT_THAT(SentenceOf([] { ParseIdx(Joined(SmallFile(), ToBytes({7})), "long.idx"); }),
              HasSubstr("it states [2, 3] and has 7 bytes"));
  // 2^96 bytes, and 0 bytes by way of a product that wraps around.
  const std::uint32_t big = 0x80000000U;
  EXPECT_THROW(ParseIdx(Header(8, {0xFFFFFFFFU, 0xFFFFFFFFU, 0xFFFFFFFFU}), "x"), Error);
  EXPECT_THROW(ParseIdx(Header(8, {big, big, 4}), "x"), Error);
  EXPECT_THROW(ParseIdx(Header(8, {0, big, big, 4}), "x"), Error);
}

TEST(IdxReader, RefusesWhatIsNotIdx) {
  EXPECT_THAT(SentenceOf([] { ParseIdx(ToBytes("not idx at all"), "text"); }),
              HasSubstr("'text' is not an IDX file"));
  EXPECT_THAT(SentenceOf([] { ParseIdx(Header(0x0A, {1}), "x"); }), HasSubstr("type is 0x0A"));
  EXPECT_THAT(SentenceOf([] { ParseIdx(Header(8, {}), "x"); }), HasSubstr("has 0 dimensions"));
  EXPECT_THAT(SentenceOf([] {
                ParseIdx(Header(8, {1, 1, 1, 1, 1, 1, 1, 1, 1}), "x");
              }),
              HasSubstr("has 9 dimensions"));
}

TEST(IdxReader, AddsTheChannelOfGreyImages) {
  const TestFolder folder;
  const auto images = folder.Write("i", Joined(Header(8, {2, 1, 2}), ToBytes({1, 2, 3, 4})));
  const auto labels = folder.Write("l", Joined(Header(8, {2}), ToBytes({9, 0})));
  const Dataset data = ReadIdxDataset(images, labels, Images({1, 1, 2}, 10));
  EXPECT_TRUE(at::equal(data.inputs, at::tensor({1, 2, 3, 4}, at::kByte).view({2, 1, 1, 2})));
  EXPECT_TRUE(at::equal(data.labels, at::tensor({9, 0}, at::kLong)));
  EXPECT_FALSE(ReadIdxDataset(images, {}, Images({1, 1, 2}, 10)).labels.defined());
}

TEST(IdxReader, RefusesADatasetThatIsNotAsDeclared) {
  const TestFolder folder;
  const auto images = folder.Write("i", Joined(Header(8, {2, 1, 2}), ToBytes({1, 2, 3, 4})));
  const auto labels = folder.Write("l", Joined(Header(8, {2}), ToBytes({9, 0})));
  const auto three = folder.Write("t", Joined(Header(8, {3}), ToBytes({9, 0, 1})));
  EXPECT_THAT(SentenceOf([&] {
                ReadIdxDataset(images, labels, Images({1, 2, 2}, 10));
              }),
              AllOf(HasSubstr("does not hold records of the declared shape [1, 2, 2]"),
                    HasSubstr("(its shape is [2, 1, 2])")));
  EXPECT_THAT(SentenceOf([&] {
                ReadIdxDataset(images, three, Images({1, 1, 2}, 10));
              }),
              HasSubstr("2 records and 3 labels"));
  EXPECT_THROW(ReadIdxDataset(images, labels, Images({1, 1, 2}, 9)), Error);  // label 9
  EXPECT_THROW(ReadIdxDataset(images, images, Images({1, 1, 2}, 10)), Error);
}

TEST(DatasetFromArrays, ArrangesWhatEachKindAllows) {
  DatasetDeclaration declaration = Images({3, 2, 4}, 2);
  const at::Tensor last = at::arange(48, at::kByte).view({2, 2, 4, 3});
  const at::Tensor labels = at::tensor({0, 1}, at::kInt);
  EXPECT_TRUE(at::equal(DatasetFromArrays(last, labels.view({2, 1}), declaration, "i", "l").inputs,
                        last.permute({0, 3, 1, 2})));
  EXPECT_THAT(
      SentenceOf([&] { DatasetFromArrays(last.to(at::kFloat), labels, declaration, "i", "l"); }),
      HasSubstr("the images in 'i' are Float"));
  EXPECT_THAT(
      SentenceOf([&] { DatasetFromArrays(last, labels.to(at::kFloat), declaration, "i", "l"); }),
      HasSubstr("the labels in 'l' are Float"));
  EXPECT_THROW(DatasetFromArrays(at::tensor(1), labels, declaration, "i", "l"), Error);

  declaration.kind = InputKind::kFeatures;
  declaration.shape = {1};
  const Dataset features =
      DatasetFromArrays(at::tensor({0.25, 0.5}, at::kDouble), labels, declaration, "i", "l");
  EXPECT_TRUE(at::equal(features.inputs, at::tensor({0.25F, 0.5F}).view({2, 1})));

  declaration.kind = InputKind::kTokens;
  declaration.shape = {2};
  declaration.vocabulary = 5;
  const at::Tensor tokens = at::tensor({1, 2, 4, 0}, at::kInt).view({2, 2});
  EXPECT_TRUE(at::equal(DatasetFromArrays(tokens, labels, declaration, "i", "l").inputs,
                        tokens.to(at::kLong)));
  EXPECT_THROW(DatasetFromArrays(tokens.to(at::kFloat), labels, declaration, "i", "l"), Error);
}

TEST(IdxReader, ReadsTheRealMnist) {
  const auto folder = RealData("mnist");
  if (!folder) GTEST_SKIP() << "SORDINO_DATA has no mnist";
  const Dataset train =
      ReadIdxDataset(*folder / "train-images-idx3-ubyte.gz", *folder / "train-labels-idx1-ubyte.gz",
                     Images({1, 28, 28}, 10));
  EXPECT_EQ(train.inputs.sizes(), at::IntArrayRef({60000, 1, 28, 28}));
  const std::vector<std::int64_t> first(train.labels.const_data_ptr<std::int64_t>(),
                                        train.labels.const_data_ptr<std::int64_t>() + 5);
  EXPECT_EQ(first, (std::vector<std::int64_t>{5, 0, 4, 1, 9}));
  const at::Tensor counts = at::bincount(train.labels);
  EXPECT_TRUE(at::equal(
      counts, at::tensor({5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}, at::kLong)));
  // The published mean of all pixels.
  EXPECT_NEAR(train.inputs.to(at::kFloat).mean().item<double>() / 255, 0.1307, 1e-4);
}

TEST(IdxReader, ReadsTheRealFashionMnist) {
  const auto folder = RealData("fashion-mnist");
  if (!folder) GTEST_SKIP() << "SORDINO_DATA has no fashion-mnist";
  const Dataset test =
      ReadIdxDataset(*folder / "t10k-images-idx3-ubyte.gz", *folder / "t10k-labels-idx1-ubyte.gz",
                     Images({1, 28, 28}, 10));
  EXPECT_EQ(test.inputs.sizes(), at::IntArrayRef({10000, 1, 28, 28}));
  EXPECT_TRUE(at::equal(at::bincount(test.labels), at::full({10}, 1000, at::kLong)));
}

}  // namespace
}  // namespace sordino
