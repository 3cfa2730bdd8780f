#include "sordino/tables/encoding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using std::string_literals::operator""s;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The text of `bytes`, which come in pieces of `piece` and are asked for in pieces of `asked`.
std::string Text(const std::string& bytes, Encoding encoding, std::size_t piece = 1 << 20,
                 std::size_t asked = 1 << 20) {
  ByteSource pieces = [piece, whole = FromText(bytes)](std::span<char> buffer) {
    return whole(buffer.first(std::min(piece, buffer.size())));
  };
  const ByteSource source = InUtf8(std::move(pieces), encoding, "cities.csv");
  std::string text;
  std::vector<char> buffer(asked);
  while (const std::size_t got = source(buffer)) text.append(buffer.data(), got);
  return text;
}

std::string Refusal(const std::string& bytes, Encoding encoding) {
  return SentenceOf([&] { Text(bytes, encoding); });
}

std::string Utf16(const std::u16string& units, bool big_end_first) {
  std::string bytes = big_end_first ? "\xFE\xFF"s : "\xFF\xFE"s;
  for (const char16_t unit : units) {
    const auto high = static_cast<char>(unit >> 8U);
    const auto low = static_cast<char>(unit & 0xFFU);
    bytes += big_end_first ? std::string{high, low} : std::string{low, high};
  }
  return bytes;
}

TEST(Encoding, HasNamesThatAreRead) {
  for (const std::string_view name : EncodingNames()) {
    EXPECT_EQ(EncodingName(ParseEncoding(name)), name);
  }
  EXPECT_THAT(SentenceOf([] { ParseEncoding("latin1"); }), HasSubstr("did you mean 'latin-1'?"));
}

TEST(Encoding, OfEveryKindGivesTheSameText) {
  const std::string text = "city\nZürich\nGöteborg\n";
  EXPECT_EQ(Text(text, Encoding::kUtf8), text);
  EXPECT_EQ(Text("city\nZ\xFCrich\nG\xF6teborg\n", Encoding::kLatin1), text);
  EXPECT_EQ(Text("city\nZ\xFCrich\nG\xF6teborg\n", Encoding::kWindows1252), text);
  for (const bool big : {false, true}) {
    EXPECT_EQ(Text(Utf16(u"city\nZürich\nGöteborg\n", big), Encoding::kUtf16), text);
  }
  EXPECT_EQ(Text("\x80\x99\xA0\xFF", Encoding::kWindows1252), "€™\u00A0ÿ");
  EXPECT_EQ(Text("\x80\xA0\xFF", Encoding::kLatin1), "\xC2\x80\u00A0ÿ");
  for (const Encoding encoding : {Encoding::kUtf8, Encoding::kLatin1, Encoding::kUtf16}) {
    EXPECT_EQ(Text("", encoding), "");
  }
}

TEST(Encoding, IsReadInPiecesOfAnyLength) {
  std::u16string wide;
  std::string text;
  for (int i = 0; i < 20'000; ++i) {
    wide += u"aü€\U0001F600";
    text += "aü€\U0001F600";
  }
  for (const std::size_t piece : {1, 3, 7, 65536, 1 << 20}) {
    EXPECT_EQ(Text(text, Encoding::kUtf8, piece), text) << piece;
    EXPECT_EQ(Text(Utf16(wide, true), Encoding::kUtf16, piece), text) << piece;
    EXPECT_EQ(Text(Utf16(wide, false), Encoding::kUtf16, 1 << 20, piece), text) << piece;
  }
}

// UTF-8 keeps the order of the characters, and no character is the beginning of another.
TEST(Encoding, ConvertsEveryCharacterOfUnicode) {
  std::u16string wide;
  for (char32_t c = 1; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    if (c < 0x10000) {
      wide += static_cast<char16_t>(c);
    } else {
      wide += static_cast<char16_t>(0xD800 + ((c - 0x10000) >> 10U));
      wide += static_cast<char16_t>(0xDC00 + ((c - 0x10000) & 0x3FFU));
    }
  }
  const std::string text = Text(Utf16(wide, false), Encoding::kUtf16);
  ASSERT_TRUE(IsUtf8(text));
  EXPECT_EQ(Text(text, Encoding::kUtf8, 4099), text);
  std::string_view rest = text;
  std::string_view before;
  std::size_t count = 0;
  while (!rest.empty()) {
    std::size_t size = 1;
    while (size < rest.size() && (static_cast<unsigned char>(rest[size]) & 0xC0U) == 0x80) ++size;
    const std::string_view character = rest.substr(0, size);
    ASSERT_LT(before, character);
    before = character;
    rest.remove_prefix(size);
    ++count;
  }
  EXPECT_EQ(count, 0x110000U - 0x800U - 1U);
}

TEST(Encoding, RefusesBytesThatAreNotValidInIt) {
  for (const std::string& bytes :
       {"Z\xFCrich\n"s, "\xC3"s, "a\x80"s, "\xC0\x80"s, "\xE0\x80\x80"s, "\xED\xA0\x80"s,
        "\xF0\x80\x80\x80"s, "\xF4\x90\x80\x80"s, "\xF5\x80\x80\x80"s, "\xE2\x82"s, "\xFF\xFE"s,
        std::string(100, 'a') + "\xC3(" + std::string(100, 'b')}) {
    EXPECT_FALSE(IsUtf8(bytes));
    const std::string refusal = Refusal(bytes, Encoding::kUtf8);
    EXPECT_THAT(refusal, AllOf(HasSubstr("'cities.csv' is not valid utf-8"),
                               HasSubstr("--encoding (latin-1, windows-1252 or utf-16)"),
                               Not(HasSubstr("rich"))));
  }
  for (const int byte : {0x81, 0x8D, 0x8F, 0x90, 0x9D}) {
    EXPECT_THAT(Refusal("ab" + std::string(1, static_cast<char>(byte)), Encoding::kWindows1252),
                HasSubstr("is not valid windows-1252"));
  }
  const std::string mark = "\xFF\xFE";
  for (const std::string& bytes : {"a\0b\0"s, mark + "a"s, "\xFF"s, mark + "\x00\xD8"s,
                                   mark + "\x00\xDC"s, mark + "\x00\xD8\x61\x00"s}) {
    EXPECT_THAT(Refusal(bytes, Encoding::kUtf16), HasSubstr("is not valid utf-16"));
  }
}

// The place of a byte is about the data: only in the detail.
TEST(Encoding, TellsWhereInTheDetailOnly) {
  EXPECT_THAT(Refusal("abcdefghij\xFF", Encoding::kUtf8),
              HasSubstr("(byte 11 is the first that is not)"));
  EXPECT_THAT(Refusal("abc\x9D", Encoding::kWindows1252), HasSubstr("(byte 4 is the first"));
}

}  // namespace
}  // namespace sordino
