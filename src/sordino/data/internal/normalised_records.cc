#include "sordino/data/internal/normalised_records.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "sordino/base/error.h"

namespace sordino::internal {
namespace {

using Constants = NormalisationConstants;

std::size_t Size(std::int64_t number) { return static_cast<std::size_t>(number); }

// One example; `entries` is its size.
void NormaliseInto(const Constants& constants, const std::uint8_t* pixels, std::int64_t entries,
                   float* out) {
  const std::int64_t channels = static_cast<std::int64_t>(constants.of_pixel.size() / 256);
  const std::int64_t plane = entries / channels;
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    const float* table = constants.of_pixel.data() + channel * 256;
    for (std::int64_t i = 0; i < plane; ++i) out[i] = table[pixels[i]];
    pixels += plane;
    out += plane;
  }
}

void NormaliseInto(const Constants& constants, const float* features, std::int64_t entries,
                   float* out) {
  if (constants.mean.empty()) {
    std::copy_n(features, entries, out);
    return;
  }
  for (std::int64_t i = 0; i < entries; ++i) {
    out[i] = (features[i] - constants.mean[Size(i)]) / constants.deviation[Size(i)];
  }
}

void NormaliseInto(const Constants&, const std::int64_t* tokens, std::int64_t entries,
                   std::int64_t* out) {
  std::copy_n(tokens, entries, out);
}

template <typename In, typename Out>
at::Tensor GatherAs(const Constants& constants, const at::Tensor& stored, const Rows& rows,
                    at::ScalarType type) {
  std::vector<std::int64_t> sizes = stored.sizes().vec();
  sizes[0] = rows.count;
  at::Tensor result = at::empty(sizes, type);
  const std::int64_t entries = rows.count == 0 ? 0 : result.numel() / rows.count;
  const In* from = stored.const_data_ptr<In>();
  Out* out = result.mutable_data_ptr<Out>();
  for (std::int64_t i = 0; i < rows.count; ++i) {
    NormaliseInto(constants, from + rows[i] * entries, entries, out + i * entries);
  }
  return result;
}

// Constants in the shape in which they go with images [..., c, h, w] or features [..., columns].
// From pinned memory, so that nobody waits for the device.
at::Tensor InShapeOf(const at::Tensor& inputs, const std::vector<float>& constants, bool images) {
  const at::Tensor pinned =
      at::empty({static_cast<std::int64_t>(constants.size())},
                at::TensorOptions().dtype(at::kFloat).pinned_memory(inputs.is_cuda()));
  std::copy(constants.begin(), constants.end(), pinned.mutable_data_ptr<float>());
  const at::Tensor column = pinned.to(inputs.device(), /*non_blocking=*/true);
  return images ? column.view({-1, 1, 1}) : column;
}

}  // namespace

at::ScalarType StoredType(InputKind kind) {
  switch (kind) {
    case InputKind::kImage:
      break;
    case InputKind::kFeatures:
      return at::kFloat;
    case InputKind::kTokens:
      return at::kLong;
  }
  return at::kByte;
}

Constants MakeConstants(const DatasetDeclaration& declaration) {
  const Normalisation& given = declaration.normalisation;
  const std::size_t channels =
      declaration.shape.empty() ? 0 : Size(std::max<std::int64_t>(declaration.shape[0], 0));
  Constants constants;
  if (declaration.kind == InputKind::kTokens) return constants;
  const bool image = declaration.kind == InputKind::kImage;
  if (declaration.shape.size() != (image ? 3 : 1) || channels == 0) {
    throw Error(
        fmt::format("the shape that is declared for an example of '{}' has {} dimensions; "
                    "it must be {}.",
                    declaration.name, declaration.shape.size(),
                    image ? "channels, height and width" : "the number of columns"));
  }
  const bool none = given.mean.empty() && given.deviation.empty();
  if (!none && (given.mean.size() != channels || given.deviation.size() != channels)) {
    throw Error(fmt::format(
        "the normalisation of '{}' has {} means and {} deviations; it must have {} of each, one "
        "for each {}, or none.",
        declaration.name, given.mean.size(), given.deviation.size(), channels,
        image ? "channel" : "column"));
  }
  for (const double deviation : given.deviation) {
    if (!(deviation > 0)) {
      throw Error(
          fmt::format("the normalisation of '{}' has the deviation {:g}; each must be more "
                      "than 0.",
                      declaration.name, deviation));
    }
  }
  constants.mean.assign(given.mean.begin(), given.mean.end());
  constants.deviation.assign(given.deviation.begin(), given.deviation.end());
  if (image) {
    for (std::size_t channel = 0; channel < channels; ++channel) {
      for (int pixel = 0; pixel < 256; ++pixel) {
        const double value =
            none ? pixel / 255.0 : (pixel / 255.0 - given.mean[channel]) / given.deviation[channel];
        constants.of_pixel.push_back(static_cast<float>(value));
      }
    }
  }
  return constants;
}

at::Tensor GatherNormalised(const Constants& constants, const at::Tensor& stored,
                            const Rows& rows) {
  if (stored.scalar_type() == at::kByte) {
    return GatherAs<std::uint8_t, float>(constants, stored, rows, at::kFloat);
  }
  if (stored.scalar_type() == at::kFloat) {
    return GatherAs<float, float>(constants, stored, rows, at::kFloat);
  }
  return GatherAs<std::int64_t, std::int64_t>(constants, stored, rows, at::kLong);
}

at::Tensor Gather(const at::Tensor& stored, const Rows& rows, bool pinned) {
  std::vector<std::int64_t> sizes = stored.sizes().vec();
  sizes[0] = rows.count;
  at::Tensor result = at::empty(sizes, stored.options().pinned_memory(pinned));
  if (rows.count == 0) return result;
  const std::size_t bytes = result.nbytes() / Size(rows.count);
  const auto* from = static_cast<const std::byte*>(stored.const_data_ptr());
  auto* out = static_cast<std::byte*>(result.mutable_data_ptr());
  for (std::int64_t i = 0; i < rows.count; ++i) {
    std::memcpy(out + Size(i) * bytes, from + Size(rows[i]) * bytes, bytes);
  }
  return result;
}

at::Tensor NormalisedOnDevice(const Constants& constants, const at::Tensor& stored) {
  if (stored.scalar_type() == at::kLong) return stored;
  const bool images = stored.scalar_type() == at::kByte;
  at::Tensor result = stored.to(at::kFloat, /*non_blocking=*/true, /*copy=*/true);
  if (images) result.div_(255);
  if (!constants.mean.empty()) {
    result.sub_(InShapeOf(result, constants.mean, images));
    result.div_(InShapeOf(result, constants.deviation, images));
  }
  return result;
}

}  // namespace sordino::internal
