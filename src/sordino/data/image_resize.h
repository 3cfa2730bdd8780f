// Images of any size to the declared one, by a declared rule.
//
//   --resize 64x48        stretched (the rule where only a shape is declared)
//   --resize 64x48:crop   the middle of it in the proportions of 64x48, then scaled
//   --resize 64x48:pad    scaled until it fits, black beside it
//
// The rule looks at one image and at nothing else, so it is a fixed function of a record: it costs
// no privacy. No image is refused for its size, because a refusal would reveal that there is such a
// record. Scaling is bilinear, with antialiasing where it shrinks.
#ifndef SORDINO_DATA_IMAGE_RESIZE_H_
#define SORDINO_DATA_IMAGE_RESIZE_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

namespace sordino {

enum class ResizeRule : std::uint8_t { kStretch, kCrop, kPad };

struct Resize {
  std::int64_t width = 0;   // pixels, 1 to kLongestSide
  std::int64_t height = 0;  // likewise
  ResizeRule rule = ResizeRule::kStretch;
};
inline constexpr std::int64_t kLongestSide = 16'384;

// "64x48", "64x48:crop". Throws Error otherwise.
Resize ParseResize(const std::string& text);

// image: uint8 [channels, height, width], neither side 0. One that has the size is returned as it
// is.
at::Tensor Resized(const at::Tensor& image, const Resize& resize);

}  // namespace sordino

#endif  // SORDINO_DATA_IMAGE_RESIZE_H_
