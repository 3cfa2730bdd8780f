#include "sordino/gradients/internal/graph/gradient_check.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <utility>

#include "sordino/gradients/internal/isolation/bfloat16_products.h"
#include "sordino/gradients/internal/isolation/isolation.h"

namespace sordino {
namespace {

// Units that are tried until enough of them have a gradient to compare.
constexpr std::int64_t kMaxTries = 8;

double Norm(const std::vector<at::Tensor>& tensors) {
  double squared = 0;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    squared += at::linalg_vector_norm(tensor, 2, {}, false, at::kDouble).square().item<double>();
  }
  return std::sqrt(squared);
}

at::Tensor DifferenceOf(const at::Tensor& first, const at::Tensor& second) {
  if (!first.defined()) return second;
  return second.defined() ? first.to(at::kDouble) - second : first;
}

// Relative difference that other orders of summation may cause. A model in float64 may compute its
// loss in float32.
double Tolerance(const at::Tensor& parameter, at::ScalarType of_losses) {
  const at::ScalarType own = parameter.scalar_type();
  const at::ScalarType type = isolated::RoundingType(own == at::kDouble ? of_losses : own);
  if (type == at::kDouble) return 1e-8;
  if (type != at::kFloat) return 1e-1;
  return parameter.is_cpu() ? 2e-3 : 2e-2;  // TF32
}

bool IsUsable(double norm) { return std::isfinite(norm) && norm > 0; }

}  // namespace

GradientCheck::GradientCheck(const at::Tensor& losses, std::int64_t units, double loss_weight,
                             const std::vector<NamedParameter>& parameters, std::int64_t wanted)
    : parameters_(parameters),
      tolerance_(Tolerance(parameters.front().value, losses.scalar_type())) {
  // Always the same, so that a model has one verdict.
  std::mt19937_64 engine(20);
  if (units > 1) {
    std::vector<double> weights(static_cast<std::size_t>(units));
    for (double& weight : weights) weight = std::uniform_real_distribution<double>(-1, 1)(engine);
    expected_.push_back(Backward(losses, at::tensor(weights, at::kDouble), loss_weight, false));
  }
  std::int64_t found = 0;
  const std::int64_t tries = std::min(units, kMaxTries);
  for (std::int64_t k = 0; k < tries && found < wanted; ++k) {
    at::Tensor one = at::zeros({units}, at::kDouble);
    one[units - 1 - k * units / tries] = 1;
    expected_.push_back(Backward(losses, one, loss_weight, true));
    if (IsUsable(expected_.back().norm)) ++found;
  }
}

GradientCheck::Expected GradientCheck::Backward(const at::Tensor& losses, const at::Tensor& weights,
                                                double loss_weight, bool alone) const {
  Expected expected;
  expected.weights = weights.to(losses.device());
  expected.alone = alone;
  std::vector<at::Tensor> inputs;
  for (const NamedParameter& parameter : parameters_) inputs.push_back(parameter.value);
  const at::Tensor of_losses =
      (expected.weights * loss_weight).repeat_interleave(losses.numel() / weights.numel());
  expected.gradients = torch::autograd::grad({losses}, inputs, {of_losses.to(losses.options())},
                                             /*retain_graph=*/true, /*create_graph=*/false,
                                             /*allow_unused=*/true);
  for (at::Tensor& gradient : expected.gradients) {
    if (gradient.defined() && gradient.is_sparse()) gradient = gradient.to_dense();
  }
  expected.norm = Norm(expected.gradients);
  return expected;
}

bool GradientCheck::Compare(const PerExamplePass& pass) const {
  bool compared = false;
  for (const Expected& expected : expected_) {
    if (!std::isfinite(expected.norm)) continue;
    CompareOne(pass, expected);
    compared = compared || (expected.alone && expected.norm > 0);
  }
  return compared;
}

void GradientCheck::CompareOne(const PerExamplePass& pass, const Expected& expected) const {
  const at::Tensor factors = expected.weights.unsqueeze(0).expand_as(pass.squared_norms());
  const auto found = pass.WeightedSums({.float64 = factors.contiguous()}, SumAccuracy{});
  bool same = true;
  if (expected.alone) {
    const double norm = (pass.squared_norms() * factors).sum().sqrt().item<double>();
    // Values above the limits of rounding.h count as not finite and contribute nothing.
    if (!std::isfinite(norm)) return;
    same = std::abs(norm - expected.norm) <= tolerance_ * expected.norm + 1e-6;
  }
  std::size_t worst = 0;
  double largest = -1;
  double squared = 0;
  for (std::size_t k = 0; k < found.size(); ++k) {
    const double own = Norm({DifferenceOf(found[k], expected.gradients[k])});
    squared += own * own;
    if (own > largest) worst = k;
    largest = std::max(largest, own);
  }
  // Terms of both signs cancel in a weighted sum, which rounds as they do.
  const double scale =
      expected.alone
          ? expected.norm
          : (pass.squared_norms().sum(0).sqrt() * expected.weights.abs()).sum().item<double>();
  if (!std::isfinite(scale) || !std::isfinite(squared)) return;
  if (same && std::sqrt(squared) <= tolerance_ * scale + 1e-12) return;
  throw DifferentValues(
      "the gradients per example that were read off the graph are not those of ordinary autograd, "
      "most in the parameter '" +
      parameters_[worst].name +
      "': an operation of the model is not handled rightly here; freeze the parameter, or write "
      "the operation in another way.");
}

}  // namespace sordino
