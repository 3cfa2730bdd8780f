#include "sordino/data/compressed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::size_t kFirstBlock = std::size_t{64} << 10;
// xz -9 asks for a dictionary of 64 MiB; a header can ask for gigabytes.
constexpr std::uint64_t kXzMemory = std::uint64_t{128} << 20;

constexpr std::array<unsigned char, 2> kGzipMagic = {0x1F, 0x8B};
constexpr std::array<unsigned char, 6> kXzMagic = {0xFD, '7', 'z', 'X', 'Z', 0x00};

template <std::size_t size>
bool StartsWith(std::span<const std::byte> bytes, const std::array<unsigned char, size>& magic) {
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

// What was decompressed so far, with room for more. Doubles, so that the memory is at most twice
// what came out.
class Output {
 public:
  Output(const std::string& name, std::uint64_t limit) : name_(name), limit_(limit) {}

  // Room for at least one byte. One byte past the limit may be written, which tells a file that
  // just fits from one that does not.
  std::span<std::byte> Room() {
    if (size_ == bytes_.size()) {
      const std::uint64_t most =
          std::min<std::uint64_t>(limit_, std::numeric_limits<std::ptrdiff_t>::max() - 1) + 1;
      const std::uint64_t wanted = std::max<std::uint64_t>(kFirstBlock, 2 * bytes_.size());
      bytes_.resize(static_cast<std::size_t>(std::min(wanted, most)));
    }
    return std::span(bytes_).subspan(size_);
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

struct Inflater {
  Inflater() {
    // 16 more than the largest window: a gzip header is expected.
    if (inflateInit2(&stream, MAX_WBITS + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  z_stream stream{};
};

std::vector<std::byte> Gunzip(std::span<const std::byte> bytes, const std::string& name,
                              std::uint64_t limit) {
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
  Inflater inflater;
  z_stream& stream = inflater.stream;
  Output output(name, limit);
  std::size_t used = 0;
  while (true) {
    const std::span<std::byte> room = output.Room();
    const std::size_t given = std::min(bytes.size() - used, kMost);
    const std::size_t free = std::min(room.size(), kMost);
    // zlib's interface takes input that it does not change as mutable.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data() + used));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(room.data());
    stream.avail_out = static_cast<uInt>(free);
    const int outcome = inflate(&stream, Z_NO_FLUSH);
    used += given - stream.avail_in;
    output.Add(free - stream.avail_out);
    if (outcome == Z_STREAM_END) {
      if (used == bytes.size()) return output.Take();
      if (!StartsWith(bytes.subspan(used), kGzipMagic)) {
        ThrowDamaged(name, "gzip", "there is something else behind its end");
      }
      inflateReset(&stream);
    } else if (outcome == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (outcome == Z_BUF_ERROR ||
               (outcome == Z_OK && used == bytes.size() && stream.avail_out > 0)) {
      ThrowCutOff(name, "gzip");
    } else if (outcome != Z_OK) {
      ThrowDamaged(name, "gzip", stream.msg != nullptr ? stream.msg : "unknown method");
    }
  }
}

struct XzDecoder {
  XzDecoder() {
    if (lzma_stream_decoder(&stream, kXzMemory, LZMA_CONCATENATED | LZMA_TELL_UNSUPPORTED_CHECK) !=
        LZMA_OK) {
      throw std::bad_alloc();
    }
  }
  ~XzDecoder() { lzma_end(&stream); }
  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;
  lzma_stream stream = LZMA_STREAM_INIT;
};

std::vector<std::byte> Unxz(std::span<const std::byte> bytes, const std::string& name,
                            std::uint64_t limit) {
  XzDecoder decoder;
  lzma_stream& stream = decoder.stream;
  stream.next_in = reinterpret_cast<const std::uint8_t*>(bytes.data());
  stream.avail_in = bytes.size();
  Output output(name, limit);
  while (true) {
    const std::span<std::byte> room = output.Room();
    stream.next_out = reinterpret_cast<std::uint8_t*>(room.data());
    stream.avail_out = room.size();
    const lzma_ret outcome = lzma_code(&stream, LZMA_FINISH);
    output.Add(room.size() - stream.avail_out);
    switch (outcome) {
      case LZMA_OK:
        break;
      case LZMA_STREAM_END:
        return output.Take();
      case LZMA_BUF_ERROR:
        ThrowCutOff(name, "xz");
      case LZMA_MEM_ERROR:
        throw std::bad_alloc();
      case LZMA_MEMLIMIT_ERROR:
        throw Error(fmt::format(
            "'{}' needs more than {} MiB of memory to decompress; compress it again with 'xz -9' "
            "or less.",
            name, kXzMemory >> 20));
      case LZMA_UNSUPPORTED_CHECK:
        ThrowDamaged(name, "xz", "its kind of checksum is not known");
      default:
        ThrowDamaged(name, "xz", "its data or their checksum are wrong, or more stands behind it");
    }
  }
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& name)
      : value_(::open(name.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (value_ < 0) {
      throw Error(fmt::format("The file '{}' cannot be opened: {}.", name, std::strerror(errno)));
    }
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

std::vector<std::byte> ReadPlain(const std::string& name, std::uint64_t limit) {
  const Descriptor file(name);
  struct stat status {};
  if (::fstat(file.value(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      throw Error(fmt::format("'{}' is a directory; give a file.", name));
    }
    if (S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) > limit) {
      ThrowTooLarge(name, limit);
    }
  }
  Output output(name, limit);
  while (true) {
    const std::span<std::byte> room = output.Room();
    const ssize_t got = ::read(file.value(), room.data(), room.size());
    if (got == 0) return output.Take();
    if (got > 0) {
      output.Add(static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      throw Error(fmt::format("Reading '{}' failed: {}.", name, std::strerror(errno)));
    }
  }
}

[[noreturn]] void ThrowNoMemory(const std::string& name) {
  throw Error(fmt::format("'{}' does not fit into the memory of this machine.", name));
}

bool IsCompressed(std::span<const std::byte> bytes) {
  return StartsWith(bytes, kGzipMagic) || StartsWith(bytes, kXzMagic);
}

}  // namespace

std::vector<std::byte> Decompress(std::span<const std::byte> bytes, const std::string& name,
                                  std::uint64_t limit) {
  try {
    if (StartsWith(bytes, kGzipMagic)) return Gunzip(bytes, name, limit);
    if (StartsWith(bytes, kXzMagic)) return Unxz(bytes, name, limit);
    if (bytes.size() > limit) ThrowTooLarge(name, limit);
    return {bytes.begin(), bytes.end()};
  } catch (const std::bad_alloc&) {
    ThrowNoMemory(name);
  }
}

std::vector<std::byte> ReadWholeFile(const std::filesystem::path& path, std::uint64_t limit) {
  const std::string name = path.string();
  try {
    std::vector<std::byte> bytes = ReadPlain(name, limit);
    return IsCompressed(bytes) ? Decompress(bytes, name, limit) : bytes;
  } catch (const std::bad_alloc&) {
    ThrowNoMemory(name);
  }
}

}  // namespace sordino
