#include "sordino/data/image_codec.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "sordino/data/testing/image_test_support.h"

namespace sordino {
namespace {

using testing::HasSubstr;

constexpr ImageOptions kGrey{.channels = 1};
constexpr ImageOptions kColour{.channels = 3};

std::vector<unsigned char> Ramp(int count, int step) {
  std::vector<unsigned char> values;
  values.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) values.push_back(static_cast<unsigned char>(i * step));
  return values;
}

at::Tensor Decode(const Bytes& file, const ImageOptions& options = kColour) {
  return DecodeImage(file, "test", options);
}

std::vector<int> Values(const at::Tensor& image) {
  const at::Tensor flat = image.flatten().to(at::kInt).contiguous();
  return {flat.const_data_ptr<int>(), flat.const_data_ptr<int>() + flat.numel()};
}

TEST(ImageCodec, ReadsColourPngIntoPlanes) {
  for (const int interlace : {PNG_INTERLACE_NONE, PNG_INTERLACE_ADAM7}) {
    const auto rows = Ramp(5 * 7 * 3, 2);
    const Bytes file = EncodePng(5, 7, {8, PNG_COLOR_TYPE_RGB, interlace}, rows);
    EXPECT_EQ(ReadImageSize(file, "test"), (ImageSize{5, 7}));
    const at::Tensor wanted = at::tensor(rows, at::kByte).view({5, 7, 3}).permute({2, 0, 1});
    EXPECT_TRUE(at::equal(Decode(file), wanted));
  }
}

TEST(ImageCodec, ReadsEveryKindOfPng) {
  EXPECT_EQ(Values(Decode(EncodePng(1, 2, {8, PNG_COLOR_TYPE_GRAY}, {7, 200}), kGrey)),
            (std::vector<int>{7, 200}));
  EXPECT_EQ(Values(Decode(EncodePng(1, 4, {2, PNG_COLOR_TYPE_GRAY}, {0b00011011}), kGrey)),
            (std::vector<int>{0, 85, 170, 255}));
  // 16 bits: 0x0180 is 384 / 257 = 1.49, 0xFFFF is 255.
  EXPECT_EQ(
      Values(Decode(EncodePng(1, 2, {16, PNG_COLOR_TYPE_GRAY}, {0x01, 0x80, 0xFF, 0xFF}), kGrey)),
      (std::vector<int>{1, 255}));
  // Entry 1 of the palette is transparent.
  EXPECT_EQ(Values(Decode(EncodePng(1, 2, {1, PNG_COLOR_TYPE_PALETTE}, {0b01000000}))),
            (std::vector<int>{10, 0, 20, 0, 30, 0}));
}

TEST(ImageCodec, LaysTransparentPixelsOverTheBackground) {
  const Bytes file = EncodePng(1, 3, {8, PNG_COLOR_TYPE_GRAY_ALPHA}, {200, 255, 200, 0, 200, 51});
  EXPECT_EQ(Values(Decode(file, kGrey)), (std::vector<int>{200, 0, 40}));
  const ImageOptions white{.channels = 1, .background = 255};
  EXPECT_EQ(Values(Decode(file, white)), (std::vector<int>{200, 255, 244}));
  EXPECT_EQ(Values(Decode(EncodePng(1, 1, {8, PNG_COLOR_TYPE_RGB_ALPHA}, {10, 100, 250, 51}))),
            (std::vector<int>{2, 20, 50}));
}

TEST(ImageCodec, ConvertsBetweenGreyAndColour) {
  EXPECT_EQ(Values(Decode(EncodePng(1, 2, {8, PNG_COLOR_TYPE_GRAY}, {7, 200}))),
            (std::vector<int>{7, 200, 7, 200, 7, 200}));
  // 0.299 r + 0.587 g + 0.114 b
  const Bytes primaries =
      EncodePng(1, 4, {8, PNG_COLOR_TYPE_RGB}, {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255});
  EXPECT_EQ(Values(Decode(primaries, kGrey)), (std::vector<int>{76, 150, 29, 255}));
}

TEST(ImageCodec, ReadsJpegNearlyAsItWasWritten) {
  for (const bool progressive : {false, true}) {
    std::vector<unsigned char> rows;
    for (int i = 0; i < 16 * 24; ++i) {
      for (const int value : {i % 24 * 8, i / 24 * 12, 128}) {
        rows.push_back(static_cast<unsigned char>(value));
      }
    }
    const Bytes file = EncodeJpeg(16, 24, {JCS_RGB, progressive}, rows);
    EXPECT_EQ(ReadImageSize(file, "test"), (ImageSize{16, 24}));
    const at::Tensor image = Decode(file).to(at::kInt);
    const at::Tensor wanted =
        at::tensor(rows, at::kByte).view({16, 24, 3}).permute({2, 0, 1}).to(at::kInt);
    // The colours are subsampled; without that the difference would be 2 at most.
    EXPECT_LE((image - wanted).abs().max().item<int>(), 16);
    EXPECT_EQ(Decode(file, kGrey).sizes(), at::IntArrayRef({1, 16, 24}));
  }
  const Bytes grey = EncodeJpeg(1, 2, {JCS_GRAYSCALE}, {50, 50});
  EXPECT_EQ(Values(Decode(grey)), (std::vector<int>{50, 50, 50, 50, 50, 50}));
}

TEST(ImageCodec, RefusesEveryPrefix) {
  const auto rows = Ramp(9 * 9 * 3, 5);
  for (const Bytes& file : {EncodePng(9, 9, {}, rows),
                            EncodePng(9, 9, {8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_ADAM7}, rows),
                            EncodeJpeg(9, 9, {}, rows), EncodeJpeg(9, 9, {JCS_RGB, true}, rows)}) {
    ExpectEveryPrefixIsRefused(file, 0, [](const Bytes& bytes) { Decode(bytes); });
    // The size stands at the front: no more is asked of its reader than not to crash.
    for (std::size_t size = 0; size < file.size(); ++size) {
      const Bytes prefix(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      SentenceOf([&] { ReadImageSize(prefix, "cut"); });
    }
  }
}

TEST(ImageCodec, NoticesEveryChangedByteOfAPng) {
  const Bytes file = EncodePng(4, 4, {}, Ramp(48, 5));
  for (std::size_t i = 0; i < file.size(); ++i) {
    Bytes changed = file;
    changed[i] ^= std::byte{1};
    EXPECT_THROW(Decode(changed), Error) << "byte " << i;
  }
}

TEST(ImageCodec, NeverCrashesOnAChangedJpeg) {
  const Bytes file = EncodeJpeg(8, 8, {JCS_RGB, true}, Ramp(192, 1));
  std::size_t refused = 0;
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      Bytes changed = file;
      changed[i] ^= static_cast<std::byte>(1 << bit);
      refused += SentenceOf([&] { Decode(changed); }) == "no error" ? 0 : 1;
    }
  }
  EXPECT_GT(refused, file.size() / 4);
}

