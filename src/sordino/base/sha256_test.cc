#include "sordino/base/sha256.h"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>
#include <string>

#include "sordino/base/testing/test_folder.h"

namespace sordino {
namespace {

// FIPS 180-2, appendix B.
TEST(Sha256, HasThePublishedDigests) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256, ReadsZeroBytes) { EXPECT_NE(Sha256Hex(std::string_view("a\0b", 3)), Sha256Hex("a")); }

TEST(Sha256, OfAFileIsThatOfItsBytes) {
  const TestFolder folder;
  for (const std::size_t size : {std::size_t{0}, std::size_t{3}, std::size_t{1} << 20,
                                 (std::size_t{1} << 20) + 1, std::size_t{3} << 20}) {
    std::string content(size, '\0');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 31 % 251);
    std::ofstream(folder / "file", std::ios::binary) << content;
    EXPECT_EQ(Sha256HexOfFile(folder / "file"), Sha256Hex(content)) << size;
  }
  EXPECT_THROW(Sha256HexOfFile(folder / "absent"), std::runtime_error);
}

}  // namespace
}  // namespace sordino
