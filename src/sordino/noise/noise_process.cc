#include "sordino/noise/noise_process.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/device/parallel_shares.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/kernels/correlated_block.h"
#include "sordino/noise/device_noise.h"

namespace sordino {
namespace {

constexpr const char* kScales = "noise.scales";  // of all draws

std::int64_t Coordinates(const BoundedSum& sum) {
  std::int64_t coordinates = 0;
  for (const at::Tensor& gradient : sum.gradients) coordinates += gradient.numel();
  return coordinates;
}

}  // namespace

NoiseProcess::NoiseProcess(NoiseMemory memory, RandomSource& source)
    : memory_(std::move(memory)), source_(source) {}
NoiseProcess::~NoiseProcess() = default;

void NoiseProcess::CorrelateDraws(const at::Tensor& draws, std::int64_t step, double scale) {
  const std::int64_t coordinates = draws.numel();
  const auto count = static_cast<std::int64_t>(memory_.factors.size());
  if (!kept_.defined()) kept_ = at::zeros({count, coordinates}, at::kDouble);
  SORDINO_CHECK(kept_.size(1) == coordinates, "noise is asked for other coordinates than before");
  const internal::MemoryView view = {.kind = memory_.kind,
                                     .count = static_cast<std::int32_t>(count),
                                     .coordinates = coordinates,
                                     .origin = origin_,
                                     .factors = memory_.factors.data(),
                                     .decays = memory_.decays.data(),
                                     .kept = kept_.mutable_data_ptr<double>()};
  std::int64_t* const out = draws.mutable_data_ptr<std::int64_t>();
  ParallelShares(coordinates, [&](std::int64_t first, std::int64_t last) {
    constexpr int kBlock = 256;
    for (std::int64_t begin = first; begin < last; begin += kBlock) {
      const int size = static_cast<int>(std::min<std::int64_t>(kBlock, last - begin));
      internal::CorrelateBlock<kBlock>(view, step, scale, begin, size, out + begin);
    }
  });
}

// Draws become the noise of a step.
void NoiseProcess::Correlate(const StepDraws& now) {
  for (std::int64_t step = 0; step < to_repeat_; ++step) {
    const double scale = scales_[static_cast<std::size_t>(step)];
    CorrelateDraws(now.draw_again(step, scale), step, scale);
  }
  to_repeat_ = 0;
  CorrelateDraws(now.draws, now.step, now.scale);
  if (!source_.IsPrivate()) scales_.push_back(now.scale);
}

void NoiseProcess::BeginStep(std::int64_t step) {
  if (memory_.IsNone()) return;
  SORDINO_CHECK(step == last_step_ + 1 || last_step_ < 0,
                "the noise of a step is drawn twice, or a step is left out");
  if (last_step_ < 0) origin_ = step;
  last_step_ = step;
}

StepNoise NoiseProcess::WithRounding(const StepNoise& noise) const {
  StepNoise own = noise;
  own.remembered = memory_.Rounding();
  return own;
}

StepNoise NoiseProcess::OnProcessor(const StepNoise& noise) {
  StepNoise own = WithRounding(noise);
  if (!memory_.IsNone()) {
    own.earlier = [this](const StepDraws& now) { Correlate(now); };
  }
  return own;
}

bool NoiseProcess::DrawsOnDevice(const BoundedSum& sum, const StepNoise& noise) const {
  return noise.canaries.empty() && DeviceNoise::Serves(sum, *noise.kind);
}

DeviceNoise& NoiseProcess::SetOnDevice(const BoundedSum& sum, const StepNoise& noise) {
  if (!on_device_ || sum.gradients.front().device() != device_) {
    SORDINO_CHECK(!on_device_ || memory_.IsNone(), "noise that remembers was asked for elsewhere");
    device_ = sum.gradients.front().device();
    on_device_ = std::make_unique<DeviceNoise>(device_, source_);
    if (!memory_.IsNone()) {
      on_device_->Remember(memory_, origin_, Coordinates(sum));
      for (std::int64_t step = 0; step < to_repeat_; ++step) {
        on_device_->Repeat(step, scales_[static_cast<std::size_t>(step)]);
      }
      to_repeat_ = 0;
    }
  }
  if (!memory_.IsNone() && !source_.IsPrivate()) {
    const NoiseGrid grid = StepGrid(noise, sum.sensitivity, Coordinates(sum));
    scales_.push_back(ScaleOfDraws(grid));
  }
  return *on_device_;
}

NoisedGradients NoiseProcess::Add(const BoundedSum& sum, const StepNoise& noise) {
  BeginStep(noise.step);
  if (!DeviceNoise::Serves(sum, *noise.kind)) return AddNoise(sum, OnProcessor(noise), source_);
  StepNoise own = WithRounding(noise);
  DeviceNoise& device = SetOnDevice(sum, own);
  if (!noise.canaries.empty()) {
    own.steps = [&](const NoiseGrid& grid, std::int64_t coordinates) {
      return device.Steps(grid, coordinates, own.step).cpu();
    };
    return AddNoise(sum, own, source_);
  }
  device.SetStep(own, sum.sensitivity, Coordinates(sum));
  return AddNoise(sum, device);
}

NoisedGradients NoiseProcess::Add(const FixedPointShard& shard, const StepNoise& noise) {
  BeginStep(noise.step);
  return AddNoise(shard, OnProcessor(noise), source_);
}

bool NoiseProcess::Descend(const BoundedSum& sum, const StepNoise& noise, const Descent& descent) {
  if (!DrawsOnDevice(sum, noise) || !DeviceNoise::Serves(sum, descent)) return false;
  BeginStep(noise.step);
  const StepNoise own = WithRounding(noise);
  DeviceNoise& device = SetOnDevice(sum, own);
  device.SetStep(own, sum.sensitivity, Coordinates(sum));
  AddNoise(sum, device, descent);
  return true;
}

// A private process begins anew, and needs nothing.
NamedTensors NoiseProcess::Save() const {
  if (memory_.IsNone() || source_.IsPrivate()) return {};
  return {{kScales, at::tensor(scales_, at::kDouble)}};
}

void NoiseProcess::Restore(SavedTensors& saved, std::int64_t steps_done) {
  if (memory_.IsNone()) return;
  SORDINO_CHECK(last_step_ < 0, "noise is restored that was drawn from");
  if (steps_done == 0 && source_.IsPrivate()) return;
  last_step_ = steps_done - 1;
  origin_ = steps_done;
  if (source_.IsPrivate()) return;
  const at::Tensor scales = saved.Take(kScales, {steps_done}, at::kDouble).contiguous();
  const double* const all = scales.const_data_ptr<double>();
  scales_.assign(all, all + steps_done);
  if (!std::all_of(scales_.begin(), scales_.end(),
                   [](double scale) { return scale > 0 && std::isfinite(scale); })) {
    throw Error("the saved noise is not that of this run; resume with the settings it began with.");
  }
  origin_ = 0;
  to_repeat_ = steps_done;
}

}  // namespace sordino
