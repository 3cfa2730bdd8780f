#include "sordino/tables/compressed_file.h"

#include <fmt/format.h>
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::size_t kBlock = std::size_t{64} << 10;
// xz -9 asks for a dictionary of 64 MiB; a header can ask for gigabytes.
constexpr std::uint64_t kXzMemory = std::uint64_t{128} << 20;

constexpr std::array<unsigned char, 2> kGzipMagic = {0x1F, 0x8B};
constexpr std::array<unsigned char, 6> kXzMagic = {0xFD, '7', 'z', 'X', 'Z', 0x00};

template <std::size_t size>
bool StartsWith(std::span<const char> bytes, const std::array<unsigned char, size>& magic) {
  return bytes.size() >= size && std::memcmp(bytes.data(), magic.data(), size) == 0;
}

[[noreturn]] void ThrowTooLarge(const std::string& name, std::uint64_t limit) {
  throw Error(fmt::format(
      "'{}' holds more than {} bytes, which is the limit for one file; split it into several.",
      name, limit));
}

[[noreturn]] void ThrowCutOff(const std::string& name, const char* kind) {
  throw Error(
      fmt::format("'{}' ends in the middle of its {} data; fetch or copy it again.", name, kind));
}

[[noreturn]] void ThrowDamaged(const std::string& name, const char* kind, const char* what) {
  throw Error(
      fmt::format("'{}' is not a sound {} file ({}); fetch or copy it again.", name, kind, what));
}

// What was read so far, with room for more. Doubles, so that the memory is at most twice
// what came in.
class Output {
 public:
  Output(const std::string& name, std::uint64_t limit) : name_(name), limit_(limit) {}

  // Room for at least one byte. One byte past the limit may be written, which tells a file that
  // just fits from one that does not.
  std::span<char> Room() {
    if (size_ == bytes_.size()) {
      const std::uint64_t most =
          std::min<std::uint64_t>(limit_, std::numeric_limits<std::ptrdiff_t>::max() - 1) + 1;
      const std::uint64_t wanted = std::max<std::uint64_t>(kBlock, 2 * bytes_.size());
      bytes_.resize(static_cast<std::size_t>(std::min(wanted, most)));
    }
    return {reinterpret_cast<char*>(bytes_.data()) + size_, bytes_.size() - size_};
  }

  void Add(std::size_t count) {
    size_ += count;
    if (size_ > limit_) ThrowTooLarge(name_, limit_);
  }

  std::vector<std::byte> Take() {
    bytes_.resize(size_);
    return std::move(bytes_);
  }

 private:
  const std::string& name_;
  std::uint64_t limit_;
  std::vector<std::byte> bytes_;
  std::size_t size_ = 0;
};

// The compressed bytes, a block at a time.
class Input {
 public:
  explicit Input(ByteSource source) : source_(std::move(source)), block_(kBlock) {}

  // The next bytes, once those before are used up; empty at the end.
  std::span<char> Next() {
    const std::size_t got = ended_ ? 0 : source_(block_);
    ended_ = got == 0;
    return std::span(block_).first(got);
  }
  bool ended() const { return ended_; }

 private:
  ByteSource source_;
  std::vector<char> block_;
  bool ended_ = false;
};

