#include "sordino/tables/compressed_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <lzma.h>
#include <sys/stat.h>
#include <zlib.h>

#include <random>

#include "sordino/base/error.h"
#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {
namespace {

using testing::HasSubstr;

Bytes Gzip(const Bytes& plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes packed(deflateBound(&stream, plain.size()) + 64);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(plain.data()));
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Bytes Xz(const Bytes& plain, std::uint32_t preset = 1) {
  Bytes packed(lzma_stream_buffer_bound(plain.size()));
  std::size_t size = 0;
  EXPECT_EQ(
      lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC64, nullptr,
                              reinterpret_cast<const std::uint8_t*>(plain.data()), plain.size(),
                              reinterpret_cast<std::uint8_t*>(packed.data()), &size, packed.size()),
      LZMA_OK);
  packed.resize(size);
  return packed;
}

Bytes RandomBytes(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  // Half of the values, so that there is something to compress.
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 128);
  return bytes;
}

using Pack = Bytes (*)(const Bytes&);
struct Packer {
  const char* name;
  Pack pack;
  std::size_t magic;
};
const Packer kPackers[] = {{"gzip", Gzip, 2}, {"xz", [](const Bytes& b) { return Xz(b); }, 6}};

TEST(CompressedFile, ReturnsWhatWasPackedWhateverTheName) {
  const TestFolder folder;
  for (const std::size_t size : {0U, 1U, 65536U, 65537U, 1000000U}) {
    const Bytes plain = RandomBytes(size, 1);
    EXPECT_EQ(ReadWholeFile(folder.Write("plain.gz", plain)), plain);
    EXPECT_EQ(ReadWholeFile(folder.Write("packed.bin", Gzip(plain))), plain);
    EXPECT_EQ(ReadWholeFile(folder.Write("packed.txt", Xz(plain))), plain);
  }
}

// A source may hand out any number of bytes at a time, and be asked for any.
TEST(Decompressed, DoesNotDependOnTheSizesOfTheBlocks) {
  const Bytes plain = RandomBytes(200000, 9);
  const Bytes empty = {};
  for (const Packer& packer : kPackers) {
    SCOPED_TRACE(packer.name);
    const Bytes packed = Joined(Joined(packer.pack(plain), packer.pack(empty)), packer.pack(plain));
    for (const std::size_t block : {1U, 7U, 65536U}) {
      const std::string_view text(reinterpret_cast<const char*>(packed.data()), packed.size());
      const ByteSource all = FromText(text);
      const ByteSource source = Decompressed(
          [&](std::span<char> room) { return all(room.first(std::min(block, room.size()))); },
          "blocks");
      Bytes out;
      std::vector<char> room(block * 3);
      while (const std::size_t got = source(room)) {
        out = Joined(std::move(out), ToBytes(std::string_view(room.data(), got)));
      }
      EXPECT_EQ(source(room), 0U);
      EXPECT_EQ(out, Joined(plain, plain)) << block;
    }
  }
}

TEST(CompressedFile, JoinsTheMembersOfAFile) {
  const Bytes first = RandomBytes(70000, 1);
  const Bytes second = RandomBytes(333, 2);
  for (const Packer& packer : kPackers) {
    SCOPED_TRACE(packer.name);
    const Bytes joined = Joined(Joined(packer.pack(first), packer.pack({})), packer.pack(second));
    EXPECT_EQ(Decompress(joined, "joined"), Joined(first, second));
  }
}

TEST(CompressedFile, TakesThePaddingThatXzAllows) {
  const Bytes plain = RandomBytes(100, 1);
  EXPECT_EQ(Decompress(Joined(Xz(plain), Bytes(8)), "padded"), plain);
  EXPECT_THROW(Decompress(Joined(Xz(plain), Bytes(7)), "padded"), Error);
}

TEST(CompressedFile, RefusesEveryPrefix) {
  for (const Packer& packer : kPackers) {
    SCOPED_TRACE(packer.name);
    const Bytes packed = packer.pack(RandomBytes(400, 3));
    ExpectEveryPrefixIsRefused(packed, packer.magic,
                               [](const Bytes& bytes) { Decompress(bytes, "cut"); });
    const Bytes cut(packed.begin(), packed.end() - 5);
    EXPECT_THAT(SentenceOf([&] { Decompress(cut, "some.file"); }),
                HasSubstr("'some.file' ends in the middle"));
  }
}

TEST(CompressedFile, RefusesEveryChangedByteOfTheData) {
  for (const Packer& packer : kPackers) {
    SCOPED_TRACE(packer.name);
    const Bytes plain = RandomBytes(300, 4);
    const Bytes packed = packer.pack(plain);
    std::size_t unnoticed = 0;
    for (std::size_t i = packer.magic; i < packed.size(); ++i) {
      Bytes changed = packed;
      changed[i] ^= std::byte{0x10};
      try {
        // gzip does not protect its time stamp and system byte; the data must be right anyway.
        EXPECT_EQ(Decompress(changed, "changed"), plain) << "byte " << i;
        ++unnoticed;
      } catch (const Error&) {
      }
    }
    EXPECT_LE(unnoticed, packer.pack == Gzip ? 6U : 0U);
  }
}

