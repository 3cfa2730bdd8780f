// Images as a table for convex learning, for benchmarks.
//
// Both maps are fixed functions of one image, of which nothing was fitted to data:
//   pixels     the pixels in [0, 1]
//   gradients  the pixels averaged over 4 x 4 cells, and for each cell the mean strength of the
//              differences of neighbouring pixels in each of 8 directions (Dalal and Triggs, 2005),
//              under a square root
// and a column of ones.
#ifndef SORDINO_CONVEX_TESTING_IMAGE_TABLE_H_
#define SORDINO_CONVEX_TESTING_IMAGE_TABLE_H_

#include <ATen/Functions.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numbers>
#include <string>
#include <vector>

#include "sordino/data/idx_reader.h"

namespace sordino {

enum class ImageFeatures : std::uint8_t { kPixels, kGradients };

struct ImageTable {
  at::Tensor features;
  at::Tensor labels;
};

// [n, 28, 28] to [n, 9 * 49].
inline at::Tensor OrientedGradients(const at::Tensor& pixels) {
  constexpr int kDirections = 8;
  const at::Tensor padded = at::constant_pad_nd(pixels, {1, 1, 1, 1});
  const at::Tensor rows = padded.narrow(1, 1, 28);
  const at::Tensor columns = padded.narrow(2, 1, 28);
  const at::Tensor dx = rows.narrow(2, 2, 28).sub(rows.narrow(2, 0, 28));
  const at::Tensor dy = columns.narrow(1, 2, 28).sub(columns.narrow(1, 0, 28));
  std::vector<at::Tensor> maps = {pixels};
  for (int k = 0; k < kDirections; ++k) {
    const double angle = 2 * std::numbers::pi * k / kDirections;
    // The share of the difference along this direction beyond that of its neighbours.
    const at::Tensor along = dx.mul(std::cos(angle)).add_(dy, std::sin(angle)).clamp_min_(0);
    const at::Tensor strength = dx.square().add_(dy.square()).sqrt_();
    maps.push_back(along.sub_(strength, 0.5).clamp_min_(0).mul_(2));
  }
  const at::Tensor pooled = at::avg_pool2d(at::stack(maps, 1), {4, 4});
  return pooled.reshape({pixels.size(0), std::int64_t{kDirections + 1} * 49}).sqrt_();
}

// `part`: "train" or "t10k".
inline ImageTable ReadImageTable(const std::filesystem::path& folder, const std::string& part,
                                 ImageFeatures features) {
  const at::Tensor images = ReadIdx(folder / (part + "-images-idx3-ubyte.gz"));
  const at::Tensor pixels = images.to(at::kFloat).div_(255).reshape({images.size(0), 28, 28});
  at::Tensor x = features == ImageFeatures::kPixels ? pixels.reshape({pixels.size(0), 784})
                                                    : OrientedGradients(pixels);
  x = at::cat({x.to(at::kDouble), at::ones({x.size(0), 1}, at::kDouble)}, 1);
  return {x, ReadIdx(folder / (part + "-labels-idx1-ubyte.gz")).to(at::kLong)};
}

}  // namespace sordino

#endif  // SORDINO_CONVEX_TESTING_IMAGE_TABLE_H_
