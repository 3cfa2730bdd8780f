// Which unit owns each row of a gradient, from backward passes with weighted losses (ownership.h).
#ifndef SORDINO_GRADIENTS_INTERNAL_GRAPH_ROW_OWNERS_H_
#define SORDINO_GRADIENTS_INTERNAL_GRAPH_ROW_OWNERS_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sordino/kernels/example_layout.h"

namespace sordino {

constexpr std::int64_t kUnknownOwner = -1;  // a row that is zero, or not finite
constexpr std::int64_t kMixedOwner = -2;    // a row that several units, or none, may have made

// The weights of one probe: pass p multiplies unit u by 2^exponent[p][u].
struct UnitCode {
  // Digits are given to units in a random order, so that no structure of a model can agree with
  // them twice.
  UnitCode(std::int64_t units, bool narrow_exponent);

  at::Tensor Weights(std::size_t pass, const at::Tensor& losses) const;

  std::vector<std::vector<std::int64_t>> exponent;
  std::int64_t levels;
  std::vector<std::int64_t> unit_of;  // of the digits read as a number, or kMixedOwner
};

// How rows are computed and read.
struct RowArithmetic {
  bool fixed_order = true;  // the same bits in each pass, but for the weights
  bool on_device = false;   // read by operations of libtorch, not by a loop

  static RowArithmetic Of(const at::Tensor& rows) { return {rows.is_cpu(), !rows.is_cpu()}; }
};

// The unit that owns each row of [rows, features]: `plain` without weights, `weighted` under those
// of each pass.
std::vector<std::int64_t> RowOwners(const UnitCode& code, const at::Tensor& plain,
                                    const std::vector<at::Tensor>& weighted,
                                    const RowArithmetic& arithmetic);

struct LayoutFit {
  std::optional<ExampleLayout> layout;  // nothing: the rows are in the order of none
  bool unique = true;                   // no other layout fits what was seen
};

// Kernels of a GPU that add in no fixed order leave rounding errors in rows that are small or zero,
// such as those of the first query of causal attention: errors of the size that other rows of the
// unit have, and of another value in each pass. Where rows do not fit there, those above a quarter
// of the largest tell the layout. All rows are then held to the weights of their unit in it, with
// the tolerance of the largest row of the unit.
LayoutFit FitRows(const UnitCode& code, const at::Tensor& plain,
                  const std::vector<at::Tensor>& weighted, std::int64_t units,
                  const RowArithmetic& arithmetic);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_GRAPH_ROW_OWNERS_H_
