// PNG and JPEG. The first byte chooses the channels and the background.
//
// A random change of a PNG is stopped by a checksum, so those are made right first; that wrong ones
// are noticed is a matter of the unit tests.
#include <zlib.h>

#include <cstring>
#include <vector>

#include "fuzz_target.h"
#include "sordino/data/image_codec.h"

using namespace sordino;  // NOLINT: a program of two functions

namespace {

void MendChecksums(std::vector<std::uint8_t>& file) {
  if (file.size() < 8 || std::memcmp(file.data(), "\x89PNG", 4) != 0) return;
  std::size_t place = 8;
  while (file.size() - place >= 12) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i) length = length * 256 + file[place + i];
    if (length > file.size() - place - 12) return;
    const auto sum = crc32(0, file.data() + place + 4, static_cast<uInt>(length + 4));
    place += 8 + length;
    for (std::size_t i = 0; i < 4; ++i) {
      file[place++] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  ImageOptions options;
  options.channels = data[0] % 2 == 0 ? 1 : 3;
  options.background = data[0];
  options.max_pixels = 1 << 20;
  std::vector<std::uint8_t> file(data + 1, data + size);
  MendChecksums(file);
  const auto bytes = fuzz::AsBytes(file.data(), file.size());
  return fuzz::Run([&] {
    const at::Tensor image = DecodeImage(bytes, "input", options);
    const ImageSize stated = ReadImageSize(bytes, "input");
    fuzz::Require(image.size(0) == options.channels && image.size(1) == stated.height &&
                      image.size(2) == stated.width,
                  "the image has another size than its header states");
  });
}
