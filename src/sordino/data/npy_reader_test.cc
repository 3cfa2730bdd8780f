#include "sordino/data/npy_reader.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>
#include <utility>

#include "sordino/data/batch_loader.h"
#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using testing::HasSubstr;

// As NumPy writes it: the header is padded with blanks to a multiple of 64 and ends with a newline.
Bytes Npy(const std::string& dictionary, const Bytes& values, int major = 1) {
  const std::size_t prefix = major == 1 ? 10 : 12;
  std::string header = dictionary;
  while ((prefix + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  Bytes file = ToBytes({0x93, 'N', 'U', 'M', 'P', 'Y', major, 0});
  for (std::size_t i = 0; i < prefix - 8; ++i) {
    file.push_back(static_cast<std::byte>(header.size() >> (8 * i)));
  }
  return Joined(Joined(file, ToBytes(header)), values);
}

std::string Dictionary(const std::string& descr, const std::string& shape,
                       const std::string& fortran = "False") {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran,
                     shape);
}

at::Tensor ArrayOf(const std::string& dictionary, const Bytes& values, int major = 1) {
  return ParseNpy(Npy(dictionary, values, major), "test.npy");
}

std::string Refusal(const std::string& dictionary, const Bytes& values = {}) {
  return SentenceOf([&] { ArrayOf(dictionary, values); });
}

TEST(NpyReader, ReadsEveryTypeInBothByteOrders) {
  const auto check = [](const std::string& type, const Bytes& little, const at::Tensor& wanted) {
    SCOPED_TRACE(type);
    const std::size_t width = type.back() - '0';
    Bytes big;
    for (std::size_t i = 0; i < little.size(); i += width) {
      for (std::size_t j = width; j-- > 0;) big.push_back(little[i + j]);
    }
    const std::string shape = fmt::format("({},)", little.size() / width);
    EXPECT_TRUE(at::equal(ArrayOf(Dictionary("<" + type, shape), little), wanted));
    EXPECT_TRUE(at::equal(ArrayOf(Dictionary(">" + type, shape), big), wanted));
    EXPECT_EQ(ArrayOf(Dictionary("<" + type, shape), little).scalar_type(), wanted.scalar_type());
  };
  check("b1", ToBytes({0, 1, 1}), at::tensor({0, 1, 1}, at::kByte).to(at::kBool));
  check("i1", ToBytes({0x80, 5}), at::tensor({-128, 5}, at::kChar));
  check("u1", ToBytes({0x80, 5}), at::tensor({128, 5}, at::kByte));
  check("i2", ToBytes({0xFE, 0xFF, 2, 1}), at::tensor({-2, 258}, at::kShort));
  check("u2", ToBytes({0xFE, 0xFF, 2, 1}), at::tensor({65534, 258}, at::kInt));
  check("i4", ToBytes({0xFE, 0xFF, 0xFF, 0xFF}), at::tensor({-2}, at::kInt));
  check("u4", ToBytes({0xFE, 0xFF, 0xFF, 0xFF}), at::tensor({std::int64_t{4294967294}}, at::kLong));
  check("i8", ToBytes({1, 0, 0, 0, 0, 0, 0, 0x80}),
        at::tensor({std::numeric_limits<std::int64_t>::min() + 1}, at::kLong));
  check("f2", ToBytes({0x00, 0x3C, 0x00, 0xC1}), at::tensor({1.0, -2.5}).to(at::kHalf));
  check("f4", ToBytes({0xDB, 0x0F, 0x49, 0x40}), at::tensor({3.14159274F}, at::kFloat));
  check("f8", ToBytes({0, 0, 0, 0, 0, 0, 0x04, 0xC0}), at::tensor({-2.5}, at::kDouble));
}

TEST(NpyReader, ReadsAllVersions) {
  for (const int major : {1, 2, 3}) {
    EXPECT_TRUE(at::equal(ArrayOf(Dictionary("|u1", "(2,)"), ToBytes({7, 8}), major),
                          at::tensor({7, 8}, at::kByte)));
  }
  EXPECT_THAT(SentenceOf([] { ArrayOf(Dictionary("|u1", "(0,)"), {}, 4); }),
              HasSubstr("its version is 4.0"));
}

TEST(NpyReader, PutsFortranOrderIntoCOrder) {
  const Bytes values = ToBytes({1, 4, 2, 5, 3, 6});
  const at::Tensor array = ArrayOf(Dictionary("|u1", "(2, 3)", "True"), values);
  EXPECT_TRUE(at::equal(array, at::tensor({1, 2, 3, 4, 5, 6}, at::kByte).view({2, 3})));
  EXPECT_TRUE(array.is_contiguous());
}

TEST(NpyReader, ReadsScalarsAndEmptyArrays) {
  EXPECT_EQ(ArrayOf(Dictionary("|u1", "()"), ToBytes({9})).dim(), 0);
  EXPECT_EQ(ArrayOf(Dictionary("<f4", "(0, 5)"), {}).sizes(), at::IntArrayRef({0, 5}));
}

TEST(NpyReader, TakesTheKeysInAnyOrder) {
  EXPECT_EQ(
      ArrayOf("{\"shape\":(1,3),\"fortran_order\":False,\"descr\":\"|u1\"}", Bytes(3)).sizes(),
      at::IntArrayRef({1, 3}));
}

TEST(NpyReader, RefusesEveryPrefix) {
  for (const int major : {1, 2}) {
    ExpectEveryPrefixIsRefused(Npy(Dictionary("<i2", "(2, 3)"), Bytes(12), major), 0,
                               [](const Bytes& bytes) { ParseNpy(bytes, "cut"); });
  }
}

TEST(NpyReader, RefusesPickles) {
  EXPECT_THAT(Refusal(Dictionary("|O", "(3,)"), Bytes(30)),
              HasSubstr("'test.npy' holds Python objects as a pickle"));
}

TEST(NpyReader, RefusesTypesThatItDoesNotKnow) {
  EXPECT_THAT(Refusal("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
              HasSubstr("records with fields"));
  for (const char* type : {"<c8", "<U5", "|S3", "=f4", "|f4", "f4", "<f", "", "<M8[ns]", "<u8"}) {
    EXPECT_THAT(Refusal(Dictionary(type, "(0,)")), HasSubstr("an NPY type that is not known"))
        << type;
  }
}

TEST(NpyReader, RefusesAShapeThatTheFileDoesNotHave) {
  EXPECT_THAT(Refusal(Dictionary("<f4", "(2, 3)"), Bytes(23)), HasSubstr("[2, 3]"));
  EXPECT_THAT(Refusal(Dictionary("<f4", "(2, 3)"), Bytes(25)), HasSubstr("25 bytes"));
  // Products that wrap around to what the file has.
  EXPECT_THAT(Refusal(Dictionary("<f4", "(4611686018427387904, 4)"), {}), HasSubstr("account"));
  EXPECT_THAT(Refusal(Dictionary("<f4", "(0, 4611686018427387904, 4)"), {}), HasSubstr("account"));
  EXPECT_THAT(Refusal(Dictionary("<f4", "(9223372036854775808,)"), {}), HasSubstr("too large"));
}

TEST(NpyReader, RefusesHeadersThatAreNotOfItsOneForm) {
  const std::string order = "'fortran_order': False, ";
  for (const std::string& header : {
           std::string(""),
           std::string("{}"),
           std::string("{'descr': '|u1', 'shape': (0,), }"),
           "{'descr': '|u1', " + order + "'shape': (0,), 'extra': 1}",
           "{'descr': '|u1', 'descr': '|u1', " + order + "'shape': (0,), }",
           "{'descr': '|u1', " + order + "'shape': (0,), } and more",
           "{'descr': '|u1', " + order + "'shape': (0,)",
           "{'descr': '|u1', " + order + "'shape': (0), }",
           "{'descr': '|u1', " + order + "'shape': [0], }",
           "{'descr': '|u1', " + order + "'shape': (-1,), }",
           "{'descr': '|u1', " + order + "'shape': (0x1,), }",
           "{'descr': '|u1', " + order + "'shape': (__import__('os').system('true'),), }",
           "{'descr': '|u1', " + order + "'shape': (,), }",
           std::string("{'descr': '|u1', 'fortran_order': 0, 'shape': (0,), }"),
           std::string("{'descr': '|u1', 'fortran_order': Falsehood, 'shape': (0,), }"),
           std::string("{'descr': '|u\\x31', 'fortran_order': False, 'shape': (0,), }"),
           "{'descr': '|u1', " + order + "'shape': (0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0), }",
           "{'descr': '|u1\", " + order + "'shape': (0,), }",
       }) {
    EXPECT_THAT(Refusal(header), HasSubstr("the NPY header of 'test.npy' cannot be read"))
        << header;
  }
  EXPECT_THAT(SentenceOf([] { ParseNpy(ToBytes("PK\x03\x04"), "x.npz"); }),
              HasSubstr("'x.npz' is not an NPY file"));
  EXPECT_THAT(SentenceOf([] {
                ParseNpy(Npy(Dictionary("|u1", "(0,)") + std::string(70000, ' '), {}, 2), "x");
              }),
              HasSubstr("than the 65536 bytes that are read"));
}

TEST(NpyReader, RefusesTruthValuesThatAreNeither) {
  EXPECT_THAT(Refusal(Dictionary("|b1", "(2,)"), ToBytes({1, 2})), HasSubstr("neither 0 nor 1"));
}

TEST(NpyReader, MakesADatasetOfTwoFiles) {
  const TestFolder folder;
  const auto inputs = folder.Write(
      "x.npy", Npy(Dictionary("<f4", "(2, 1)"), ToBytes({0, 0, 0x80, 0x3E, 0, 0, 0, 0x3F})));
  const auto labels =
      folder.Write("y.npy", Npy(Dictionary("<i4", "(2,)"), ToBytes({1, 0, 0, 0, 0, 0, 0, 0})));
  DatasetDeclaration declaration;
  declaration.name = "test";
  declaration.kind = InputKind::kFeatures;
  declaration.shape = {1};
  declaration.classes = 2;
  const Dataset data = ReadNpyDataset(inputs, labels, declaration);
  EXPECT_TRUE(at::equal(data.inputs, at::tensor({0.25F, 0.5F}).view({2, 1})));
  EXPECT_TRUE(at::equal(data.labels, at::tensor({1, 0}, at::kLong)));
  EXPECT_FALSE(ReadNpyDataset(inputs, {}, declaration).labels.defined());
}

TEST(MappedNpy, IsTheArrayThatIsRead) {
  const TestFolder folder;
  const Bytes values = ToBytes({1, 2, 3, 4, 5, 6, 7, 8});
  for (const auto& [type, shape] : {std::pair{"|u1", "(2, 4)"},
                                    {"|i1", "(8,)"},
                                    {"<i2", "(2, 2)"},
                                    {"<i4", "(2,)"},
                                    {"<i8", "(1,)"},
                                    {"<f2", "(4, 1)"},
                                    {"<f4", "(1, 2)"},
                                    {"<f8", "()"}}) {
    const auto path = folder.Write("x.npy", Npy(Dictionary(type, shape), values));
    const at::Tensor mapped = MapNpy(path);
    ASSERT_TRUE(mapped.defined()) << type;
    const at::Tensor read = ReadNpy(path);
    EXPECT_EQ(mapped.scalar_type(), read.scalar_type()) << type;
    EXPECT_TRUE(at::equal(mapped, read)) << type;
  }
}

TEST(MappedNpy, IsUndefinedForBytesThatAreNoTensor) {
  const TestFolder folder;
  for (const Bytes& file :
       {Npy(Dictionary(">f4", "(2,)"), Bytes(8)), Npy(Dictionary("<u2", "(2, 2)"), Bytes(8)),
        Npy(Dictionary("|b1", "(8,)"), Bytes(8)), Npy(Dictionary("<f4", "(0,)"), {}),
        Npy(Dictionary("<f4", "(2, 1)", "True"), Bytes(8)), ToBytes("\x1f\x8b, compressed"),
        Bytes()}) {
    EXPECT_FALSE(MapNpy(folder.Write("x.npy", file)).defined());
  }
  // As NumPy never writes it: the values lie at an odd address.
  EXPECT_FALSE(
      MapNpy(folder.Write("x.npy",
                          Joined(ToBytes({0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 59, 0}),
                                 Joined(ToBytes(Dictionary("<f4", "(2,)") + "  "), Bytes(8)))))
          .defined());
  EXPECT_FALSE(MapNpy(folder.path()).defined());
  EXPECT_FALSE(MapNpy(folder.path() / "none.npy").defined());
}

TEST(MappedNpy, RefusesWhatReadingRefuses) {
  const TestFolder folder;
  const auto path = folder.Write("x.npy", Npy(Dictionary("<f4", "(2, 3)"), Bytes(23)));
  EXPECT_THAT(SentenceOf([&] { MapNpy(path); }), HasSubstr("does not account for the bytes"));
}

// Records are used by any thread, long after the file was opened.
TEST(MappedNpy, AFileThatIsCutWhileItIsUsedEndsTheProgramWithASentence) {
  const TestFolder folder;
  const auto path = folder.Write("x.npy", Npy(Dictionary("<f4", "(65536,)"), Bytes(4 * 65536)));
  EXPECT_EXIT(
      {
        const at::Tensor mapped = MapNpy(path);
        std::filesystem::resize_file(path, 4096);
        std::thread([&] { std::cerr << mapped.const_data_ptr<float>()[65535]; }).join();
      },
      ::testing::ExitedWithCode(2), "x.npy' was cut, or its disk cannot be read");
}

TEST(MappedNpy, AnotherSignalAtAnotherPlaceEndsTheProgramAsBefore) {
  const TestFolder folder;
  const auto path = folder.Write("x.npy", Npy(Dictionary("<f4", "(2,)"), Bytes(8)));
  EXPECT_EXIT(
      {
        const at::Tensor mapped = MapNpy(path);
        std::raise(SIGBUS);
        std::raise(SIGBUS);
      },
      ::testing::KilledBySignal(SIGBUS), "");
}

// Bytes of this process that are in memory.
std::int64_t ResidentBytes() {
  std::int64_t all = 0;
  std::int64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// 64 GiB of images, of which a batch touches four. The file has holes, so that it takes no place.
TEST(MappedNpy, DataLargerThanMemoryAreReadWhereTheyAreUsed) {
  const TestFolder folder;
  constexpr std::int64_t kRecords = 87'381;
  constexpr std::int64_t kPixels = std::int64_t{3} * 512 * 512;
  const Bytes header = Npy(Dictionary("|u1", fmt::format("({}, 3, 512, 512)", kRecords)), {});
  const auto inputs = folder.Write("x.npy", header);
  const auto labels = folder.Write(
      "y.npy", Npy(Dictionary("<i8", fmt::format("({},)", kRecords)), Bytes(8 * kRecords)));
  std::error_code failed;
  std::filesystem::resize_file(inputs, header.size() + std::uint64_t{kRecords} * kPixels, failed);
  if (failed) GTEST_SKIP() << "this file system has no files with holes";
  const std::vector<std::uint64_t> batch = {0, 1, 40'000, kRecords - 1};
  {
    std::fstream file(inputs, std::ios::in | std::ios::out | std::ios::binary);
    for (const std::uint64_t record : batch) {
      file.seekp(static_cast<std::streamoff>(header.size() + record * kPixels + kPixels - 1));
      file.put(static_cast<char>(51 * (record % 5)));
    }
  }
  DatasetDeclaration declaration;
  declaration.name = "large";
  declaration.shape = {3, 512, 512};
  declaration.classes = 2;
  const std::int64_t before = ResidentBytes();
  const Dataset data = ReadNpyDataset(inputs, labels, declaration);
  EXPECT_EQ(data.size(), kRecords);
  BatchLoader loader(data, {});
  loader.Request(batch);
  const at::Tensor images = loader.Take()[0];
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const at::Tensor image = images[static_cast<std::int64_t>(i)].flatten();
    EXPECT_NEAR(image[kPixels - 1].item<double>(), 0.2 * static_cast<double>(batch[i] % 5), 1e-6);
    EXPECT_EQ(image.count_nonzero().item<std::int64_t>(), batch[i] % 5 == 0 ? 0 : 1);
  }
  EXPECT_LT(ResidentBytes() - before, std::int64_t{256} << 20);
}

}  // namespace
}  // namespace sordino
