#include "sordino/noise/device_noise.h"

#include <ATen/Functions.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cmath>

#include "sordino/base/check.h"
#include "sordino/noise/internal/correlated_block.h"
#include "sordino/noise/internal/device_noise_kernel.h"
#include "sordino/noise/internal/grid_step.h"
#include "sordino/random/indexed_gaussian.h"

namespace sordino {
namespace {

using internal::DeviceNoiseState;

DeviceNoiseState* StateIn(const at::Tensor& bytes) {
  return static_cast<DeviceNoiseState*>(bytes.mutable_data_ptr());
}

// Whether what is put on the current stream is recorded instead of run.
bool IsCapturing() {
  return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
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

bool DeviceNoise::IsBuilt() { return true; }

DeviceNoise::DeviceNoise(at::Device device, RandomSource& source)
    : is_private_(source.IsPrivate()) {
  const c10::cuda::CUDAGuard guard(device);
  SORDINO_CHECK(!IsCapturing(),
                "a key of noise was to be drawn during a capture, whose replays would repeat it");
  state_ = at::empty({static_cast<std::int64_t>(sizeof(DeviceNoiseState))},
                     at::TensorOptions(device).dtype(at::kByte));
  const auto random = source.Stream({.step = 0, .rank = 0, .tensor = kDeviceNoiseStream});
  ChaChaKey key = DrawChaChaKey(*random);
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  internal::StoreKey(StateIn(state_), key, stream);
  ForgetKey(key);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  stream_ = stream.unwrap();
}

// The key is overwritten after the last launch, which would else read zeros.
DeviceNoise::~DeviceNoise() {
  try {
    const c10::cuda::CUDAStreamGuard guard(*stream_);
    if (was_captured_) C10_CUDA_CHECK(cudaDeviceSynchronize());
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
  const c10::cuda::CUDAGuard guard(state_.device());
  SORDINO_CHECK(!IsCapturing() && !kept_.defined() && sigma_ == 0,
                "the memory of noise was to be changed");
  const auto count = static_cast<std::int64_t>(memory.factors.size());
  kept_ = at::zeros({count, coordinates}, state_.options().dtype(at::kDouble));
  std::vector<double> numbers = memory.factors;
  numbers.insert(numbers.end(), memory.decays.begin(), memory.decays.end());
  factors_ = at::tensor(numbers, at::kDouble).to(state_.device());
  const double* const factors = factors_.const_data_ptr<double>();
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  internal::StoreMemory(StateIn(state_),
                        {.kind = memory.kind,
                         .count = static_cast<std::int32_t>(count),
                         .coordinates = coordinates,
                         .origin = origin,
                         .factors = factors,
                         .decays = factors + count,
                         .kept = kept_.mutable_data_ptr<double>()},
                        stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  stream_ = stream.unwrap();
}

void DeviceNoise::StoreGrid(const NoiseGrid& grid, double divisor, std::uint64_t draw) {
  const c10::cuda::CUDAGuard guard(state_.device());
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  DeviceNoiseState* const state = StateIn(state_);
  SORDINO_CHECK(!IsCapturing(), "the step of noise was to be set during a capture");
  const double sigma = std::ldexp(grid.scale / grid.granularity, grid.finer_bits);
  if (sigma != sigma_) {
    const IndexedGaussian gaussian(sigma);
    internal::StoreTable(state, gaussian.table(), sigma, stream);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    sigma_ = sigma;
  }
  const internal::GridStep step = {.steps_per_unit = 1 / grid.granularity,
                                   .value_of_step = grid.granularity / divisor,
                                   .finer_bits = grid.finer_bits};
  const std::uint64_t next = is_private_ ? std::max(draw, next_draw_) : draw;
  stream_ = stream.unwrap();
  const bool is_stored = steps_per_unit_ == step.steps_per_unit &&
                         value_of_step_ == step.value_of_step && finer_bits_ == step.finer_bits &&
                         next_draw_ == next;
  // Of replays the host knows nothing.
  if (is_stored && !was_captured_) return;
  internal::StoreStep(state, step, draw, is_private_, stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
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
  const c10::cuda::CUDAGuard guard(state_.device());
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  stream_ = stream.unwrap();
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
    if (descent == nullptr) {
      internal::LaunchNoise(StateIn(state_), tensors, kept_.defined(), is_last, stream);
    } else {
      internal::LaunchDescent(StateIn(state_), tensors, target, kept_.defined(), is_last, stream);
    }
    C10_CUDA_KERNEL_LAUNCH_CHECK();
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

}  // namespace sordino
