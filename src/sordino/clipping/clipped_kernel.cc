#include "sordino/clipping/clipped_kernel.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/linalg_eigvals.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/real.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/known_name.h"

namespace sordino {
namespace {

constexpr std::array<std::string_view, 5> kKernelClippings = {
    "none", "local-flat", "local-layerwise", "global-flat", "global-layerwise"};

void CheckShapes(const std::vector<at::Tensor>& layers, const at::Tensor& loss_gradients) {
  const bool fits = !layers.empty() && loss_gradients.dim() == 2 &&
                    std::all_of(layers.begin(), layers.end(), [&](const at::Tensor& layer) {
                      return layer.dim() == 2 && layer.size(0) == loss_gradients.numel() &&
                             layer.size(1) == loss_gradients.numel() &&
                             layer.scalar_type() == at::kDouble;
                    });
  if (!fits) {
    throw Error(
        "the kernels of the layers and the gradients of the losses do not fit together; give "
        "float64 kernels [K n, K n] and gradients [K, n].");
  }
}

// |g_ir|, [layers, n].
at::Tensor LayerNorms(const std::vector<at::Tensor>& layers, const at::Tensor& l) {
  const std::int64_t k = l.size(0);
  const std::int64_t n = l.size(1);
  std::vector<at::Tensor> squares;
  for (const at::Tensor& layer : layers) {
    const at::Tensor own = layer.view({k, n, k, n}).diagonal(0, 1, 3);  // [K, K, n]
    squares.push_back(at::einsum("kln,kn,ln->n", {own, l, l}));
  }
  return at::stack(squares).clamp_min(0).sqrt();
}

// min(1, bound / norm), 1 for a norm of 0.
at::Tensor BoundFactors(const at::Tensor& norms, double bound) {
  return (bound / norms).clamp_max(1);
}

at::Tensor FactorsOf(std::string_view clipping, const at::Tensor& norms, double clip) {
  if (clipping == "none") return at::ones_like(norms);
  const bool layerwise = clipping.ends_with("layerwise");
  const bool global = clipping.starts_with("global");
  if (layerwise) {
    const double bound = clip / std::sqrt(static_cast<double>(norms.size(0)));
    return BoundFactors(global ? norms.amax(1, true) : norms, bound).expand_as(norms);
  }
  const at::Tensor whole = norms.square().sum(0, true).sqrt();
  return BoundFactors(global ? whole.amax(1, true) : whole, clip).expand_as(norms);
}

at::Tensor ModifiedKernel(const std::vector<at::Tensor>& layers, const at::Tensor& factors,
                          std::int64_t outputs) {
  at::Tensor sum = at::zeros_like(layers.front());
  for (std::size_t r = 0; r < layers.size(); ++r) {
    const at::Tensor columns = factors[static_cast<std::int64_t>(r)].repeat({outputs});
    sum.addcmul_(layers[r], columns.unsqueeze(0));
  }
  return sum;
}

ClippedKernel Clipped(std::string_view clipping, const std::vector<at::Tensor>& layers,
                      const at::Tensor& loss_gradients, ClipNorm clip, at::Tensor& kernel) {
  const std::size_t known = IndexOfName("--clipping", std::string(clipping), kKernelClippings);
  CheckShapes(layers, loss_gradients);
  const at::Tensor l = loss_gradients.to(at::kDouble);
  ClippedKernel result;
  result.clipping = kKernelClippings[known];
  result.factors = FactorsOf(clipping, LayerNorms(layers, l), clip.value()).contiguous();
  kernel = ModifiedKernel(layers, result.factors, l.size(0));
  const at::Tensor flat = l.reshape({-1});
  const auto n = static_cast<double>(l.size(1));
  result.decrease_rate = flat.dot(kernel.mv(flat)).item<double>() / (n * n);
  return result;
}

}  // namespace

std::span<const std::string_view> KernelClippings() { return kKernelClippings; }

ClippedKernel ClipKernel(std::string_view clipping, const std::vector<at::Tensor>& layers,
                         const at::Tensor& loss_gradients, ClipNorm clip) {
  const at::NoGradGuard no_grad;
  at::Tensor kernel;
  ClippedKernel result = Clipped(clipping, layers, loss_gradients, clip, kernel);
  const double largest = kernel.abs().max().item<double>();
  result.asymmetry = largest > 0 ? (kernel - kernel.t()).abs().max().item<double>() / largest : 0;
  const at::Tensor form = at::linalg_eigvalsh((kernel + kernel.t()) / 2);
  result.least_form = form.min().item<double>();
  result.largest_form = form.max().item<double>();
  // The general solver, also where the matrix is symmetric: nothing is assumed.
  result.least_real = at::real(at::linalg_eigvals(kernel)).min().item<double>();
  return result;
}

double MeasuredDecrease(const std::vector<NamedParameter>& parameters,
                        const std::vector<std::int64_t>& layer_of, const LossFunction& loss,
                        const Batch& batch, const at::Tensor& factors, double eta) {
  SORDINO_CHECK(parameters.size() == layer_of.size(), "a layer for each parameter");
  const at::Tensor losses = loss(batch);
  const double before = losses.mean().item<double>();
  std::vector<at::Tensor> kept(parameters.size());
  std::vector<at::Tensor> steps(parameters.size());
  for (std::int64_t r = 0; r < factors.size(0); ++r) {
    std::vector<at::Tensor> chosen;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (layer_of[p] == r) chosen.push_back(parameters[p].value);
    }
    if (chosen.empty()) continue;
    const at::Tensor weighted = (losses * factors[r].to(losses.options())).mean();
    const auto gradients = torch::autograd::grad({weighted}, chosen, {}, true, false, true);
    std::size_t next = 0;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      if (layer_of[p] == r) steps[p] = gradients[next++];
    }
  }
  const at::NoGradGuard no_grad;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    kept[p] = parameters[p].value.detach().clone();
    at::Tensor value = parameters[p].value;
    if (steps[p].defined()) value.sub_(steps[p], eta);
  }
  const double after = loss(batch).mean().item<double>();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    at::Tensor value = parameters[p].value;
    value.copy_(kept[p]);
  }
  return before - after;
}

}  // namespace sordino
