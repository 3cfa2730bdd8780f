#include "sordino/noise/device_noise.h"

#include <ATen/Functions.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/kernels/correlated_block.h"
#include "sordino/kernels/grid_step.h"
#include "sordino/kernels/launch.h"
#include "sordino/kernels/noise_kernel.h"
#include "sordino/random/indexed_gaussian.h"

namespace sordino {
namespace {

using internal::DeviceNoiseState;
using kernels::IsCapturing;

DeviceNoiseState* StateIn(const at::Tensor& bytes) {
  return static_cast<DeviceNoiseState*>(bytes.mutable_data_ptr());
}

c10::Stream CurrentStream(const at::Tensor& state) {
  return c10::impl::VirtualGuardImpl(state.device().type()).getStream(state.device());
}

// An operation of libtorch that does nothing: a recording keeps the memory of its argument
// (device/recorded_graph.h), which a kernel of our own would not tell.
void ShowToRecording(const at::Tensor& tensor) { static_cast<void>(at::alias(tensor)); }

void CheckTensors(const at::Tensor& sum, const at::Tensor& noised, const at::Tensor& state) {
  SORDINO_CHECK(sum.device() == state.device() && noised.device() == state.device(),
                "a tensor to be noised lies on another device than its noise");
  SORDINO_CHECK(sum.scalar_type() == noised.scalar_type() &&
                    (sum.scalar_type() == at::kFloat || sum.scalar_type() == at::kDouble),
                "a tensor to be noised is neither float32 nor float64");
  SORDINO_CHECK(sum.is_contiguous() && noised.is_contiguous() && sum.numel() == noised.numel(),
                "a tensor to be noised is not contiguous, or has another size than its noise");
}

}  // namespace

DeviceNoise::DeviceNoise(at::Device device, RandomSource& source)
    : is_private_(source.IsPrivate()) {
  if (!IsBuilt()) {
    throw Error(
        "this build draws no noise on a CUDA device; build it where nvcc and a libtorch with CUDA "
        "are found, or keep the sum on the processor.");
  }
  const c10::DeviceGuard guard(device);
  SORDINO_CHECK(!IsCapturing(),
                "a key of noise was to be drawn during a capture, whose replays would repeat it");
  state_ = at::empty({static_cast<std::int64_t>(sizeof(DeviceNoiseState))},
                     at::TensorOptions(device).dtype(at::kByte));
  const auto random = source.Stream({.step = 0, .rank = 0, .tensor = kDeviceNoiseStream});
  ChaChaKey key = DrawChaChaKey(*random);
  OnDeviceOf(state_, [&](auto stream) {
    internal::StoreKey(StateIn(state_), key, stream);
    ForgetKey(key);
  });
  stream_ = CurrentStream(state_);
}

// The key is overwritten after the last launch, which would else read zeros.
DeviceNoise::~DeviceNoise() {
  try {
    const c10::StreamGuard guard(*stream_);
    if (was_captured_) kernels::WaitForDevice();
    for (const at::Tensor& secret : {state_, kept_}) {
      if (!secret.defined()) continue;
      secret.zero_();
      secret.record_stream(*stream_);
    }
  } catch (...) {  // The device is gone, and its memory with it.
  }
}

void DeviceNoise::Remember(const NoiseMemory& memory, std::int64_t origin,
                           std::int64_t coordinates) {
  const c10::DeviceGuard guard(state_.device());
  SORDINO_CHECK(!IsCapturing() && !kept_.defined() && sigma_ == 0,
                "the memory of noise was to be changed");
  const auto count = static_cast<std::int64_t>(memory.factors.size());
  kept_ = at::zeros({count, coordinates}, state_.options().dtype(at::kDouble));
  std::vector<double> numbers = memory.factors;
  numbers.insert(numbers.end(), memory.decays.begin(), memory.decays.end());
  factors_ = at::tensor(numbers, at::kDouble).to(state_.device());
  const double* const factors = factors_.const_data_ptr<double>();
  OnDeviceOf(state_, [&](auto stream) {
    internal::StoreMemory(StateIn(state_),
                          {.kind = memory.kind,
                           .count = static_cast<std::int32_t>(count),
                           .coordinates = coordinates,
                           .origin = origin,
                           .factors = factors,
                           .decays = factors + count,
                           .kept = kept_.mutable_data_ptr<double>()},
                          stream);
  });
  stream_ = CurrentStream(state_);
}

void DeviceNoise::StoreGrid(const NoiseGrid& grid, double divisor, std::uint64_t draw) {
  const c10::DeviceGuard guard(state_.device());
  DeviceNoiseState* const state = StateIn(state_);
  SORDINO_CHECK(!IsCapturing(), "the step of noise was to be set during a capture");
  const double sigma = std::ldexp(grid.scale / grid.granularity, grid.finer_bits);
  if (sigma != sigma_) {
    const IndexedGaussian gaussian(sigma);
    OnDeviceOf(state_,
               [&](auto stream) { internal::StoreTable(state, gaussian.table(), sigma, stream); });
    sigma_ = sigma;
  }
  const internal::GridStep step = {.steps_per_unit = 1 / grid.granularity,
                                   .value_of_step = grid.granularity / divisor,
                                   .finer_bits = grid.finer_bits};
  const std::uint64_t next = is_private_ ? std::max(draw, next_draw_) : draw;
  stream_ = CurrentStream(state_);
  const bool is_stored = steps_per_unit_ == step.steps_per_unit &&
                         value_of_step_ == step.value_of_step && finer_bits_ == step.finer_bits &&
                         next_draw_ == next;
  // Of replays the host knows nothing.
  if (is_stored && !was_captured_) return;
  OnDeviceOf(state_,
             [&](auto stream) { internal::StoreStep(state, step, draw, is_private_, stream); });
  steps_per_unit_ = step.steps_per_unit;
  value_of_step_ = step.value_of_step;
  finer_bits_ = step.finer_bits;
  next_draw_ = next;
}

void DeviceNoise::Launch(const std::vector<at::Tensor>& sums,
                         const std::vector<at::Tensor>& noised) {
  SORDINO_CHECK(sums.size() == noised.size(), "a noised sum has another number of tensors");
  LaunchOver(sums, noised, nullptr);
}

void DeviceNoise::LaunchDescent(const std::vector<at::Tensor>& sums, const Descent& descent) {
  const bool has_momentum = descent.factors.momentum != 0;
  SORDINO_CHECK(sums.size() == descent.parameters.size() &&
                    (!has_momentum || sums.size() == descent.momenta.size()),
                "a descent has another number of tensors than its gradients");
  for (std::size_t i = 0; i < sums.size(); ++i) {
    CheckTensors(sums[i], descent.parameters[i], state_);
    if (has_momentum) CheckTensors(sums[i], descent.momenta[i], state_);
  }
  LaunchOver(sums, descent.parameters, &descent);
  // As an operation in place does, for graphs that have kept an old value.
  for (const at::Tensor& parameter : descent.parameters) {
    parameter.unsafeGetTensorImpl()->bump_version();
  }
}

// `targets` are noised sums or, with a descent, its parameters.
void DeviceNoise::LaunchOver(const std::vector<at::Tensor>& sums,
                             const std::vector<at::Tensor>& targets, const Descent* descent) {
  SORDINO_CHECK(sigma_ > 0, "noise was to be added before its step was set");
  const c10::DeviceGuard guard(state_.device());
  stream_ = CurrentStream(state_);
  const bool is_capturing = IsCapturing();
  was_captured_ |= is_capturing;
  const auto show = [&](const at::Tensor& tensor) {
    if (is_capturing) ShowToRecording(tensor);
  };
  const bool has_momentum = descent != nullptr && descent->factors.momentum != 0;
  internal::NoisedTensors tensors{};
  internal::DescentTarget target{};
  if (descent != nullptr) target.factors = descent->factors;
  const auto launch = [&](bool is_last) {
    OnDeviceOf(state_, [&](auto stream) {
      if (descent == nullptr) {
        internal::LaunchNoise(StateIn(state_), tensors, kept_.defined(), is_last, stream);
      } else {
        internal::LaunchDescent(StateIn(state_), tensors, target, kept_.defined(), is_last, stream);
      }
    });
    tensors.count = 0;
  };
  show(state_);
  if (kept_.defined()) {
    show(kept_);
    show(factors_);
  }
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    CheckTensors(sums[i], targets[i], state_);
    show(sums[i]);
    show(targets[i]);
    if (has_momentum) show(descent->momenta[i]);
    if (sums[i].numel() == 0) continue;
    if (tensors.count == internal::NoisedTensors::kMost) launch(false);
    const std::int64_t end = begin + sums[i].numel();
    target.beside[tensors.count] = {
        .parameter = targets[i].mutable_data_ptr(),
        .momentum = has_momentum ? descent->momenta[i].mutable_data_ptr() : nullptr};
    tensors.tensor[tensors.count++] = {.sum = sums[i].const_data_ptr(),
                                       .noised = targets[i].mutable_data_ptr(),
                                       .begin = begin,
                                       .end = end,
                                       .is_double = sums[i].scalar_type() == at::kDouble};
    begin = end;
  }
  if (tensors.count == 0) return;
  launch(true);
  if (!is_capturing) ++next_draw_;
}

