#include "sordino/data/image_resize.h"

#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 3> kRules = {"stretch", "crop", "pad"};

bool TakeSide(std::string_view text, std::int64_t& side) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), side);
  return error == std::errc() && end == text.data() + text.size() && side >= 1 &&
         side <= kLongestSide;
}

at::Tensor Scaled(const at::Tensor& image, std::int64_t height, std::int64_t width) {
  if (image.size(1) == height && image.size(2) == width) return image;
  return at::_upsample_bilinear2d_aa(image.unsqueeze(0).to(at::kFloat), {height, width},
                                     /*align_corners=*/false)
      .squeeze(0)
      .round_()
      .clamp_(0, 255)
      .to(at::kByte);
}

// `side` of a picture whose other side is `other`, in the proportions side : other = a : b.
std::int64_t InProportion(std::int64_t other, std::int64_t a, std::int64_t b, std::int64_t most) {
  const double side = static_cast<double>(other) * static_cast<double>(a) / static_cast<double>(b);
  return std::clamp<std::int64_t>(std::llround(side), 1, most);
}

}  // namespace

Resize ParseResize(const std::string& text) {
  const std::string_view all = text;
  const std::size_t colon = std::min(all.find(':'), all.size());
  const std::string_view size = all.substr(0, colon);
  const std::size_t by = size.find('x');
  Resize resize;
  if (by == std::string_view::npos || !TakeSide(size.substr(0, by), resize.width) ||
      !TakeSide(size.substr(by + 1), resize.height)) {
    throw Error(
        fmt::format("--resize is '{}'; write the width and the height in pixels from 1 to {}, such "
                    "as 64x48, and "
                    "behind them :crop or :pad where pictures must not be stretched.",
                    text, kLongestSide));
  }
  if (colon < all.size()) {
    resize.rule =
        static_cast<ResizeRule>(IndexOfName("the rule of --resize", all.substr(colon + 1), kRules));
  }
  return resize;
}

at::Tensor Resized(const at::Tensor& image, const Resize& resize) {
  const std::int64_t h = image.size(1);
  const std::int64_t w = image.size(2);
  if (resize.rule == ResizeRule::kCrop) {
    const std::int64_t height = InProportion(w, resize.height, resize.width, h);
    const std::int64_t width = InProportion(h, resize.width, resize.height, w);
    const at::Tensor middle =
        image.narrow(1, (h - height) / 2, height).narrow(2, (w - width) / 2, width);
    return Scaled(middle, resize.height, resize.width);
  }
  if (resize.rule == ResizeRule::kPad) {
    const std::int64_t height = InProportion(resize.width, h, w, resize.height);
    const std::int64_t width = InProportion(resize.height, w, h, resize.width);
    at::Tensor page = at::zeros({image.size(0), resize.height, resize.width}, at::kByte);
    page.narrow(1, (resize.height - height) / 2, height)
        .narrow(2, (resize.width - width) / 2, width)
        .copy_(Scaled(image, height, width));
    return page;
  }
  return Scaled(image, resize.height, resize.width);
}

}  // namespace sordino
