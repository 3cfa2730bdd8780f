#include "sordino/data/augmentation.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// The finaliser of splitmix64 (Steele, Lea, Flood, 2014): a bijection that mixes all bits.
std::uint64_t Mixed(std::uint64_t bits) {
  bits += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

struct Change {
  bool flip;
  std::int64_t down;
  std::int64_t right;
};

// A counter instead of a state: what happens to a copy depends on its place only.
Change ChangeOf(const AugmentationOptions& options, std::uint64_t seed, std::uint64_t example,
                std::uint64_t copy) {
  const std::uint64_t first = Mixed(Mixed(Mixed(seed) + example) + copy);
  const std::uint64_t second = Mixed(first);
  const auto offset = [&](std::uint64_t bits) {
    const auto places = static_cast<std::uint64_t>(2 * options.shift + 1);
    return static_cast<std::int64_t>((bits & 0xffffffff) * places >> 32) - options.shift;
  };
  return {.flip = options.flip && (first >> 63) != 0,
          .down = offset(second),
          .right = offset(second >> 32)};
}

// ... 2 1 | 0 1 2 ... n-1 | n-2 n-3 ...
std::int64_t Reflected(std::int64_t place, std::int64_t size) {
  if (place < 0) return -place;
  return place < size ? place : 2 * (size - 1) - place;
}

// Where each pixel of a row comes from.
void FillColumns(const Change& change, std::vector<std::int64_t>& columns) {
  const auto width = static_cast<std::int64_t>(columns.size());
  for (std::int64_t x = 0; x < width; ++x) {
    columns[static_cast<std::size_t>(x)] = Reflected(x - change.right, width);
  }
  if (change.flip) std::reverse(columns.begin(), columns.end());
}

}  // namespace

void CheckAugmentation(const AugmentationOptions& options, std::int64_t height,
                       std::int64_t width) {
  const std::int64_t largest = std::max<std::int64_t>(std::min(height, width) - 1, 0);
  if (options.shift < 0 || options.shift > largest) {
    throw Error(fmt::format(
        "images of {} by {} pixels were to be shifted by up to {} pixels; give a whole number from "
        "0 to {}.",
        height, width, options.shift, largest));
  }
  constexpr std::int64_t kMaxMultiplicity = 1 << 16;
  if (options.multiplicity < 1 || options.multiplicity > kMaxMultiplicity) {
    throw Error(fmt::format(
        "{} augmented copies of an example were asked for; give a whole number from 1 to {}.",
        options.multiplicity, kMaxMultiplicity));
  }
}

at::Tensor Augment(const at::Tensor& images, const AugmentationOptions& options,
                   std::uint64_t seed) {
  if (images.dim() != 4 || images.scalar_type() != at::kByte || !images.is_cpu()) {
    throw Error(fmt::format(
        "only images in memory can be augmented, as bytes of four dimensions (images, channels, "
        "height, width); these have {} dimensions of type {}.",
        images.dim(), c10::toString(images.scalar_type())));
  }
  const std::int64_t examples = images.size(0);
  const std::int64_t channels = images.size(1);
  const std::int64_t height = images.size(2);
  const std::int64_t width = images.size(3);
  CheckAugmentation(options, height, width);
  if (!options.Changes()) return images;

  const std::int64_t copies = options.multiplicity;
  at::Tensor result = copies > 1 ? at::empty({examples, copies, channels, height, width}, at::kByte)
                                 : at::empty({examples, channels, height, width}, at::kByte);
  const at::Tensor source = images.contiguous();
  const std::int64_t pixels = channels * height * width;
  std::uint8_t* out = result.mutable_data_ptr<std::uint8_t>();
  std::vector<std::int64_t> columns(static_cast<std::size_t>(width));
  for (std::int64_t example = 0; example < examples; ++example) {
    const std::uint8_t* image = source.const_data_ptr<std::uint8_t>() + example * pixels;
    for (std::int64_t copy = 0; copy < copies; ++copy) {
      const Change change = ChangeOf(options, seed, static_cast<std::uint64_t>(example),
                                     static_cast<std::uint64_t>(copy));
      FillColumns(change, columns);
      const bool whole_rows = !change.flip && change.right == 0;
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        for (std::int64_t y = 0; y < height; ++y, out += width) {
          const std::uint8_t* row =
              image + (channel * height + Reflected(y - change.down, height)) * width;
          if (whole_rows) {
            std::memcpy(out, row, static_cast<std::size_t>(width));
          } else {
            for (std::int64_t x = 0; x < width; ++x) {
              out[x] = row[columns[static_cast<std::size_t>(x)]];
            }
          }
        }
      }
    }
  }
  return result;
}

}  // namespace sordino
