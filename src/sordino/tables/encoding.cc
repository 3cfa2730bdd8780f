#include "sordino/tables/encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "sordino/base/known_name.h"
#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 4> kEncodingNames = {"utf-8", "latin-1", "windows-1252",
                                                            "utf-16"};
constexpr std::size_t kEncodedBlock = std::size_t{1} << 16;

// Of the bytes 0x80 to 0x9F; 0 for those that stand for nothing.
constexpr std::array<char16_t, 32> kWindows1252 = {
    0x20AC, 0,      0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017D, 0,      0,      0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0,      0x017E, 0x0178};

// Checks text that comes in pieces.
class Utf8Check {
 public:
  // How many bytes come before the first that cannot stand where it does; all of them where there
  // is none.
  std::size_t Take(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
      if (missing_ == 0 && IsAscii(text, at)) {
        at += 8;
      } else if (Step(static_cast<unsigned char>(text[at]))) {
        ++at;
      } else {
        break;
      }
    }
    return at;
  }
  bool is_whole() const { return missing_ == 0; }

 private:
  static bool IsAscii(std::string_view text, std::size_t at) {
    std::uint64_t eight = 0;
    if (text.size() - at < sizeof(eight)) return false;
    std::memcpy(&eight, text.data() + at, sizeof(eight));
    return (eight & 0x8080808080808080U) == 0;
  }

  bool Step(unsigned char byte) {
    if (missing_ > 0) {
      if (byte < low_ || byte > high_) return false;
      --missing_;
      low_ = 0x80;
      high_ = 0xBF;
      return true;
    }
    if (byte < 0x80) return true;
    if (byte < 0xC2 || byte > 0xF4) return false;
    missing_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    low_ = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    high_ = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    return true;
  }

  int missing_ = 0;           // bytes of the character that has begun
  unsigned char low_ = 0x80;  // of the next of them
  unsigned char high_ = 0xBF;
};

void Append(char32_t character, std::string& text) {
  const auto add = [&](char32_t bits) { text.push_back(static_cast<char>(bits)); };
  const auto add_tail = [&](int shift) { add(0x80U | ((character >> shift) & 0x3FU)); };
  if (character < 0x80) {
    add(character);
  } else if (character < 0x800) {
    add(0xC0U | (character >> 6U));
    add_tail(0);
  } else if (character < 0x10000) {
    add(0xE0U | (character >> 12U));
    add_tail(6);
    add_tail(0);
  } else {
    add(0xF0U | (character >> 18U));
    add_tail(12);
    add_tail(6);
    add_tail(0);
  }
}

[[noreturn]] void Refuse(const std::string& name, Encoding encoding, std::uint64_t byte) {
  std::vector<std::string_view> others(kEncodingNames.begin(), kEncodingNames.end());
  std::erase(others, EncodingName(encoding));
  throw DataError(fmt::format("'{}' is not valid {}, its declared encoding; give the one that it "
                              "has with --encoding ({}), or save it as UTF-8.",
                              name, EncodingName(encoding), OneOf(others)),
                  fmt::format("byte {} is the first that is not", byte));
}

class Utf8Source {
 public:
  Utf8Source(ByteSource bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)) {}

  std::size_t Read(std::span<char> buffer) {
    const std::size_t got = bytes_(buffer);
    const std::string_view text(buffer.data(), got);
    const std::size_t valid = check_.Take(text);
    if (valid < got || (got == 0 && !check_.is_whole())) {
      Refuse(name_, Encoding::kUtf8, taken_ + valid + 1);
    }
    taken_ += got;
    return got;
  }

 private:
  ByteSource bytes_;
  std::string name_;
  Utf8Check check_;
  std::uint64_t taken_ = 0;
};

// Of the other encodings.
class ConvertedSource {
 public:
  ConvertedSource(ByteSource bytes, Encoding encoding, std::string name)
      : bytes_(std::move(bytes)),
        encoding_(encoding),
        name_(std::move(name)),
        block_(kEncodedBlock) {}

