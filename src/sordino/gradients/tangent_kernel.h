// The tangent kernel of a model on a batch: how much a step along the gradient of one output moves
// another.
//
// For outputs f_k(x_i; w), k = 1 ... K, of n examples the kernel is H = J J^T with the Jacobian J
// [K n, parameters] (Jacot, Gabriel and Hongler, arXiv 1806.07572), and it is the sum of the
// kernels H_r of the layers. Row k n + i is output k of example i.
//
// The Jacobian is never held. Each output is one backward pass whose gradients per example are kept
// as terms (docs/gradients.md): rows of inputs and of output gradients. Where an example has one
// row, its products are products of Gram matrices,
//
//     <a_i b_i^T, a_j b_j^T> = <a_i, a_j> <b_i, b_j>,
//
// and the inputs, which are the same for every output, have one of n x n. Everything else is
// written out for some examples at a time, kTangentBlockBytes of them twice, and multiplied.
//
// A kernel is computed from records without noise: it is for public data.
#ifndef SORDINO_GRADIENTS_TANGENT_KERNEL_H_
#define SORDINO_GRADIENTS_TANGENT_KERNEL_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sordino/gradients/loss_function.h"

namespace sordino {

// What the model computes for each example, [examples, K].
using OutputFunction = std::function<at::Tensor(const Batch&)>;

inline constexpr std::int64_t kTangentBlockBytes = std::int64_t{8} << 20;

class TangentKernel {
 public:
  // Runs the model K times. Throws Error for fewer than two examples, for outputs of another shape,
  // and for a model that mixes examples or draws random numbers.
  TangentKernel(std::vector<NamedParameter> parameters, const OutputFunction& outputs,
                const Batch& batch);
  ~TangentKernel();
  TangentKernel(TangentKernel&&) noexcept;
  TangentKernel& operator=(TangentKernel&&) noexcept;

  std::int64_t examples() const;
  // f, [K, examples], without a gradient.
  const at::Tensor& outputs() const;
  // Layers as clipping_groups.h has them.
  const std::vector<std::string>& layers() const;

  // H_r and H, [K n, K n], symmetric to the last bit, in the type of the parameters (float32 for
  // half precision). Computed when they are asked for: products are in that type.
  at::Tensor Layer(std::size_t layer) const;
  at::Tensor Whole() const;
  // Rows [begin, end) of H_r and its columns [0, end), all that a symmetric matrix needs: for
  // kernels that are too large to hold one for each layer. Throws Error for rows that there are
  // not.
  at::Tensor LayerRows(std::size_t layer, std::int64_t begin, std::int64_t end) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_TANGENT_KERNEL_H_
