#include "sordino/training/internal/ordinary_gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "sordino/base/error.h"
#include "sordino/gradients/fixed_point_sum.h"

namespace sordino {
namespace {

constexpr int kSumBits = 62;          // a sum is below 2^62 steps
constexpr int kLeastExponent = -900;  // steps are no denormal numbers

// The largest absolute value on any rank.
double LargestOfAll(const at::Tensor& values, Communicator& communicator) {
  const double own = values.numel() == 0 ? 0 : values.abs().max().item<double>();
  double largest = 0;
  for (const std::string& text : communicator.AllGatherBytes(fmt::format("{:a}", own))) {
    const double value = std::stod(text);
    if (!std::isfinite(value)) {
      throw Error(
          "a gradient is not finite, so there is no model to train; give a smaller learning rate.");
    }
    largest = std::max(largest, value);
  }
  return largest;
}

}  // namespace

std::vector<at::Tensor> OrdinaryGradients(const LossFunction& losses, const Batch& batch,
                                          const std::vector<NamedParameter>& parameters,
                                          std::int64_t divisor, std::int64_t part) {
  const std::int64_t examples = Examples(batch);
  const std::int64_t width = part > 0 ? part : std::max<std::int64_t>(examples, 1);
  std::vector<at::Tensor> values;
  values.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) values.push_back(parameter.value);
  std::vector<at::Tensor> sum(values.size());
  for (std::int64_t begin = 0; begin < examples; begin += width) {
    const Batch slice = Slice(batch, begin, std::min(examples, begin + width));
    const at::Tensor loss = losses(slice).sum().div(static_cast<double>(divisor));
    const auto gradients = torch::autograd::grad({loss}, values, {}, std::nullopt, false, true);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const at::Tensor& g = gradients[i];
      if (!g.defined()) continue;
      sum[i] = sum[i].defined() ? sum[i].add(g) : g;
    }
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!sum[i].defined()) sum[i] = at::zeros_like(values[i]);
  }
  return sum;
}

at::Tensor ShardOfSum(const std::vector<at::Tensor>& gradients, Communicator& communicator) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> rows;
  rows.reserve(gradients.size());
  for (const at::Tensor& gradient : gradients) rows.push_back(gradient.detach().reshape({-1}));
  const at::Tensor computed = at::cat(rows);
  const at::Tensor own = computed.to(communicator.DeviceFor(computed.device()));
  const int ranks = communicator.Size();
  int exponent = 0;
  std::frexp(LargestOfAll(own, communicator) * ranks, &exponent);
  const double step = std::ldexp(1.0, std::max(exponent - kSumBits, kLeastExponent));
  const std::int64_t size = ShardSize(own.numel(), ranks);
  const auto whole = own.options().dtype(at::kLong);
  at::Tensor steps = at::zeros({size * ranks}, whole);
  steps.narrow(0, 0, own.numel()).copy_(own.to(at::kDouble).div_(step).round_());
  at::Tensor shard = at::empty({size}, whole);
  communicator.ReduceScatterSum(steps, shard);
  return shard.to(at::kCPU, at::kDouble).mul_(step).to(own.scalar_type());
}

}  // namespace sordino
