#include "sordino/gradients/example_loop.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstddef>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/internal/isolation/isolation.h"

namespace sordino {
namespace {

at::ScalarType SumType(const at::Tensor& parameter) {
  return parameter.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

std::int64_t GroupCount(const std::vector<std::int64_t>& groups) {
  std::int64_t count = 0;
  for (const std::int64_t group : groups) {
    SORDINO_CHECK(group >= 0, "a parameter has no clipping group");
    count = std::max(count, group + 1);
  }
  return count;
}

at::Device DeviceOf(const Batch& batch, const std::vector<NamedParameter>& parameters) {
  return parameters.empty() ? batch.at(0).device() : parameters[0].value.device();
}

// (g - centre) / scale in float64, for each parameter.
std::vector<at::Tensor> Transformed(const std::vector<at::Tensor>& gradient, double weight,
                                    const CoordinateTransform* transform) {
  std::vector<at::Tensor> result;
  result.reserve(gradient.size());
  for (std::size_t p = 0; p < gradient.size(); ++p) {
    at::Tensor value = gradient[p].to(at::kDouble) * weight;
    if (transform != nullptr) {
      value = (value - transform->centre[p].to(at::kDouble)) / transform->scale[p].to(at::kDouble);
    }
    result.push_back(std::move(value));
  }
  return result;
}

// Norms by group, [groups, 1].
at::Tensor NormsOf(const std::vector<at::Tensor>& gradient, const std::vector<std::int64_t>& groups,
                   std::int64_t group_count, at::Device device) {
  at::Tensor squared = at::zeros({group_count, 1}, at::dtype(at::kDouble).device(device));
  for (std::size_t p = 0; p < gradient.size(); ++p) {
    squared.select(0, groups[p]).add_(gradient[p].square().sum());
  }
  return squared.sqrt_();
}

}  // namespace

void CheckLosses(const at::Tensor& losses, std::int64_t examples) {
  if (!losses.defined()) {
    throw Error("the loss function returned an undefined tensor; return one loss an example.");
  }
  if (losses.dim() != 1 || losses.size(0) != examples) {
    throw Error(c10::str(
        "the loss has shape ", losses.sizes(), " for a batch of ", examples,
        " examples and must have one entry for each, shape [", examples,
        "]; compute it with reduction none and average over any other dimension of an example."));
  }
  if (!at::isFloatingType(losses.scalar_type())) {
    throw Error(c10::str("The loss has type ", losses.scalar_type(),
                         " and must be of a floating-point type to have a gradient; convert it."));
  }
}

std::vector<at::Tensor> GradientOfExamples(const LossFunction& loss, const Batch& slice,
                                           const std::vector<NamedParameter>& parameters) {
  const std::int64_t examples = Examples(slice);
  std::vector<at::Tensor> inputs;
  inputs.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) inputs.push_back(parameter.value);

  std::vector<at::Tensor> gradients(inputs.size());
  if (examples > 0) {
    const at::AutoGradMode grad_mode(true);
    const at::Tensor losses = IsolatedLosses(loss, slice, 1);
    // The weight 1 for each loss, and the division below, keep a half-precision backward pass from
    // starting at 1 / examples.
    if (losses.requires_grad() && !inputs.empty()) {
      gradients = torch::autograd::grad({losses}, inputs, {at::ones_like(losses)},
                                        /*retain_graph=*/false, /*create_graph=*/false,
                                        /*allow_unused=*/true);
    }
  }
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    const auto options = inputs[p].options().dtype(SumType(inputs[p]));
    if (!gradients[p].defined()) {
      gradients[p] = at::zeros(inputs[p].sizes(), options);
      continue;
    }
    if (gradients[p].is_sparse()) gradients[p] = gradients[p].to_dense();
    gradients[p] = gradients[p].detach().to(options.dtype());
    if (examples > 1) gradients[p] = gradients[p] / static_cast<double>(examples);
  }
  return gradients;
}

LoopResult LoopClippedSum(const LossFunction& loss, const Batch& batch,
                          const std::vector<NamedParameter>& parameters,
                          const ClippingPolicy& policy, std::int64_t micro_batch, bool wide) {
  if (micro_batch < 1) {
    throw Error(c10::str("A micro-batch holds at least 1 example, not ", micro_batch, "."));
  }
  const std::int64_t examples = Examples(batch);
  const std::vector<std::int64_t> groups = policy.Groups(parameters);
  SORDINO_CHECK(groups.size() == parameters.size(), "a parameter has no clipping group");
  const std::int64_t group_count = GroupCount(groups);
  const at::Device device = DeviceOf(batch, parameters);
  const at::NoGradGuard no_grad;

  std::vector<at::Tensor> sums;
  sums.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) {
    sums.push_back(
        at::zeros(parameter.value.sizes(), parameter.value.options().dtype(at::kDouble)));
  }
  const at::Tensor none = at::zeros({group_count, 0}, at::dtype(at::kDouble).device(device));
  std::vector<at::Tensor> norms{none};
  std::vector<at::Tensor> factors{none};
  for (std::int64_t begin = 0; begin < examples; begin += micro_batch) {
    const std::int64_t end = std::min(begin + micro_batch, examples);
    const double weight = static_cast<double>(end - begin) / static_cast<double>(micro_batch);
    const std::vector<at::Tensor> gradient = Transformed(
        GradientOfExamples(loss, Slice(batch, begin, end), parameters), weight, policy.transform());
    norms.push_back(NormsOf(gradient, groups, group_count, device));
    const bool finite = at::isfinite(norms.back()).all().item<bool>();
    factors.push_back(finite ? policy.Factors(norms.back()).to(at::kDouble)
                             : at::zeros_like(norms.back()));
    if (!finite) continue;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      sums[p].add_(gradient[p] * factors.back()[groups[p]][0]);
    }
  }

  LoopResult result;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    result.sum.push_back(wide ? sums[p] : sums[p].to(SumType(parameters[p].value)));
  }
  result.norms = at::cat(norms, 1);
  result.factors = at::cat(factors, 1);
  return result;
}

}  // namespace sordino
