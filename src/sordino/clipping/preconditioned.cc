#include "sordino/clipping/preconditioned.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr OptionSpec kMomentDecay{.key = "clip-moment-decay",
                                  .flag = "--clip-moment-decay",
                                  .value_name = "X",
                                  .help = "Decay of the squares that the scale follows",
                                  .what = "the decay of the second moment",
                                  .fallback = 0.999,
                                  .high = 1,
                                  .high_open = false};
constexpr OptionSpec kScaleFloor{
    .key = "clip-scale-floor",
    .flag = "--clip-scale-floor",
    .value_name = "X",
    .help = "Added to the scale of a coordinate, as a share of the mean scale",
    .what = "the floor of the preconditioner",
    .fallback = 0.1,
    .low = 1e-3,
    .high = 1e3,
    .high_open = false};
constexpr const OptionSpec* kPreconditionedOptions[] = {&kMomentDecay, &kScaleFloor};

// Squares beyond it, of gradients beyond 1e15, count as it: v stays a finite float32 number.
constexpr double kLargestSquare = 1e30;

}  // namespace

PreconditionedClipping::PreconditionedClipping(const std::vector<NamedParameter>& parameters,
                                               ClipNorm bound, const OptionValues& options)
    : ScaledClipping("preconditioned clipping", parameters, bound),
      decay_(options.Number(kMomentDecay)),
      floor_(options.Number(kScaleFloor)) {
  for (const OptionSpec* option : kPreconditionedOptions) options.Check(*option);
  for (const at::Tensor& like : transform_.scale) moment_.push_back(at::zeros_like(like));
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
    moment_[i].mul_(decay_).add_(squares[i], 1 - decay_);
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
  const at::Tensor square = MeanOf(moment_);  // r^2
  const at::Tensor added = square.sqrt().mul(floor_);
  // n^2, the mean of (sqrt(v) + eps r)^2.
  const at::Tensor size =
      square.mul(1 + floor_ * floor_).add(added.mul(MeanOf(roots)).mul(2)).sqrt();
  for (std::size_t i = 0; i < roots.size(); ++i) {
    const at::Tensor own_size = size.to(roots[i].device());
    // Where nothing was released yet, 0 / 0.
    roots[i].add_(added.to(roots[i].device())).div_(own_size).masked_fill_(own_size.le(0), 1);
    transform_.scale[i] = roots[i].to(transform_.scale[i].scalar_type());
  }
}

namespace {

class PreconditionedComponent : public ClippingComponent {
 public:
  PreconditionedComponent()
      : ClippingComponent({.name = "preconditioned",
                           .help = "min(1, C/n) of g/b, b follows the squares of noised gradients",
                           .options = kPreconditionedOptions}) {}

  void CheckTerms(const ClippingTerms& terms, const OptionValues& /*options*/) const override {
    if (terms.norms_are_exact) return;
    throw Error(
        "preconditioned clipping scales the gradient of each example before its norm is taken, and "
        "estimated norms are of gradients that are not written out; use exact norms (--norms "
        "automatic) or another clipping.");
  }

  std::unique_ptr<ClippingState> Start(
      const ClippingTerms& terms, const OptionValues& options,
      const std::vector<NamedParameter>& parameters) const override {
    return std::make_unique<ScaledClippingState>(
        parameters, std::make_unique<PreconditionedClipping>(parameters, terms.clip, options));
  }

  std::string Description(const ClippingTerms& terms) const override {
    return fmt::format("preconditioned clipping at {:.6g} of scaled gradients", terms.clip.value());
  }
};

}  // namespace

const ClippingComponent& PreconditionedClippingPolicy() {
  static const PreconditionedComponent component;
  return component;
}

}  // namespace sordino
