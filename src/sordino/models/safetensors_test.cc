#include "sordino/models/safetensors.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sordino/base/error.h"
#include "sordino/base/testing/test_folder.h"
#include "sordino/models/testing/pretrained_file.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string FileOf(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, '\1');
}

SafetensorsFile Parse(const std::string& bytes) {
  return ParseSafetensors(std::as_bytes(std::span(bytes.data(), bytes.size())), "f");
}

std::string Refusal(const std::string& bytes) {
  try {
    Parse(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "(accepted)";
}

std::string RefusalOfHeader(const std::string& header, std::size_t data_bytes) {
  return Refusal(FileOf(header, data_bytes));
}

class SafetensorsFolder : public ::testing::Test {
 protected:
  std::string Bytes(const fs::path& file) const {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  const TestFolder folder_;
};

constexpr const char* kTwo = R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("a":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})";

TEST(Safetensors, TensorsComeInTheOrderOfTheirBytes) {
  const SafetensorsFile file = Parse(FileOf(kTwo, 11));
  ASSERT_EQ(file.tensors.size(), 2);
  EXPECT_EQ(file.tensors[0].first, "b");
  EXPECT_EQ(file.tensors[1].first, "a");
  EXPECT_TRUE(file.tensors[1].second.equal(at::ones({3}, at::kByte)));
}

TEST_F(SafetensorsFolder, WhatIsWrittenIsReadBackInEveryDtype) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const at::ScalarType type : {at::kBool, at::kChar, at::kHalf, at::kFloat, at::kDouble,
                                    at::kBFloat16, at::kByte, at::kShort, at::kInt, at::kLong}) {
    tensors.emplace_back(fmt::format("layer.{}", c10::toString(type)),
                         at::arange(6).remainder(2).view({2, 3}).to(type));
  }
  tensors.emplace_back("scalar", at::scalar_tensor(2.5));
  tensors.emplace_back("empty", at::zeros({0, 4}));
  tensors.emplace_back("turned", at::arange(6, at::kFloat).view({2, 3}).t());
  tensors.emplace_back("trained", at::ones({2}).set_requires_grad(true));
  const std::map<std::string, std::string> metadata = {{"model", "mlp"}, {"é", "\"quoted\"\n"}};
  WriteSafetensors(folder_ / "m.safetensors", tensors, metadata);

  const SafetensorsFile file = ReadSafetensors(folder_ / "m.safetensors");
  EXPECT_EQ(file.metadata, metadata);
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const auto found =
        std::find_if(file.tensors.begin(), file.tensors.end(),
                     [&wanted = name](const auto& entry) { return entry.first == wanted; });
    ASSERT_NE(found, file.tensors.end()) << name;
    EXPECT_EQ(found->second.scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(found->second.equal(tensor.detach())) << name;
  }
}

TEST_F(SafetensorsFolder, EveryPrefixOfAFileIsRefused) {
  WriteSafetensors(folder_ / "m", {{"a", at::arange(5)}, {"b", at::ones({2, 2})}}, {{"k", "v"}});
  const std::string bytes = Bytes(folder_ / "m");
  ASSERT_NO_THROW(Parse(bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(Refusal(bytes.substr(0, size)), HasSubstr("'f' is not a valid safetensors file"))
        << size;
  }
  EXPECT_THAT(Refusal(bytes + '\0'), HasSubstr("take 56 bytes and 57 follow"));
}

TEST_F(SafetensorsFolder, DataBeginAtAMultipleOfEightBytes) {
  for (const std::string name : {"a", "ab", "abc", "abcdefg"}) {
    WriteSafetensors(folder_ / "m", {{name, at::ones({1})}});
    std::uint64_t length = 0;
    std::memcpy(&length, Bytes(folder_ / "m").data(), 8);
    EXPECT_EQ(length % 8, 0);
  }
}

TEST(Safetensors, ALengthOfTheHeaderThatTheFileDoesNotHaveIsRefused) {
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{1} << 40, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
    std::string bytes = FileOf("{}", 0);
    std::memcpy(bytes.data(), &length, 8);
    EXPECT_THAT(Refusal(bytes), HasSubstr(fmt::format("said to have {} bytes", length)));
  }
}

TEST(Safetensors, RangesThatOverlapLeaveGapsOrEndElsewhereAreRefused) {
  const auto two = [](int begin, int end) {
    return RefusalOfHeader(
        fmt::format(R"({{"a":{{"dtype":"U8","shape":[4],"data_offsets":[0,4]}},)"
                    R"("b":{{"dtype":"U8","shape":[4],"data_offsets":[{},{}]}}}})",
                    begin, end),
        8);
  };
  EXPECT_EQ(two(4, 8), "(accepted)");
  EXPECT_THAT(two(2, 6), HasSubstr("begin at 2 and those before it end at 4"));
  EXPECT_THAT(two(0, 4), HasSubstr("begin at 0 and those before it end at 4"));
  EXPECT_THAT(two(5, 9), HasSubstr("do not lie within the 8"));
  EXPECT_THAT(two(8, 4), HasSubstr("do not lie within the 8"));
  EXPECT_THAT(two(4, 7), HasSubstr("has 3 bytes and its shape needs 4"));
  EXPECT_THAT(RefusalOfHeader("{}", 1), HasSubstr("take 0 bytes and 1 follow"));
}

TEST(Safetensors, ShapesThatOverflowAreRefused) {
  for (const std::string shape :
       {"[4294967296,4294967296]", "[9223372036854775808]", "[18446744073709551615]",
        "[0,9223372036854775807,3]", "[4611686018427387904,4]"}) {
    EXPECT_THAT(
        RefusalOfHeader(
            fmt::format(R"({{"a":{{"dtype":"F32","shape":{},"data_offsets":[0,0]}}}})", shape), 0),
        HasSubstr("too large"))
        << shape;
  }
  EXPECT_THAT(
      RefusalOfHeader(R"({"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4]}})", 4),
      HasSubstr("has 4 bytes and its shape needs 4398046511104"));
}

