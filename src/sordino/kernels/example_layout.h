// Which rows of an operation belong to which example.
//
// The rows of an operation (its output without the feature dimensions, flattened) lie in the
// order [outer, example, inner]: a linear layer on [B, T, D] has outer 1 and inner T, a recurrent
// step outer T and inner 1. Row r belongs to example (r / inner) % examples.
#ifndef SORDINO_KERNELS_EXAMPLE_LAYOUT_H_
#define SORDINO_KERNELS_EXAMPLE_LAYOUT_H_

#include <cstdint>

namespace sordino {

struct ExampleLayout {
  std::int64_t outer = 1;
  std::int64_t examples = 0;
  std::int64_t inner = 1;

  std::int64_t rows() const { return outer * examples * inner; }
  std::int64_t rows_per_example() const { return outer * inner; }
  friend bool operator==(const ExampleLayout&, const ExampleLayout&) = default;
};

}  // namespace sordino

#endif  // SORDINO_KERNELS_EXAMPLE_LAYOUT_H_