TEST(ImageCodec, LooksAtTheSizeBeforeItAllocates) {
  const Bytes png = EncodePng(10, 10, {}, Ramp(300, 1));
  const Bytes jpeg = EncodeJpeg(10, 10, {}, Ramp(300, 1));
  const ImageOptions few{.channels = 3, .max_pixels = 99};
  for (const Bytes& file : {png, jpeg}) {
    EXPECT_THAT(SentenceOf([&] { DecodeImage(file, "big", few); }),
                HasSubstr("more pixels than the 99 that are decoded"));
  }
  // 8,000 x 8,000 pixels in 200 bytes.
  const Bytes tall = EncodePng(1, 8000, {8, PNG_COLOR_TYPE_GRAY}, std::vector<unsigned char>(8000));
  Bytes claim = tall;
  claim[22] = std::byte{8000 >> 8};
  claim[23] = std::byte{8000 & 255};
  const std::size_t checksum = crc32(0, reinterpret_cast<const Bytef*>(claim.data()) + 12, 17);
  for (std::size_t i = 0; i < 4; ++i) {
    claim[29 + i] = static_cast<std::byte>(checksum >> (24 - 8 * i));
  }
  EXPECT_EQ(ReadImageSize(claim, "test"), (ImageSize{8000, 8000}));
  EXPECT_THAT(SentenceOf([&] { Decode(claim); }), HasSubstr("too short for its size"));
}

TEST(ImageCodec, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(SentenceOf([] { Decode(ToBytes("GIF89a...")); }),
              HasSubstr("'test' is neither a PNG nor a JPEG image"));
  EXPECT_THAT(SentenceOf([] {
                Decode(EncodeJpeg(1, 1, {JCS_CMYK}, {1, 2, 3, 4}));
              }),
              HasSubstr("save it as RGB"));
  const ImageOptions two{.channels = 2};
  EXPECT_THROW(Decode(EncodePng(1, 1, {}, {1, 2, 3}), two), Error);
}

}  // namespace
}  // namespace sordino