TEST(Safetensors, NumbersThatAreNoWholeNumbersFromZeroAreRefused) {
  for (const std::string shape : {"[-1]", "[1.5]", "[\"1\"]", "[null]", "[1e3]"}) {
    EXPECT_THAT(
        RefusalOfHeader(
            fmt::format(R"({{"a":{{"dtype":"U8","shape":{},"data_offsets":[0,1]}}}})", shape), 1),
        HasSubstr("not a whole number from 0"))
        << shape;
  }
}

TEST(Safetensors, TwoTensorsOfOneNameAreRefused) {
  EXPECT_THAT(RefusalOfHeader(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                              R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                              2),
              HasSubstr("two entries 'a'"));
}

TEST(Safetensors, HeadersOfAnotherFormAreRefused) {
  for (const std::string header :
       {"", "[]", "3", " {}", "{", "{\"a\"", "{}x", "{'a':1}", "\xff\xfe{}"}) {
    EXPECT_THAT(RefusalOfHeader(header, 0), HasSubstr("its header")) << header;
  }
  EXPECT_THAT(RefusalOfHeader(R"({"a":1})", 0), HasSubstr("not described by"));
  EXPECT_THAT(RefusalOfHeader(R"({"a":{"dtype":"U8","shape":[]}})", 0),
              HasSubstr("not described by"));
  EXPECT_THAT(RefusalOfHeader(R"({"a":{"dtype":3,"shape":[],"data_offsets":[0,1]}})", 1),
              HasSubstr("has no dtype"));
  EXPECT_THAT(RefusalOfHeader(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0]}})", 1),
              HasSubstr("do not lie within"));
  EXPECT_THAT(RefusalOfHeader(R"({"__metadata__":{"a":1}})", 0), HasSubstr("no string"));
  EXPECT_THAT(RefusalOfHeader(R"({"__metadata__":[]})", 0), HasSubstr("no object"));
}

TEST(Safetensors, DeepNestingIsRefusedWithoutFollowingIt) {
  EXPECT_THAT(RefusalOfHeader("{\"a\":" + std::string(1'000'000, '['), 0),
              HasSubstr("nested too deeply"));
}

TEST(Safetensors, AnUnknownDtypeIsNamedWithThoseKnown) {
  EXPECT_THAT(RefusalOfHeader(R"({"a":{"dtype":"F128","shape":[1],"data_offsets":[0,16]}})", 16),
              HasSubstr("'F128' and those known are F64, F32"));
}

TEST(Safetensors, ATruthValueIsZeroOrOne) {
  std::string bytes = FileOf(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2);
  EXPECT_NO_THROW(Parse(bytes));
  bytes.back() = '\2';
  EXPECT_THAT(Refusal(bytes), HasSubstr("other than 0 and 1"));
}

TEST(Safetensors, NamesOfAFileAreShownPrintable) {
  const std::string sentence = RefusalOfHeader(
      fmt::format(R"({{"\u001b[31m{}":{{"dtype":"U8","shape":[2],"data_offsets":[0,1]}}}})",
                  std::string(1000, 'x')),
      1);
  EXPECT_THAT(sentence, HasSubstr("'?[31mxxx"));
  EXPECT_LT(sentence.size(), 200);
}

TEST_F(SafetensorsFolder, AFailedWriteLeavesTheOldFileAndNothingElse) {
  WriteSafetensors(folder_ / "m", {{"a", at::ones({1})}});
  const at::Tensor complex = at::zeros({2}, at::kComplexFloat);
  EXPECT_THROW(WriteSafetensors(folder_ / "m", {{"a", complex}}), Error);
  EXPECT_THROW(WriteSafetensors(folder_ / "m", {{"a", at::ones({1})}, {"a", at::ones({1})}}),
               Error);
  EXPECT_THROW(WriteSafetensors(folder_ / "m", {{"__metadata__", at::ones({1})}}), Error);
  EXPECT_THROW(WriteSafetensors(folder_ / "m", {{"\xff", at::ones({1})}}), Error);
  EXPECT_THROW(WriteSafetensors(folder_ / "none" / "m", {{"a", at::ones({1})}}), Error);
  fs::create_directory(folder_ / "taken");
  fs::create_directory(folder_ / "taken" / "by_a_folder");
  EXPECT_THROW(WriteSafetensors(folder_ / "taken", {{"a", at::ones({1})}}), Error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
  EXPECT_TRUE(ReadSafetensors(folder_ / "m").tensors.at(0).second.equal(at::ones({1})));
}

TEST_F(SafetensorsFolder, AMissingFileOrAFolderIsToldByName) {
  for (const fs::path& path : {folder_ / "none", folder_.path()}) {
    try {
      ReadSafetensors(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(path.string()));
    }
  }
}

TEST(SafetensorsData, TheMobileNetFileHasItsTensors) {
  if (PretrainedFile().empty()) GTEST_SKIP() << "SORDINO_DATA has no pretrained MobileNet";
  const SafetensorsFile file = ReadSafetensors(PretrainedFile());
  EXPECT_EQ(file.tensors.size(), 106);
  EXPECT_THAT(file.metadata.at("layout"), HasSubstr("HWIO"));
  std::int64_t numbers = 0;
  for (const auto& [name, tensor] : file.tensors) {
    EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << name;
    numbers += tensor.numel();
  }
  EXPECT_EQ(numbers, 678410);
}

}  // namespace
}  // namespace sordino
