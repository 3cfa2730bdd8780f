#include "sordino/gradients/internal/terms/term_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "sordino/kernels/row_operations.h"

namespace sordino {
namespace {

constexpr std::int64_t kChunkElementsCpu = 1 << 21;
constexpr std::int64_t kChunkElementsCuda = 1 << 28;

}  // namespace

std::int64_t ChunkElements(const at::Tensor& tensor) {
  return tensor.is_cpu() ? kChunkElementsCpu : kChunkElementsCuda;
}

at::Tensor ByExample(const at::Tensor& rows, const ExampleLayout& layout, std::int64_t begin,
                     std::int64_t end) {
  const std::int64_t width = rows.size(1);
  const at::Tensor blocks =
      rows.reshape({layout.outer, layout.examples, layout.inner, width}).slice(1, begin, end);
  return blocks.transpose(0, 1).reshape({end - begin, layout.rows_per_example(), width});
}

at::Tensor SumOfRows(const at::Tensor& rows, const ExampleLayout& layout) {
  if (layout.rows_per_example() == 1) return rows;
  if (rows.is_cpu()) return ExampleSums(rows, layout);
  if (HasRowOperations(rows)) return DeviceExampleSums(rows, layout);
  return rows.reshape({layout.outer, layout.examples, layout.inner, -1}).sum(at::IntArrayRef{0, 2});
}

at::Tensor SumOfRows(const Term& term) { return SumOfRows(Wide(term.b), term.layout); }

LookupRows AsLookup(const Term& term) {
  return {.index = term.a,
          .gradient = Wide(term.b),
          .layout = term.layout,
          .owners = term.owners,
          .vocabulary = term.sizes[0],
          .padding_index = term.padding_index};
}

LookupRows OnCpu(LookupRows lookup) {
  lookup.index = lookup.index.cpu();
  lookup.gradient = lookup.gradient.cpu();
  if (lookup.owners.defined()) lookup.owners = lookup.owners.cpu();
  return lookup;
}

at::Tensor OwnersOf(const Term& term) {
  if (term.owners.defined()) return term.owners;
  const at::Tensor row = at::zeros({term.layout.rows()}, term.a.options().dtype(at::kLong));
  return row.add_(1)
      .cumsum(0)
      .sub_(1)
      .div(term.layout.inner, "floor")
      .remainder(term.layout.examples);
}

}  // namespace sordino