TEST(CompressedFile, RefusesWhatStandsBehindTheEnd) {
  for (const Packer& packer : kPackers) {
    SCOPED_TRACE(packer.name);
    for (const char* rest : {"x", "more", "\x1F", "garbage behind"}) {
      EXPECT_THAT(SentenceOf([&] {
                    Decompress(Joined(packer.pack(RandomBytes(50, 5)), ToBytes(rest)), "tail");
                  }),
                  HasSubstr("'tail'"));
    }
  }
}

TEST(CompressedFile, StopsAtTheLimitAndNotBefore) {
  const TestFolder folder;
  const Bytes plain = RandomBytes(100000, 6);
  EXPECT_EQ(ReadWholeFile(folder.Write("plain", plain), 100000), plain);
  EXPECT_THROW(ReadWholeFile(folder.Write("plain", plain), 99999), Error);
  EXPECT_THROW(Decompress(plain, "plain", 99999), Error);
  for (const Packer& packer : kPackers) {
    SCOPED_TRACE(packer.name);
    const Bytes packed = packer.pack(plain);
    EXPECT_EQ(Decompress(packed, "packed", 100000), plain);
    EXPECT_THAT(SentenceOf([&] { Decompress(packed, "packed", 99999); }),
                HasSubstr("more than 99999 bytes"));
  }
}

TEST(CompressedFile, StopsABombAtTheLimit) {
  const Bytes zeros(50 << 20);
  for (const Packer& packer : kPackers) {
    SCOPED_TRACE(packer.name);
    const Bytes bomb = packer.pack(zeros);
    ASSERT_LT(bomb.size(), 60000U);
    EXPECT_THAT(SentenceOf([&] { Decompress(bomb, "bomb", 1 << 20); }), HasSubstr("limit"));
  }
}

// The dictionary is allocated from what the header claims.
TEST(CompressedFile, RefusesAnXzFileThatAsksForALargeDictionary) {
  lzma_options_lzma options{};
  ASSERT_FALSE(lzma_lzma_preset(&options, 0));
  options.dict_size = 1U << 30;
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, nullptr}};
  // The encoder would need the memory itself: the claim is put into a small file by hand, as the
  // size byte of the filter with the header's checksum made anew.
  Bytes packed = Xz(ToBytes("hello"));
  std::uint32_t size = 0;
  ASSERT_EQ(lzma_properties_size(&size, filters), LZMA_OK);
  ASSERT_EQ(size, 1U);
  std::uint8_t property = 0;
  ASSERT_EQ(lzma_properties_encode(filters, &property), LZMA_OK);
  auto* const block = reinterpret_cast<std::uint8_t*>(packed.data()) + 12;
  const std::size_t header = (block[0] + std::size_t{1}) * 4;
  // Block header: size, flags, filter id, size of properties, properties (no sizes are stored by
  // this encoder unless the flags say so).
  std::size_t place = 2;
  if ((block[1] & 0x40) != 0) {
    while ((block[place++] & 0x80) != 0) {
    }
  }
  if ((block[1] & 0x80) != 0) {
    while ((block[place++] & 0x80) != 0) {
    }
  }
  ASSERT_EQ(block[place], LZMA_FILTER_LZMA2);
  block[place + 2] = property;
  const std::uint32_t checksum = lzma_crc32(block, header - 4, 0);
  for (std::size_t i = 0; i < 4; ++i) {
    block[header - 4 + i] = static_cast<std::uint8_t>(checksum >> (8 * i));
  }
  EXPECT_THAT(SentenceOf([&] { Decompress(packed, "greedy.xz"); }),
              HasSubstr("'greedy.xz' needs more than 128 MiB"));
}

TEST(CompressedFile, SaysWhatCannotBeOpened) {
  const TestFolder folder;
  EXPECT_THAT(SentenceOf([&] { ReadWholeFile(folder.path() / "missing"); }),
              HasSubstr("missing' cannot be opened: No such file"));
  EXPECT_THAT(SentenceOf([&] { ReadWholeFile(folder.path()); }), HasSubstr("is a directory"));
}

TEST(CompressedFile, DoesNotTakeMemoryForASparseFileAboveTheLimit) {
  const TestFolder folder;
  const auto path = folder.Write("sparse", "");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  EXPECT_THAT(SentenceOf([&] { ReadWholeFile(path); }), HasSubstr("limit"));
}

}  // namespace
}  // namespace sordino
