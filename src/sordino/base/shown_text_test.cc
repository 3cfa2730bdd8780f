#include "sordino/base/shown_text.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sordino {
namespace {

TEST(ShownText, LeavesOrdinaryTextAsItIs) {
  for (const std::string text : {"", "mean of age", "Zürich – 東京 🙂", "C:\\data",
                                 "a\xC2\xA0"
                                 "b"}) {
    EXPECT_EQ(ShownText(text), text);
  }
}

TEST(ShownText, ShowsWhatMovesTextByItsCode) {
  EXPECT_EQ(ShownText("a\x1b[31mb\x7f"), "a\\u001b[31mb\\u007f");
  EXPECT_EQ(ShownText("a\nb\rc\td"), "a\\nb\\rc\\td");
  EXPECT_EQ(ShownText(std::string_view("a\0b", 3)), "a\\u0000b");
  EXPECT_EQ(ShownText("\xC2\x9B"
                      "31m\xC2\x85"),
            "\\u009b31m\\u0085");                                      // CSI and NEL of C1
  EXPECT_EQ(ShownText("\xE2\x80\xA8\xE2\x80\xA9"), "\\u2028\\u2029");  // separators
  EXPECT_EQ(ShownText("\xE2\x80\xAE"
                      "gpj.exe"),
            "\\u202egpj.exe");  // right-to-left override
  EXPECT_EQ(ShownText("\xE2\x81\xA6\xE2\x81\xA9\xD8\x9C"), "\\u2066\\u2069\\u061c");
  EXPECT_EQ(ShownText("\xE2\x80\x8E\xE2\x80\x8F"), "\\u200e\\u200f");
}

TEST(ShownText, KeepsTheBreaksOfLines) {
  EXPECT_EQ(ShownLines("one\n\ntwo\x1b\r\n"), "one\n\ntwo\\u001b\\r\n");
  EXPECT_EQ(ShownLines(""), "");
}

TEST(ShownText, ShowsBytesThatAreNotUtf8) {
  EXPECT_EQ(ShownText("a\x9B"
                      "b"),
            "a\\x9bb");                                              // C1 as one byte
  EXPECT_EQ(ShownText("\xC0\x9B"), "\\xc0\\x9b");                    // overlong
  EXPECT_EQ(ShownText("\xE0\x80\x9B"), "\\xe0\\x80\\x9b");           // overlong
  EXPECT_EQ(ShownText("\xED\xA0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(ShownText("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // above U+10FFFF
  EXPECT_EQ(ShownText("\xE2\x80"), "\\xe2\\x80");                    // cut
}

TEST(ShownText, IsOneLineOfTextThatIsShownAsItIs) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string text(random() % 12, ' ');
    // Bytes that begin or continue the characters in question are drawn often.
    constexpr std::string_view kBytes =
        "\xC2\xE2\x80\x81\xA8\xAE\x9B\xD8\x9C\n\x1b"
        "a";
    for (char& c : text) {
      c = random() % 4 == 0 ? static_cast<char>(random()) : kBytes[random() % kBytes.size()];
    }
    const std::string shown = ShownText(text);
    EXPECT_EQ(ShownText(shown), shown);
    for (const char c : shown) EXPECT_FALSE(static_cast<unsigned char>(c) < 0x20 || c == 0x7F);
  }
}

}  // namespace
}  // namespace sordino
