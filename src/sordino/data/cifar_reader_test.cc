#include "sordino/data/cifar_reader.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using testing::HasSubstr;

// Pixel i of the row is seed + i modulo 251.
Bytes Row(std::initializer_list<int> labels, int seed) {
  Bytes row = ToBytes(labels);
  for (int i = 0; i < 3072; ++i) row.push_back(static_cast<std::byte>((seed + i) % 251));
  return row;
}

DatasetDeclaration Cifar(std::int64_t classes) {
  DatasetDeclaration declaration;
  declaration.name = "cifar";
  declaration.shape = {3, 32, 32};
  declaration.classes = classes;
  return declaration;
}

TEST(CifarReader, KeepsLabelsAndPlanes) {
  const CifarRows rows = ParseCifar(Joined(Row({3}, 0), Row({9}, 100)), "x", 10);
  EXPECT_TRUE(at::equal(rows.labels, at::tensor({3, 9}, at::kLong)));
  for (std::int64_t i = 0; i < 2; ++i) {
    const at::Tensor wanted = (at::arange(3072) + 100 * i).remainder(251).to(at::kByte);
    EXPECT_TRUE(at::equal(rows.images[i], wanted.view({3, 32, 32})));
  }
}

TEST(CifarReader, ChoosesBetweenCoarseAndFineLabels) {
  const Bytes bytes = Joined(Row({19, 99}, 5), Row({0, 42}, 6));
  const CifarRows coarse = ParseCifar(bytes, "x", 20, CifarLabels::kCoarse);
  const CifarRows fine = ParseCifar(bytes, "x", 100, CifarLabels::kFine);
  EXPECT_TRUE(at::equal(coarse.labels, at::tensor({19, 0}, at::kLong)));
  EXPECT_TRUE(at::equal(fine.labels, at::tensor({99, 42}, at::kLong)));
  EXPECT_TRUE(at::equal(coarse.images, fine.images));
  EXPECT_EQ(fine.images[1][0][0][0].item<int>(), 6);
}

TEST(CifarReader, RefusesEveryPrefixButNoBytesAtAllWhichAreNoRecords) {
  EXPECT_EQ(ParseCifar({}, "none", 10).labels.size(0), 0);
  ExpectEveryPrefixIsRefused(Row({3}, 0), 1,
                             [](const Bytes& bytes) { ParseCifar(bytes, "cut", 10); });
}

TEST(CifarReader, RefusesPartsOfRowsAndLabelsThatWereNotDeclared) {
  EXPECT_THAT(SentenceOf([] { ParseCifar(Joined(Row({1}, 0), ToBytes({1})), "cut.bin", 10); }),
              HasSubstr("it has 3074 bytes"));
  EXPECT_THAT(SentenceOf([] { ParseCifar(Joined(Row({1}, 0), Row({10}, 0)), "b.bin", 10); }),
              HasSubstr("(row 2 has the label 10)"));
}

TEST(CifarReader, ReadsFilesInTheirOrder) {
  const TestFolder folder;
  std::vector<std::filesystem::path> files;
  files.reserve(7);
  for (int i = 0; i < 7; ++i) {
    files.push_back(folder.Write(std::to_string(i), Row({(7 * i) % 10}, i)));
  }
  const Dataset data = ReadCifarDataset(files, Cifar(10));
  EXPECT_TRUE(at::equal(data.labels, (at::arange(7) * 7).remainder(10)));
  EXPECT_TRUE(at::equal(data.inputs.flatten(1).select(1, 0).to(at::kLong), at::arange(7)));
}

TEST(CifarReader, NamesTheFirstFileThatIsWrong) {
  const TestFolder folder;
  std::vector<std::filesystem::path> files;
  files.reserve(8);
  for (int i = 0; i < 8; ++i) {
    files.push_back(folder.Write(std::to_string(i), i < 3 ? Row({1}, i) : ToBytes({1, 2})));
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(SentenceOf([&] { ReadCifarDataset(files, Cifar(10)); }),
                HasSubstr("/3' does not hold whole"));
  }
}

TEST(CifarReader, RefusesAnotherDeclaration) {
  DatasetDeclaration declaration = Cifar(10);
  declaration.shape = {1, 28, 28};
  EXPECT_THAT(SentenceOf([&] { ReadCifarDataset({"x"}, declaration); }),
              HasSubstr("the declared shape is [1, 28, 28]"));
  EXPECT_THROW(ReadCifarDataset({}, Cifar(10)), Error);
}

TEST(CifarReader, ReadsTheRealCifar10) {
  const auto file = RealData("cifar-10/test_batch.bin.xz");
  if (!file) GTEST_SKIP() << "SORDINO_DATA has no cifar-10";
  const Dataset test = ReadCifarDataset({*file}, Cifar(10));
  EXPECT_EQ(test.inputs.sizes(), at::IntArrayRef({10000, 3, 32, 32}));
  EXPECT_TRUE(at::equal(at::bincount(test.labels), at::full({10}, 1000, at::kLong)));
  const at::Tensor first = test.labels.slice(0, 0, 5);
  EXPECT_TRUE(at::equal(first, at::tensor({3, 8, 8, 0, 6}, at::kLong)));
}

}  // namespace
}  // namespace sordino