class Gunzip {
 public:
  Gunzip(ByteSource source, std::string name) : input_(std::move(source)), name_(std::move(name)) {
    // 16 more than the largest window: a gzip header is expected.
    if (inflateInit2(&stream_, MAX_WBITS + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Gunzip() { inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  std::size_t Read(std::span<char> room) {
    const std::size_t free = std::min<std::size_t>(room.size(), std::numeric_limits<uInt>::max());
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = static_cast<uInt>(free);
    while (stream_.avail_out == free) {
      if (stream_.avail_in == 0 && !input_.ended()) {
        const std::span<char> next = input_.Next();
        stream_.next_in = reinterpret_cast<Bytef*>(next.data());
        stream_.avail_in = static_cast<uInt>(next.size());
      }
      if (between_members_) {
        if (stream_.avail_in == 0) return 0;
        inflateReset(&stream_);
        between_members_ = false;
      }
      Take(inflate(&stream_, Z_NO_FLUSH), stream_.avail_out < free);
    }
    return free - stream_.avail_out;
  }

 private:
  void Take(int outcome, bool produced) {
    switch (outcome) {
      case Z_STREAM_END:
        between_members_ = true;
        ++members_;
        return;
      case Z_OK:
      case Z_BUF_ERROR:
        if (!produced && stream_.avail_in == 0 && input_.ended()) ThrowCutOff(name_, "gzip");
        return;
      case Z_MEM_ERROR:
        throw std::bad_alloc();
      default:
        // The first two bytes of a member tell what it is.
        if (members_ > 0 && stream_.total_in <= 2) {
          ThrowDamaged(name_, "gzip", "there is something else behind its end");
        }
        ThrowDamaged(name_, "gzip", stream_.msg != nullptr ? stream_.msg : "unknown method");
    }
  }

  Input input_;
  std::string name_;
  z_stream stream_{};
  bool between_members_ = false;
  std::uint64_t members_ = 0;
};

class Unxz {
 public:
  Unxz(ByteSource source, std::string name) : input_(std::move(source)), name_(std::move(name)) {
    if (lzma_stream_decoder(&stream_, kXzMemory, LZMA_CONCATENATED | LZMA_TELL_UNSUPPORTED_CHECK) !=
        LZMA_OK) {
      throw std::bad_alloc();
    }
  }
  ~Unxz() { lzma_end(&stream_); }
  Unxz(const Unxz&) = delete;
  Unxz& operator=(const Unxz&) = delete;

  std::size_t Read(std::span<char> room) {
    stream_.next_out = reinterpret_cast<std::uint8_t*>(room.data());
    stream_.avail_out = room.size();
    while (!done_ && stream_.avail_out == room.size()) {
      if (stream_.avail_in == 0 && !input_.ended()) {
        const std::span<char> next = input_.Next();
        stream_.next_in = reinterpret_cast<const std::uint8_t*>(next.data());
        stream_.avail_in = next.size();
      }
      Take(lzma_code(&stream_, input_.ended() ? LZMA_FINISH : LZMA_RUN));
    }
    return room.size() - stream_.avail_out;
  }

 private:
  void Take(lzma_ret outcome) {
    switch (outcome) {
      case LZMA_OK:
        return;
      case LZMA_STREAM_END:
        done_ = true;
        return;
      case LZMA_BUF_ERROR:
        ThrowCutOff(name_, "xz");
      case LZMA_MEM_ERROR:
        throw std::bad_alloc();
      case LZMA_MEMLIMIT_ERROR:
        throw Error(fmt::format(
            "'{}' needs more than {} MiB of memory to decompress; compress it again with 'xz -9' "
            "or less.",
            name_, kXzMemory >> 20));
      case LZMA_UNSUPPORTED_CHECK:
        ThrowDamaged(name_, "xz", "its kind of checksum is not known");
      default:
        ThrowDamaged(name_, "xz", "its data or their checksum are wrong, or more stands behind it");
    }
  }

  Input input_;
  std::string name_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool done_ = false;
};

[[noreturn]] void ThrowNoMemory(const std::string& name) {
  throw Error(fmt::format("'{}' does not fit into the memory of this machine.", name));
}

std::vector<std::byte> Drained(ByteSource packed, const std::string& name, std::uint64_t limit) {
  try {
    const ByteSource source = Decompressed(std::move(packed), name);
    Output output(name, limit);
    while (true) {
      const std::size_t got = source(output.Room());
      if (got == 0) return output.Take();
      output.Add(got);
    }
  } catch (const std::bad_alloc&) {
    ThrowNoMemory(name);
  }
}

}  // namespace

ByteSource Decompressed(ByteSource packed, const std::string& name) {
  std::vector<char> beginning(kXzMagic.size());
  std::size_t size = 0;
  while (size < beginning.size()) {
    const std::size_t got = packed(std::span(beginning).subspan(size));
    if (got == 0) break;
    size += got;
  }
  beginning.resize(size);
  const bool gzip = StartsWith(beginning, kGzipMagic);
  const bool xz = StartsWith(beginning, kXzMagic);
  ByteSource whole = [beginning = std::move(beginning), used = std::size_t{0},
                      packed = std::move(packed)](std::span<char> buffer) mutable {
    if (used == beginning.size()) return packed(buffer);
    const std::size_t count = std::min(buffer.size(), beginning.size() - used);
    std::copy_n(beginning.data() + used, count, buffer.data());
    used += count;
    return count;
  };
  if (gzip) {
    const auto decoder = std::make_shared<Gunzip>(std::move(whole), name);
    return [decoder](std::span<char> buffer) { return decoder->Read(buffer); };
  }
  if (xz) {
    const auto decoder = std::make_shared<Unxz>(std::move(whole), name);
    return [decoder](std::span<char> buffer) { return decoder->Read(buffer); };
  }
  return whole;
}

std::vector<std::byte> Decompress(std::span<const std::byte> bytes, const std::string& name,
                                  std::uint64_t limit) {
  return Drained(FromText({reinterpret_cast<const char*>(bytes.data()), bytes.size()}), name,
                 limit);
}

std::vector<std::byte> ReadWholeFile(const std::filesystem::path& path, std::uint64_t limit) {
  const std::string name = path.string();
  ByteSource file = OpenFile(name);
  if (FileSize(name) > limit) ThrowTooLarge(name, limit);
  return Drained(std::move(file), name, limit);
}

}  // namespace sordino
