// The rows of a term, example by example.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_TERM_ROWS_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_TERM_ROWS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "sordino/gradients/internal/terms/term.h"
#include "sordino/kernels/example_layout.h"
#include "sordino/kernels/row_sums.h"

namespace sordino {

// Entries of the temporaries of a chunk of examples: near the caches on a CPU, and large enough to
// fill a GPU.
std::int64_t ChunkElements(const at::Tensor& tensor);

// Half precision as float32.
inline at::Tensor Wide(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.scalar_type();
  if (at::isComplexType(type)) return tensor;
  return type == at::kFloat || type == at::kDouble ? tensor : tensor.to(at::kFloat);
}

// Rows [rows, n] as [end - begin, rows of an example, n]; no copy where the rows of an example lie
// together or one in each outer block.
at::Tensor ByExample(const at::Tensor& rows, const ExampleLayout& layout, std::int64_t begin,
                     std::int64_t end);

// Sums over the rows of each example, [examples, n]; of a term, those of b. On the CPU, and where a
// GPU has a kernel for it, what they round to depends on the rows of the example alone.
at::Tensor SumOfRows(const at::Tensor& rows, const ExampleLayout& layout);
at::Tensor SumOfRows(const Term& term);

LookupRows AsLookup(const Term& term);
LookupRows OnCpu(LookupRows lookup);

// The example of each row of a lookup.
at::Tensor OwnersOf(const Term& term);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_TERM_ROWS_H_