  std::size_t Read(std::span<char> buffer) {
    while (place_ == text_.size()) {
      text_.clear();
      place_ = 0;
      const std::size_t got = bytes_(block_);
      if (got == 0) {
        if (encoding_ == Encoding::kUtf16) FinishUtf16();
        return 0;
      }
      Take({block_.data(), got});
    }
    const std::size_t size = std::min(buffer.size(), text_.size() - place_);
    std::memcpy(buffer.data(), text_.data() + place_, size);
    place_ += size;
    return size;
  }

 private:
  [[noreturn]] void RefuseByte() const { Refuse(name_, encoding_, taken_ + 1); }

  void Take(std::string_view bytes) {
    while (!bytes.empty()) {
      if (encoding_ != Encoding::kUtf16) {
        const auto* const end = std::find_if(bytes.begin(), bytes.end(), [](char c) {
          return static_cast<unsigned char>(c) > 0x7F;
        });
        const auto ascii = static_cast<std::size_t>(end - bytes.begin());
        text_.append(bytes.substr(0, ascii));
        taken_ += ascii;
        bytes.remove_prefix(ascii);
        if (bytes.empty()) return;
      }
      TakeByte(static_cast<unsigned char>(bytes.front()));
      bytes.remove_prefix(1);
      ++taken_;
    }
  }

  void TakeByte(unsigned char byte) {
    if (encoding_ == Encoding::kUtf16) return TakeUtf16(byte);
    char32_t character = byte;
    if (encoding_ == Encoding::kWindows1252 && byte >= 0x80 && byte < 0xA0) {
      character = kWindows1252[byte - 0x80U];
      if (character == 0) RefuseByte();
    }
    Append(character, text_);
  }

  void TakeUtf16(unsigned char byte) {
    if (taken_ % 2 == 0) {
      first_ = byte;
      return;
    }
    if (taken_ == 1) {
      big_end_first_ = first_ == 0xFE && byte == 0xFF;
      if (!big_end_first_ && !(first_ == 0xFF && byte == 0xFE)) RefuseByte();
      return;
    }
    const auto unit =
        static_cast<char32_t>(big_end_first_ ? 256U * first_ + byte : 256U * byte + first_);
    const bool is_second = unit >= 0xDC00 && unit < 0xE000;
    if (is_second != (surrogate_ != 0)) RefuseByte();
    if (is_second) {
      Append(0x10000 + ((surrogate_ - 0xD800) << 10U) + (unit - 0xDC00), text_);
      surrogate_ = 0;
    } else if (unit >= 0xD800 && unit < 0xDC00) {
      surrogate_ = unit;
    } else {
      Append(unit, text_);
    }
  }

  // An empty file is valid.
  void FinishUtf16() const {
    if (taken_ % 2 != 0 || surrogate_ != 0) RefuseByte();
  }

  ByteSource bytes_;
  Encoding encoding_;
  std::string name_;
  std::vector<char> block_;
  std::string text_;
  std::size_t place_ = 0;  // in text_
  std::uint64_t taken_ = 0;
  // Of UTF-16:
  bool big_end_first_ = false;
  unsigned char first_ = 0;  // of the two bytes of a unit
  char32_t surrogate_ = 0;   // the first of a pair; 0: none
};

}  // namespace

std::span<const std::string_view> EncodingNames() { return kEncodingNames; }

std::string_view EncodingName(Encoding encoding) {
  return kEncodingNames[static_cast<std::size_t>(encoding)];
}

Encoding ParseEncoding(std::string_view name) {
  return static_cast<Encoding>(IndexOfName("the encoding", name, kEncodingNames));
}

bool IsUtf8(std::string_view text) {
  Utf8Check check;
  return check.Take(text) == text.size() && check.is_whole();
}

ByteSource InUtf8(ByteSource bytes, Encoding encoding, const std::string& name) {
  if (encoding == Encoding::kUtf8) {
    return [source = std::make_shared<Utf8Source>(std::move(bytes), name)](std::span<char> buffer) {
      return source->Read(buffer);
    };
  }
  return [source = std::make_shared<ConvertedSource>(std::move(bytes), encoding, name)](
             std::span<char> buffer) { return source->Read(buffer); };
}

}  // namespace sordino