bool DeviceNoise::Serves(const BoundedSum& sum, const NoiseComponent& kind) {
  if (!IsBuilt() || !kind.DrawsByIndex() || sum.gradients.empty()) return false;
  const at::Device device = sum.gradients.front().device();
  return device.is_cuda() &&
         std::all_of(sum.gradients.begin(), sum.gradients.end(), [&](const at::Tensor& gradient) {
           return gradient.device() == device &&
                  (gradient.scalar_type() == at::kFloat || gradient.scalar_type() == at::kDouble);
         });
}

void DeviceNoise::SetStep(const StepNoise& noise, L2Sensitivity sensitivity,
                          std::int64_t coordinates) {
  SORDINO_CHECK(noise.kind->DrawsByIndex(), "this kind of noise does not draw by index");
  SORDINO_CHECK(noise.canaries.empty(), "canaries are not added on a device");
  SORDINO_CHECK(!noise.earlier, "earlier draws are not added on a device");
  SetGrid(StepGrid(noise, sensitivity, coordinates), noise.divisor, noise.step);
  sensitivity_ = sensitivity;
  coordinates_ = coordinates;
}

void DeviceNoise::SetGrid(const NoiseGrid& grid, double divisor, std::int64_t step) {
  sensitivity_ = L2Sensitivity(0);
  coordinates_ = 0;
  StoreGrid(grid, divisor, static_cast<std::uint64_t>(step));
  standard_deviation_ = grid.scale / divisor;
}

