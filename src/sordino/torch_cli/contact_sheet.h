// The first images of a public set in rows and columns, as a picture to look at.
#ifndef SORDINO_TORCH_CLI_CONTACT_SHEET_H_
#define SORDINO_TORCH_CLI_CONTACT_SHEET_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sordino/data/dataset.h"

namespace sordino {

// uint8 [rows * height, columns * width, 1 or 3] of the first images, at most 20 in a row and 200
// in all, small ones enlarged. Throws Error unless the set holds images with 1 or 3 channels.
at::Tensor ContactSheet(const Dataset& images);

// A PNG file in memory of what ContactSheet() returns.
std::vector<std::uint8_t> EncodePng(const at::Tensor& sheet);

// The sheet as the content of an SVG file, with a caption.
std::string ContactSheetSvg(const Dataset& images, const std::string& caption);
// And of a PNG file.
std::string ContactSheetPng(const Dataset& images);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_CONTACT_SHEET_H_
