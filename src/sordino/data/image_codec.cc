#include "sordino/data/image_codec.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <png.h>

// jpeglib.h uses size_t and FILE without including what declares them.
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

constexpr std::array<unsigned char, 8> kPngMagic = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::array<unsigned char, 3> kJpegMagic = {0xFF, 0xD8, 0xFF};
constexpr std::int64_t kMaxSide = 65535;
// Deflate makes at most 1,032 bytes of one, so a PNG cannot hold more.
constexpr std::uint64_t kMaxDeflateRatio = 1032;
// At least one bit a block, which covers at most 32 x 32 pixels.
constexpr std::uint64_t kMaxJpegPixelsPerByte = std::uint64_t{8} * 32 * 32;
// An encoder makes about ten scans of a progressive JPEG; thousands are an attack on time.
constexpr int kMaxScans = 100;

template <std::size_t size>
bool HasMagic(std::span<const std::byte> bytes, const std::array<unsigned char, size>& magic) {
  return bytes.size() >= size && std::memcmp(bytes.data(), magic.data(), size) == 0;
}

// What a decoder works on. Both libraries report errors by longjmp, which runs no destructors:
// so everything that owns memory lives here, outside the functions that are jumped out of.
struct Decoding {
  std::span<const std::byte> bytes;
  const ImageOptions* options = nullptr;  // null: only the size is wanted
  std::jmp_buf jump;
  std::array<char, 256> message{};
  std::int64_t height = 0;
  std::int64_t width = 0;
  int channels = 0;                   // 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha
  std::vector<unsigned char> pixels;  // interleaved
  std::vector<png_bytep> rows;

  void Say(const char* text) { std::snprintf(message.data(), message.size(), "%s", text); }
};

// Everything that may throw, between the two halves that may jump.
void CheckSize(Decoding& decoding, const std::string& name) {
  const auto [height, width] = std::pair(decoding.height, decoding.width);
  const std::int64_t most = decoding.options->max_pixels;
  if (height < 1 || width < 1 || height > kMaxSide || width > kMaxSide || height > most / width) {
    throw DataError(
        fmt::format("the image '{}' has more pixels than the {} that are decoded, or none.", name,
                    most),
        fmt::format("it is {} pixels high and {} wide", height, width));
  }
}

[[noreturn]] void ThrowDamaged(const Decoding& decoding, const char* kind,
                               const std::string& name) {
  throw DataError(fmt::format("the {} image '{}' is damaged; replace or remove it.", kind, name),
                  fmt::format("the decoder says {}", QuotedText(decoding.message.data(), 256)));
}

// ---- PNG ----

struct PngSource {
  Decoding* decoding;
  std::size_t place = 0;
};

[[noreturn]] void OnPngError(png_structp png, png_const_charp text) {
  auto* const decoding = static_cast<Decoding*>(png_get_error_ptr(png));
  decoding->Say(text);
  std::longjmp(decoding->jump, 1);
}

void OnPngWarning(png_structp /*png*/, png_const_charp /*text*/) {}

void ReadPngBytes(png_structp png, png_bytep to, std::size_t count) {
  auto* const source = static_cast<PngSource*>(png_get_io_ptr(png));
  const std::span<const std::byte> bytes = source->decoding->bytes;
  if (count > bytes.size() - source->place) png_error(png, "it is cut off");
  std::memcpy(to, bytes.data() + source->place, count);
  source->place += count;
}

