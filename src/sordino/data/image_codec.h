// PNG and JPEG from memory to tensors, by libpng and libjpeg.
//
// Sizes are read and compared with the limits before pixels are allocated. Anything that the
// libraries only warn about (a cut-off file, a wrong checksum, data that do not fit) is an Error:
// what they would return then is invented. Colour profiles, gamma and EXIF orientation are ignored.
#ifndef SORDINO_DATA_IMAGE_CODEC_H_
#define SORDINO_DATA_IMAGE_CODEC_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sordino {

struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

struct ImageOptions {
  // 1 or 3. Grey becomes colour by repetition; colour becomes grey by
  // 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601).
  std::int64_t channels = 3;
  // Transparent pixels are laid over this grey value.
  std::uint8_t background = 0;
  std::int64_t max_pixels = std::int64_t{1} << 26;
};

// Height and width as the header states them, without decoding.
ImageSize ReadImageSize(std::span<const std::byte> bytes, const std::string& name);

// uint8 [channels, height, width]. 16 bits a channel are rounded to 8.
at::Tensor DecodeImage(std::span<const std::byte> bytes, const std::string& name,
                       const ImageOptions& options);

}  // namespace sordino

#endif  // SORDINO_DATA_IMAGE_CODEC_H_
