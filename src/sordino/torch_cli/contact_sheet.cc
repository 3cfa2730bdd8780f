#include "sordino/torch_cli/contact_sheet.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <string_view>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr std::int64_t kColumns = 20;
constexpr std::int64_t kMaxImages = 200;
constexpr std::int64_t kSmallSide = 48;  // images below it are shown at twice their size

std::string Base64(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t group = std::uint32_t{bytes[i]} << 16;
    if (left > 1) group |= std::uint32_t{bytes[i + 1]} << 8;
    if (left > 2) group |= std::uint32_t{bytes[i + 2]};
    for (std::size_t k = 0; k < 4; ++k) {
      text.push_back(k > left ? '=' : kLetters[(group >> (18 - 6 * k)) & 63]);
    }
  }
  return text;
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      default:
        escaped.push_back(c);
    }
  }
  return escaped;
}

std::string SheetSvg(const at::Tensor& sheet, const std::string& caption) {
  const std::int64_t height = sheet.size(0);
  const std::int64_t width = sheet.size(1);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\">\n<text x=\"4\" y=\"18\" font-family=\"sans-serif\" font-size=\"14\" "
      "fill=\"#777\">{2}</text>\n<image x=\"0\" y=\"28\" width=\"{0}\" height=\"{3}\" "
      "href=\"data:image/png;base64,{4}\"/>\n</svg>\n",
      width, height + 28, Escaped(caption), height, Base64(EncodePng(sheet)));
}

}  // namespace

at::Tensor ContactSheet(const Dataset& images) {
  const DatasetDeclaration& declaration = images.declaration;
  const bool drawable = declaration.kind == InputKind::kImage && images.inputs.dim() == 4 &&
                        (images.inputs.size(1) == 1 || images.inputs.size(1) == 3);
  if (!drawable || images.inputs.size(0) == 0) {
    throw Error(
        fmt::format("'{}' has no test images with 1 or 3 channels to draw; leave --picture "
                    "out.",
                    declaration.name));
  }
  const std::int64_t count = std::min(images.inputs.size(0), kMaxImages);
  const std::int64_t columns = std::min(count, kColumns);
  const std::int64_t rows = (count + columns - 1) / columns;
  const std::int64_t channels = images.inputs.size(1);
  const std::int64_t height = images.inputs.size(2);
  const std::int64_t width = images.inputs.size(3);
  at::Tensor cells = at::zeros({rows * columns, channels, height, width}, at::kByte);
  cells.narrow(0, 0, count).copy_(images.inputs.narrow(0, 0, count));
  at::Tensor sheet = cells.view({rows, columns, channels, height, width})
                         .permute({0, 3, 1, 4, 2})
                         .reshape({rows * height, columns * width, channels});
  if (std::max(height, width) < kSmallSide) {
    sheet = sheet.repeat_interleave(2, 0).repeat_interleave(2, 1);
  }
  return sheet.contiguous();
}

std::vector<std::uint8_t> EncodePng(const at::Tensor& sheet) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(sheet.size(0));
  image.width = static_cast<png_uint_32>(sheet.size(1));
  image.format = sheet.size(2) == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  const at::Tensor pixels = sheet.contiguous();
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::uint8_t> bytes(size);
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0,
                                pixels.const_data_ptr<std::uint8_t>(), 0, nullptr) == 0) {
    throw Error(fmt::format("the picture could not be made: {}.", image.message));
  }
  bytes.resize(size);
  return bytes;
}

std::string ContactSheetSvg(const Dataset& images, const std::string& caption) {
  return SheetSvg(ContactSheet(images), caption);
}

std::string ContactSheetPng(const Dataset& images) {
  const std::vector<std::uint8_t> bytes = EncodePng(ContactSheet(images));
  return {bytes.begin(), bytes.end()};
}

}  // namespace sordino