void DeviceNoise::Repeat(std::int64_t step, double scale_of_draws) {
  SORDINO_CHECK(!is_private_, "private noise was to be drawn again");
  static_cast<void>(Steps({.scale = std::ldexp(scale_of_draws, -internal::kFinerBits),
                           .granularity = 1,
                           .finer_bits = internal::kFinerBits},
                          kept_.size(1), step));
}

at::Tensor DeviceNoise::Steps(const NoiseGrid& grid, std::int64_t coordinates, std::int64_t step) {
  // On a grid of whole numbers, where nothing is divided.
  SetGrid({.scale = grid.scale / grid.granularity, .granularity = 1, .finer_bits = grid.finer_bits},
          1, step);
  at::Tensor steps = at::zeros({coordinates}, state_.options().dtype(at::kDouble));
  Launch({steps}, {steps});
  return steps;
}

bool DeviceNoise::Serves(const BoundedSum& sum, const Descent& descent) {
  const auto fit = [&](const std::vector<at::Tensor>& tensors) {
    return std::equal(sum.gradients.begin(), sum.gradients.end(), tensors.begin(), tensors.end(),
                      [](const at::Tensor& gradient, const at::Tensor& tensor) {
                        return tensor.is_contiguous() && tensor.sizes() == gradient.sizes() &&
                               tensor.scalar_type() == gradient.scalar_type() &&
                               tensor.device() == gradient.device();
                      });
  };
  return fit(descent.parameters) && (descent.factors.momentum == 0 || fit(descent.momenta));
}

void DeviceNoise::CheckSetFor(const BoundedSum& sum) const {
  std::int64_t coordinates = 0;
  for (const at::Tensor& gradient : sum.gradients) coordinates += gradient.numel();
  SORDINO_CHECK(sum.sensitivity.value() <= sensitivity_.value(),
                "the noise was chosen for a sum of a smaller sensitivity");
  SORDINO_CHECK(coordinates == coordinates_,
                "the noise was chosen for a sum of another number of coordinates");
}

NoisedGradients AddNoise(const BoundedSum& sum, DeviceNoise& noise) {
  noise.CheckSetFor(sum);
  std::vector<at::Tensor> sums;
  std::vector<at::Tensor> noised;
  sums.reserve(sum.gradients.size());
  noised.reserve(sum.gradients.size());
  for (const at::Tensor& gradient : sum.gradients) {
    sums.push_back(gradient.contiguous());
    noised.push_back(at::empty_like(sums.back()));
  }
  noise.Launch(sums, noised);
  for (std::size_t k = 0; k < noised.size(); ++k) noised[k] = noised[k].to(sum.noised_types[k]);
  return {std::move(noised), noise.standard_deviation_};
}

void AddNoise(const BoundedSum& sum, DeviceNoise& noise, const Descent& descent) {
  noise.CheckSetFor(sum);
  std::vector<at::Tensor> sums;
  sums.reserve(sum.gradients.size());
  for (const at::Tensor& gradient : sum.gradients) sums.push_back(gradient.contiguous());
  noise.LaunchDescent(sums, descent);
}

}  // namespace sordino
