// What clipping does to the tangent kernel, and so to the descent of the loss.
//
// With outputs f of n examples, losses L_i(f_i), l = d(sum L_i)/df [K n] and the tangent kernel
// H = sum_r H_r of the layers r (gradients/tangent_kernel.h), a step of length eta along the mean
// of the clipped gradients moves the outputs by -(eta / n) M l and the mean loss by
//
//     -(eta / n^2) l^T M l + O(eta^2),      M = sum_r H_r C_r,
//
// where C_r is the diagonal of the factors that layer r of the examples is multiplied by (Bu, Wang,
// Long, Shen, arXiv 2106.07830):
//
//   none               1
//   local-flat         min(1, C / |g_i|): M = H C
//   local-layerwise    min(1, C_r / |g_ir|), C_r = C / sqrt(layers)
//   global-flat        min(1, C / max_j |g_j|), the same for all examples: M = c H
//   global-layerwise   min(1, C_r / max_j |g_jr|), the same in each layer: M = sum_r c_r H_r
//
// Norms need no further pass: |g_ir|^2 = l_i^T H_r[i, i] l_i.
//
// For a positive definite H, M is symmetric and positive definite where the factors are the same
// for all examples. H C of local flat clipping is similar to C^(1/2) H C^(1/2): its eigenvalues are
// positive, but it is not symmetric and its quadratic form may be negative, so that the loss may
// rise for a while. A sum of H_r C_r has neither property. clipped_kernel_test.cc finds a
// counterexample for each "no".
//
// A kernel is computed without noise: for public data only.
#ifndef SORDINO_CLIPPING_CLIPPED_KERNEL_H_
#define SORDINO_CLIPPING_CLIPPED_KERNEL_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/loss_function.h"

namespace sordino {

// The five names above, in their order.
std::span<const std::string_view> KernelClippings();

struct ClippedKernel {
  std::string_view clipping;
  at::Tensor factors;        // [layers, n], float64
  double asymmetry = 0;      // largest |M - M^T| over the largest |M|
  double least_form = 0;     // least eigenvalue of (M + M^T) / 2
  double largest_form = 0;   // and the largest
  double least_real = 0;     // least real part of the eigenvalues of M
  double decrease_rate = 0;  // l^T M l / n^2: predicted decrease of the mean loss over eta

  // Up to this share of the largest entry or eigenvalue is taken for rounding.
  static constexpr double kTolerance = 1e-9;
  bool IsSymmetric() const { return asymmetry <= kTolerance; }
  bool HasPositiveForm() const { return least_form >= -kTolerance * largest_form; }
  bool HasPositiveEigenvalues() const { return least_real >= -kTolerance * largest_form; }
};

// `layers` are the H_r, float64 [K n, K n]; `loss_gradients` is l as [K, n]. Throws Error for a
// name that is not one of the five, and for shapes that do not fit.
ClippedKernel ClipKernel(std::string_view clipping, const std::vector<at::Tensor>& layers,
                         const at::Tensor& loss_gradients, ClipNorm clip);

// How much the mean loss falls in a step of length eta along the mean of the gradients with these
// factors; `layer_of` is the layer of each parameter (gradients/clipping_groups.h). The parameters
// are as before afterwards.
double MeasuredDecrease(const std::vector<NamedParameter>& parameters,
                        const std::vector<std::int64_t>& layer_of, const LossFunction& loss,
                        const Batch& batch, const at::Tensor& factors, double eta);

}  // namespace sordino

#endif  // SORDINO_CLIPPING_CLIPPED_KERNEL_H_
