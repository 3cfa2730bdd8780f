// What one use of a parameter contributes to the gradients of the examples, in a form that norms
// and weighted sums can be taken of without writing every example's gradient to memory.
//
// w is the tensor that enters the operation (a parameter, or a view of one); g_i is the gradient of
// example i's loss with respect to w through this use:
//
//   kOuter         g_i = sum over the rows r of example i of a_r b_r^T         w [p, q]
//   kRows          g_i = sum over the rows r of example i of b_r               w [q]
//   kLookup        g_i = sum over the rows r of example i of e(index_r) b_r^T  w [vocabulary, q]
//   kConvolution   see convolution_gradients.h
//   kDirect        g_i is row i of b                                           w of any shape
//
// Products and sums are in float64 for float64 models and else in float32 at least; norms in
// float64 throughout.
#ifndef SORDINO_GRADIENTS_INTERNAL_TERMS_TERM_H_
#define SORDINO_GRADIENTS_INTERNAL_TERMS_TERM_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "sordino/gradients/internal/convolution/convolution_gradients.h"
#include "sordino/kernels/example_layout.h"

namespace sordino {

enum class TermKind : std::uint8_t { kOuter, kRows, kLookup, kConvolution, kDirect };

// Whether kernels of our own take the norms and the sum of a term, and with which products
// (device/fused_product.h).
enum class FusedUse : std::uint8_t { kNone, kFloat32, kTf32 };

struct Term {
  TermKind kind = TermKind::kDirect;
  at::Tensor a = {};  // kOuter [rows, p]; kLookup: the indices [rows]; kConvolution: the input
  at::Tensor b = {};  // [rows, q]; kConvolution: the output gradient; kDirect [examples, w.numel()]
  ExampleLayout layout = {};
  std::vector<std::int64_t> sizes = {};  // of w
  Convolution convolution = {};
  std::int64_t padding_index = -1;  // kLookup: this row of w has no gradient
  at::Tensor owners = {};           // kLookup: the example of each row, where it has no layout
  FusedUse fused = FusedUse::kNone;
  // kOuter: lookups of w, whose rows count to the same gradients (tied_term.h); else null.
  std::shared_ptr<const Term> lookup = nullptr;
};

// The most float32 products over rows that are added up in float32; beyond, sums are in float64.
inline constexpr int kMaxBlocks = 2;

// How long float32 sums over several examples may be (rounding.h).
struct SumAccuracy {
  // Rows of a float32 product, of which at most kMaxBlocks are added up; 0 has all sums in
  // float64. Products over the rows of one example alone are not counted: what they round to
  // depends on that example only.
  std::int64_t rows_per_sum = 256;
  // Results are float64 whatever the type of the values, and the sum over the rows of an example is
  // finished before it is added to others.
  bool wide = false;
};

// How the norms of a term are found.
enum class NormForm : std::uint8_t {
  kKeep,     // materialise the gradients of all examples and keep them for the sum
  kDiscard,  // materialise them a few at a time for their norms only
  kGram,     // from Gram matrices of the rows (for one row: the product of two norms)
  kFused,    // materialise them in tiles that never leave the processors of a GPU, once for the
             // norms and once, with the same bits, for the sum
};

// Terms of one tensor w of the same kind (and the same examples), written after each other.
Term Stack(const std::vector<Term>& terms);

// Factors of examples in the types that sums want them in.
class ExampleFactors {
 public:
  // `float32`: the same numbers, rounded, where somebody has them.
  ExampleFactors(const at::Tensor& factors, bool all_finite, at::Tensor float32 = {});

  // In the type of `values`.
  const at::Tensor& InTypeOf(const at::Tensor& values) const;
  // [examples]: the factor is 0.
  const at::Tensor& None() const;

  at::Tensor float64;  // [examples]
  // No example needs the care that a factor of 0 wins over infinities and NaN.
  bool all_finite = false;

 private:
  // Made when they are asked for.
  mutable at::Tensor float32_;
  mutable at::Tensor none_;
};

// The gradients of examples [begin, end), [end - begin, w.numel()].
at::Tensor Materialise(const Term& term, std::int64_t begin, std::int64_t end);

// Adds the squared norms of all examples to `squared` [examples], float64. When the form is kKeep,
// the gradients come back for WeightedSum of a kDirect term; else the result is undefined.
at::Tensor AddSquaredNorms(const Term& term, NormForm form, const at::Tensor& squared);

// Features of a float32 Gram matrix; those of wider rows are added up in float64, because rows that
// cancel leave nothing but its rounding.
inline constexpr std::int64_t kFeaturesPerGram = 512;

// The same for a kOuter term from Gram matrices, without its lookups. At least 0: rounding may
// leave a tiny negative number where the rows cancel.
void AddOuterSquaredNorms(const Term& term, const at::Tensor& squared);

// sum_i factors[i] g_i in the sizes of w, in the type of its values (float32 at least), or in
// float64 (SumAccuracy). An example of factor 0 contributes nothing, whatever its values.
at::Tensor WeightedSum(const Term& term, const ExampleFactors& factors,
                       const SumAccuracy& accuracy);

// left^T right for matrices with one row for each example, [p, q], in float32 products as short as
// the accuracy wants them.
at::Tensor ProductOfRows(const at::Tensor& left, const at::Tensor& right,
                         const SumAccuracy& accuracy);

// The same for a kOuter term as [q, p]: what a parameter wants that entered transposed.
at::Tensor TransposedWeightedSum(const Term& term, const ExampleFactors& factors,
                                 const SumAccuracy& accuracy);

// For devices where every operation costs a launch: the gradients [examples, w.numel()] of a term
// that has them at hand or keeps them, and an undefined tensor for others; norms are taken later,
// of many terms at once.
at::Tensor GradientsToKeep(const Term& term, NormForm form);

// For each example, a bound on sum_r |a_r| |b_r|: how much larger the terms of its gradient are
// than the gradient, which bounds what rounding can do to a gradient that is not kept but computed
// again for the sum. Infinite where rows are beyond kMaxRowsNorm (rounding.h). For kOuter and
// kConvolution terms.
at::Tensor AbsoluteMass(const Term& term);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_TERMS_TERM_H_
