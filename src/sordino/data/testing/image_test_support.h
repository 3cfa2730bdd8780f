// PNG and JPEG files made in memory, for the tests of what reads them.
#ifndef SORDINO_DATA_TESTING_IMAGE_TEST_SUPPORT_H_
#define SORDINO_DATA_TESTING_IMAGE_TEST_SUPPORT_H_

#include <gtest/gtest.h>
#include <png.h>

// jpeglib.h uses size_t and FILE without including what declares them.
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

#include <cstring>
#include <vector>

#include "sordino/tables/testing/reader_test_support.h"

namespace sordino {

struct PngForm {
  int depth = 8;
  int colour = PNG_COLOR_TYPE_RGB;
  int interlace = PNG_INTERLACE_NONE;
};

// `rows` holds the packed rows one after the other; a palette is added where the form needs one.
inline Bytes EncodePng(int height, int width, const PngForm& form,
                       const std::vector<unsigned char>& rows) {
  Bytes file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep data, std::size_t size) {
        auto* const to = static_cast<Bytes*>(png_get_io_ptr(p));
        const auto* const from = reinterpret_cast<const std::byte*>(data);
        to->insert(to->end(), from, from + size);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
               form.depth, form.colour, form.interlace, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  const png_color palette[] = {{10, 20, 30}, {200, 100, 50}};
  const png_byte transparency[] = {255, 0};
  if (form.colour == PNG_COLOR_TYPE_PALETTE) {
    png_set_PLTE(png, info, palette, 2);
    png_set_tRNS(png, info, transparency, 2, nullptr);
  }
  png_write_info(png, info);
  const std::size_t row_bytes = png_get_rowbytes(png, info);
  EXPECT_EQ(rows.size(), row_bytes * static_cast<std::size_t>(height));
  std::vector<png_bytep> pointers;
  pointers.reserve(static_cast<std::size_t>(height));
  for (int y = 0; y < height; ++y) {
    pointers.push_back(const_cast<png_bytep>(rows.data()) +
                       static_cast<std::size_t>(y) * row_bytes);
  }
  png_write_image(png, pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

struct JpegForm {
  J_COLOR_SPACE colour = JCS_RGB;
  bool progressive = false;
};

inline Bytes EncodeJpeg(int height, int width, const JpegForm& form,
                        const std::vector<unsigned char>& rows) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* out = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&jpeg, &out, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = form.colour == JCS_GRAYSCALE ? 1 : form.colour == JCS_CMYK ? 4 : 3;
  jpeg.in_color_space = form.colour;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  if (form.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  const auto row_bytes =
      static_cast<std::size_t>(width) * static_cast<std::size_t>(jpeg.input_components);
  EXPECT_EQ(rows.size(), row_bytes * static_cast<std::size_t>(height));
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPROW row = const_cast<JSAMPROW>(rows.data()) + jpeg.next_scanline * row_bytes;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  Bytes file(size);
  std::memcpy(file.data(), out, size);
  jpeg_destroy_compress(&jpeg);
  std::free(out);
  return file;
}

}  // namespace sordino

#endif  // SORDINO_DATA_TESTING_IMAGE_TEST_SUPPORT_H_
