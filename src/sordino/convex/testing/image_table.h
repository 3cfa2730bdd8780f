// Images as a table for convex learning, for benchmarks: pixels in [0, 1] and a column of ones, or
// pooled scattering coefficients.
#ifndef SORDINO_CONVEX_TESTING_IMAGE_TABLE_H_
#define SORDINO_CONVEX_TESTING_IMAGE_TABLE_H_

#include <ATen/Functions.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "sordino/convex/problem.h"
#include "sordino/data/idx_reader.h"
#include "sordino/models/model.h"

namespace sordino {

struct ImageTable {
  at::Tensor features;
  at::Tensor labels;
};

// What is public about the features: fixed maps of one image, nothing of which was fitted.
enum class ImageFeatures : std::uint8_t { kPixels, kScattering };

// 81 channels of wavelet scattering on 7 x 7 places, averaged over 3 x 3 regions.
inline at::Tensor ScatteringFeatures(const at::Tensor& pixels) {
  const auto model = MakeModel("scatternet-linear", {.input = {1, 28, 28}, .classes = 10}, {},
                               c10::Device(c10::kCPU));
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < pixels.size(0); begin += 1000) {
    const std::int64_t count = std::min<std::int64_t>(1000, pixels.size(0) - begin);
    const at::Tensor maps = model->Features(pixels.narrow(0, begin, count).unsqueeze(1));
    parts.push_back(
        at::adaptive_avg_pool2d(maps.reshape({count, 81, 7, 7}), {3, 3}).reshape({count, 729}));
  }
  return at::cat(parts);
}

// `part`: "train" or "t10k".
inline ImageTable ReadImageTable(const std::filesystem::path& folder, const std::string& part,
                                 ImageFeatures features) {
  const at::Tensor images = ReadIdx(folder / (part + "-images-idx3-ubyte.gz"));
  const at::Tensor pixels = images.to(at::kFloat).div_(255);
  at::Tensor x = features == ImageFeatures::kPixels ? pixels.reshape({pixels.size(0), 784})
                                                    : ScatteringFeatures(pixels);
  x = at::cat({x.to(at::kDouble), at::ones({x.size(0), 1}, at::kDouble)}, 1);
  return {x, ReadIdx(folder / (part + "-labels-idx1-ubyte.gz")).to(at::kLong)};
}

}  // namespace sordino

#endif  // SORDINO_CONVEX_TESTING_IMAGE_TABLE_H_