class PngReader {
 public:
  explicit PngReader(Decoding& decoding)
      : source_{&decoding},
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoding, OnPngError, OnPngWarning)),
        info_(png_ != nullptr ? png_create_info_struct(png_) : nullptr) {
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw Error("libpng could not be started; the machine may be out of memory.");
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  // False when libpng reported an error.
  bool ReadHeader() {
    Decoding& decoding = *source_.decoding;
    if (setjmp(decoding.jump) != 0) return false;
    png_set_read_fn(png_, &source_, ReadPngBytes);
    png_set_benign_errors(png_, 0);
    png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_user_limits(png_, kMaxSide, kMaxSide);
    // -1: everything but the chunks that make the pixels. Profiles and texts are not parsed.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_read_info(png_, info_);
    decoding.height = png_get_image_height(png_, info_);
    decoding.width = png_get_image_width(png_, info_);
    if (decoding.options == nullptr) return true;
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_interlace_handling(png_);
    // Bytes before the transformations.
    if ((png_get_rowbytes(png_, info_) + 1) * static_cast<std::uint64_t>(decoding.height) >
        kMaxDeflateRatio * decoding.bytes.size()) {
      png_error(png_, "it is too short for its size");
    }
    png_read_update_info(png_, info_);
    decoding.channels = png_get_channels(png_, info_);
    row_bytes_ = png_get_rowbytes(png_, info_);
    return true;
  }

  void Allocate() {
    Decoding& decoding = *source_.decoding;
    const auto height = static_cast<std::size_t>(decoding.height);
    decoding.pixels.resize(row_bytes_ * height);
    decoding.rows.resize(height);
    for (std::size_t y = 0; y < height; ++y) {
      decoding.rows[y] = decoding.pixels.data() + y * row_bytes_;
    }
  }

  bool ReadPixels() {
    Decoding& decoding = *source_.decoding;
    if (setjmp(decoding.jump) != 0) return false;
    png_read_image(png_, decoding.rows.data());
    png_read_end(png_, nullptr);
    return true;
  }

 private:
  PngSource source_;
  png_structp png_;
  png_infop info_;
  std::size_t row_bytes_ = 0;
};

void DecodePng(Decoding& decoding, const std::string& name) {
  PngReader reader(decoding);
  if (!reader.ReadHeader()) ThrowDamaged(decoding, "PNG", name);
  if (decoding.options == nullptr) return;
  CheckSize(decoding, name);
  reader.Allocate();
  if (!reader.ReadPixels()) ThrowDamaged(decoding, "PNG", name);
}

// ---- JPEG ----

[[noreturn]] void JumpOut(j_common_ptr jpeg) {
  auto* const decoding = static_cast<Decoding*>(jpeg->client_data);
  std::array<char, JMSG_LENGTH_MAX> text{};
  jpeg->err->format_message(jpeg, text.data());
  decoding->Say(text.data());
  std::longjmp(decoding->jump, 1);
}

// A level below 0 is a warning: libjpeg would go on with pixels that it makes up.
void OnJpegMessage(j_common_ptr jpeg, int level) {
  if (level < 0) JumpOut(jpeg);
}

void OnJpegProgress(j_common_ptr jpeg) {
  const auto* const decompress = reinterpret_cast<j_decompress_ptr>(jpeg);
  if (decompress->input_scan_number > kMaxScans) {
    auto* const decoding = static_cast<Decoding*>(jpeg->client_data);
    decoding->Say("it has too many scans");
    std::longjmp(decoding->jump, 1);
  }
}

class JpegReader {
 public:
  explicit JpegReader(Decoding& decoding) : decoding_(decoding) {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = JumpOut;
    errors_.emit_message = OnJpegMessage;
    progress_.progress_monitor = OnJpegProgress;
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  bool ReadHeader() {
    if (setjmp(decoding_.jump) != 0) return false;
    // Set before, kept by, and needed within jpeg_create_decompress.
    jpeg_.client_data = &decoding_;
    jpeg_create_decompress(&jpeg_);
    jpeg_.progress = &progress_;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(decoding_.bytes.data()),
                 static_cast<unsigned long>(decoding_.bytes.size()));  // NOLINT: libjpeg's type
    jpeg_read_header(&jpeg_, TRUE);
    decoding_.height = jpeg_.image_height;
    decoding_.width = jpeg_.image_width;
    decoding_.channels = jpeg_.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
    return true;
  }

  // Four channels are inks, whose colours libjpeg does not know.
  bool HasColours() const {
    return jpeg_.jpeg_color_space == JCS_GRAYSCALE || jpeg_.jpeg_color_space == JCS_YCbCr ||
           jpeg_.jpeg_color_space == JCS_RGB;
  }

