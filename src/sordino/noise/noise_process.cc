#include "sordino/noise/noise_process.h"

#include <ATen/ops/tensor.h>

#include <cmath>
#include <utility>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/gradients/parallel_shares.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/noise/device_noise.h"

namespace sordino {
namespace {

constexpr const char* kScales = "noise.scales";  // of the last draws, the newest first

}  // namespace

NoiseProcess::NoiseProcess(std::vector<double> coefficients, RandomSource& source)
    : coefficients_(std::move(coefficients)), source_(source), earlier_(coefficients_.size()) {}
NoiseProcess::~NoiseProcess() = default;

// What earlier draws add to those of a step.
void NoiseProcess::AddEarlier(const StepDraws& now) {
  struct Term {
    double factor;
    const std::int64_t* draws;
  };
  std::vector<Term> terms;
  for (std::size_t i = 0; i < earlier_.size(); ++i) {
    Earlier& one = earlier_[i];
    if (one.scale == 0) continue;
    const auto lag = static_cast<std::int64_t>(i) + 1;
    if (!one.draws.defined()) one.draws = now.draw_again(now.step - lag, one.scale);
    terms.push_back({.factor = coefficients_[i] * (now.scale / one.scale),
                     .draws = one.draws.const_data_ptr<std::int64_t>()});
  }
  at::Tensor own = now.draws.clone();
  std::int64_t* const out = now.draws.mutable_data_ptr<std::int64_t>();
  // Not by operations of libtorch: the ends of their loops may round in another way, and shards end
  // anywhere.
  ParallelShares(now.draws.numel(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      double sum = 0;
      for (const Term& term : terms) sum += term.factor * static_cast<double>(term.draws[i]);
      out[i] += std::llrint(sum);
    }
  });
  earlier_.pop_back();
  earlier_.push_front({.draws = std::move(own), .scale = now.scale});
}

StepNoise NoiseProcess::WithEarlier(const StepNoise& noise) {
  if (coefficients_.empty()) return noise;
  SORDINO_CHECK(noise.step == last_step_ + 1 || last_step_ < 0,
                "the noise of a step is drawn twice, or a step is left out");
  last_step_ = noise.step;
  StepNoise own = noise;
  own.earlier = [this](const StepDraws& now) { AddEarlier(now); };
  return own;
}

bool NoiseProcess::DrawsOnDevice(const BoundedSum& sum, const StepNoise& noise) const {
  return coefficients_.empty() && noise.canaries.empty() && DeviceNoise::Serves(sum, *noise.kind);
}

DeviceNoise& NoiseProcess::SetOnDevice(const BoundedSum& sum, const StepNoise& noise) {
  std::int64_t coordinates = 0;
  for (const at::Tensor& gradient : sum.gradients) coordinates += gradient.numel();
  if (!on_device_ || sum.gradients.front().device() != device_) {
    device_ = sum.gradients.front().device();
    on_device_ = std::make_unique<DeviceNoise>(device_, source_);
  }
  on_device_->SetStep(noise, sum.sensitivity, coordinates);
  return *on_device_;
}

NoisedGradients NoiseProcess::Add(const BoundedSum& sum, const StepNoise& noise) {
  if (DrawsOnDevice(sum, noise)) return AddNoise(sum, SetOnDevice(sum, noise));
  return AddNoise(sum, WithEarlier(noise), source_);
}

NoisedGradients NoiseProcess::Add(const FixedPointShard& shard, const StepNoise& noise) {
  return AddNoise(shard, WithEarlier(noise), source_);
}

bool NoiseProcess::Descend(const BoundedSum& sum, const StepNoise& noise, const Descent& descent) {
  if (!DrawsOnDevice(sum, noise) || !DeviceNoise::Serves(sum, descent)) return false;
  AddNoise(sum, SetOnDevice(sum, noise), descent);
  return true;
}

NamedTensors NoiseProcess::Save() const {
  if (coefficients_.empty()) return {};
  std::vector<double> scales;
  scales.reserve(earlier_.size());
  for (const Earlier& one : earlier_) scales.push_back(one.scale);
  return {{kScales, at::tensor(scales, at::kDouble)}};
}

void NoiseProcess::Restore(SavedTensors& saved, std::int64_t steps_done) {
  if (coefficients_.empty()) return;
  SORDINO_CHECK(last_step_ < 0, "noise is restored that was drawn from");
  const at::Tensor scales =
      saved.Take(kScales, {static_cast<std::int64_t>(coefficients_.size())}, at::kDouble)
          .contiguous();
  last_step_ = steps_done - 1;
  for (std::size_t i = 0; i < earlier_.size(); ++i) {
    const double scale = scales.const_data_ptr<double>()[i];
    const bool is_one = scale == 0 || (scale > 0 && std::isfinite(scale) &&
                                       static_cast<std::int64_t>(i) < steps_done);
    if (!is_one) {
      throw Error(
          "the saved noise is not that of this run; resume with the settings it began with.");
    }
    // What a private source has drawn is gone with it.
    if (!source_.IsPrivate()) earlier_[i] = {.draws = {}, .scale = scale};
  }
}

}  // namespace sordino
