// From the bytes of an array in a file to a tensor; shared by the IDX and NPY readers.
#ifndef SORDINO_DATA_INTERNAL_ARRAY_BYTES_H_
#define SORDINO_DATA_INTERNAL_ARRAY_BYTES_H_

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sordino::internal {

// Bytes of an array of this shape, or nothing when they cannot be counted. A length of 0 does not
// excuse the others: libtorch multiplies them for the strides.
inline std::optional<std::uint64_t> ArrayBytes(std::span<const std::int64_t> shape,
                                               std::uint64_t item) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::uint64_t nonzero = item;
  bool empty = false;
  for (const std::int64_t length : shape) {
    if (length < 0) return std::nullopt;
    empty = empty || length == 0;
    const auto factor = static_cast<std::uint64_t>(std::max<std::int64_t>(length, 1));
    if (nonzero > kMost / factor) return std::nullopt;
    nonzero *= factor;
  }
  return empty ? 0 : nonzero;
}

// Copies bytes.size() = ArrayBytes(shape, ...) bytes; `swap` when the file has the other byte order
// than the machine.
inline at::Tensor TensorFromBytes(std::span<const std::byte> bytes, at::ScalarType type,
                                  const std::vector<std::int64_t>& shape, bool swap) {
  at::Tensor values = at::empty(shape, type);
  if (bytes.empty()) return values;
  auto* const to = static_cast<std::byte*>(values.data_ptr());
  std::memcpy(to, bytes.data(), bytes.size());
  const std::size_t width = values.element_size();
  if (swap && width > 1) {
    for (std::size_t at = 0; at < bytes.size(); at += width) std::reverse(to + at, to + at + width);
  }
  return values;
}

// "[60000, 28, 28]"
inline std::string ShapeText(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t length : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(length);
  }
  return text + "]";
}

}  // namespace sordino::internal

#endif  // SORDINO_DATA_INTERNAL_ARRAY_BYTES_H_