  void Allocate() {
    row_bytes_ = static_cast<std::size_t>(decoding_.width * decoding_.channels);
    decoding_.pixels.resize(row_bytes_ * static_cast<std::size_t>(decoding_.height));
  }

  bool ReadPixels() {
    if (setjmp(decoding_.jump) != 0) return false;
    jpeg_.out_color_space = decoding_.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = decoding_.pixels.data() + jpeg_.output_scanline * row_bytes_;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

 private:
  Decoding& decoding_;
  jpeg_decompress_struct jpeg_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::size_t row_bytes_ = 0;
};

void DecodeJpeg(Decoding& decoding, const std::string& name) {
  JpegReader reader(decoding);
  if (!reader.ReadHeader()) ThrowDamaged(decoding, "JPEG", name);
  if (decoding.options == nullptr) return;
  if (!reader.HasColours()) {
    throw Error(
        fmt::format("the JPEG image '{}' is neither grey nor red, green and blue; save it "
                    "as RGB.",
                    name));
  }
  CheckSize(decoding, name);
  if (static_cast<std::uint64_t>(decoding.height * decoding.width) >
      kMaxJpegPixelsPerByte * decoding.bytes.size()) {
    decoding.Say("it is too short for its size");
    ThrowDamaged(decoding, "JPEG", name);
  }
  reader.Allocate();
  if (!reader.ReadPixels()) ThrowDamaged(decoding, "JPEG", name);
}

// ---- both ----

void Decode(Decoding& decoding, const std::string& name) {
  if (HasMagic(decoding.bytes, kPngMagic)) {
    DecodePng(decoding, name);
  } else if (HasMagic(decoding.bytes, kJpegMagic)) {
    DecodeJpeg(decoding, name);
  } else {
    throw Error(fmt::format("'{}' is neither a PNG nor a JPEG image by its first bytes.", name));
  }
}

unsigned char Over(unsigned value, unsigned alpha, unsigned background) {
  return static_cast<unsigned char>((value * alpha + background * (255 - alpha) + 127) / 255);
}

// Weights of ITU-R BT.601 in units of 2^-16; they sum to 2^16.
unsigned char Grey(unsigned red, unsigned green, unsigned blue) {
  return static_cast<unsigned char>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

}  // namespace

ImageSize ReadImageSize(std::span<const std::byte> bytes, const std::string& name) {
  Decoding decoding;
  decoding.bytes = bytes;
  Decode(decoding, name);
  return {decoding.height, decoding.width};
}

at::Tensor DecodeImage(std::span<const std::byte> bytes, const std::string& name,
                       const ImageOptions& options) {
  if (options.channels != 1 && options.channels != 3) {
    throw Error(fmt::format("images with {} channels were declared; 1 and 3 are possible.",
                            options.channels));
  }
  Decoding decoding;
  decoding.bytes = bytes;
  decoding.options = &options;
  Decode(decoding, name);

  at::Tensor image = at::empty({options.channels, decoding.height, decoding.width}, at::kByte);
  auto* const to = image.mutable_data_ptr<std::uint8_t>();
  const auto plane = static_cast<std::size_t>(decoding.height * decoding.width);
  const auto stored = static_cast<std::size_t>(decoding.channels);
  const bool colour = stored >= 3;
  const bool transparent = stored % 2 == 0;
  const unsigned char* from = decoding.pixels.data();
  for (std::size_t i = 0; i < plane; ++i, from += stored) {
    std::array<unsigned char, 3> value = {from[0], from[colour ? 1 : 0], from[colour ? 2 : 0]};
    if (transparent) {
      const unsigned alpha = from[stored - 1];
      for (unsigned char& v : value) v = Over(v, alpha, options.background);
    }
    if (options.channels == 1) {
      to[i] = colour ? Grey(value[0], value[1], value[2]) : value[0];
    } else {
      for (std::size_t c = 0; c < 3; ++c) to[c * plane + i] = value[c];
    }
  }
  return image;
}

}  // namespace sordino
