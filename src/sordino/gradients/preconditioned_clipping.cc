#include "sordino/gradients/preconditioned_clipping.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// Squares beyond it, of gradients beyond 1e15, count as it: v stays a finite float32 number.
constexpr double kLargestSquare = 1e30;

}  // namespace

PreconditionedClipping::PreconditionedClipping(const std::vector<NamedParameter>& parameters,
                                               ClipNorm bound,
                                               PreconditionedClippingOptions options)
    : ScaledClipping("preconditioned clipping", parameters, bound), options_(options) {
  CheckRange("the decay of the second moment", options.moment_decay, 0, false, 1, false);
  CheckRange("the floor of the preconditioner", options.floor, 1e-3, false, 1e3, false);
  for (const at::Tensor& like : transform_.scale) moment_.push_back(at::zeros_like(like));
}

std::string PreconditionedClipping::Description() const {
  return "preconditioned clipping at " + FormatNumbers(Bounds());
}

std::vector<ScaledClipping::Tracked> PreconditionedClipping::tracked() const {
  return {{"moment", &moment_}};
}

void PreconditionedClipping::Update(const NoisedGradients& mean) {
  CheckShapes(mean);
  std::vector<at::Tensor> squares;
  for (std::size_t i = 0; i < moment_.size(); ++i) {
    squares.push_back(
        at::mul(transform_.scale[i], mean.value()[i]).square_().clamp_max_(kLargestSquare));
  }
  if (!has_moment_) {
    const at::Tensor first = MeanOf(squares);
    for (at::Tensor& moment : moment_) moment.fill_(first.to(moment.device()));
    has_moment_ = true;
  }
  for (std::size_t i = 0; i < moment_.size(); ++i) {
    moment_[i].mul_(options_.moment_decay).add_(squares[i], 1 - options_.moment_decay);
  }
  SetScale();
}

void PreconditionedClipping::Restore(const std::vector<std::vector<at::Tensor>>& saved) {
  CheckSaved(saved);
  bool has_moment = false;
  for (const at::Tensor& moment : saved[0]) {
    // Averages of values up to the largest exceed it by rounding only.
    const at::Tensor in_range = (moment >= 0).logical_and(moment <= kLargestSquare * (1 + 1e-3));
    if (!in_range.all().item<bool>()) {
      throw Error(
          "the saved second moment of preconditioned clipping has an entry that is negative or not "
          "finite; resume from another checkpoint of the run.");
    }
    has_moment = has_moment || (moment > 0).any().item<bool>();
  }
  for (std::size_t i = 0; i < moment_.size(); ++i) moment_[i].copy_(saved[0][i]);
  has_moment_ = has_moment;
  SetScale();
}

at::Tensor PreconditionedClipping::MeanOf(const std::vector<at::Tensor>& values) {
  at::Tensor total;
  std::int64_t coordinates = 0;
  for (const at::Tensor& value : values) {
    const at::Tensor sum = value.sum(at::kDouble);
    total = total.defined() ? total.add(sum.to(total.device())) : sum;
    coordinates += value.numel();
  }
  return total.div(static_cast<double>(std::max<std::int64_t>(coordinates, 1)));
}

void PreconditionedClipping::SetScale() {
  std::vector<at::Tensor> roots;
  for (const at::Tensor& moment : moment_) roots.push_back(moment.to(at::kDouble).sqrt());
  const double floor = options_.floor;
  const at::Tensor square = MeanOf(moment_);  // r^2
  const at::Tensor added = square.sqrt().mul(floor);
  // n^2, the mean of (sqrt(v) + eps r)^2.
  const at::Tensor size = square.mul(1 + floor * floor).add(added.mul(MeanOf(roots)).mul(2)).sqrt();
  for (std::size_t i = 0; i < roots.size(); ++i) {
    const at::Tensor own_size = size.to(roots[i].device());
    // Where nothing was released yet, 0 / 0.
    roots[i].add_(added.to(roots[i].device())).div_(own_size).masked_fill_(own_size.le(0), 1);
    transform_.scale[i] = roots[i].to(transform_.scale[i].scalar_type());
  }
}

}  // namespace sordino
