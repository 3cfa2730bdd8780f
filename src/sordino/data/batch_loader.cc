#include "sordino/data/batch_loader.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/data/internal/normalised_records.h"
#include "sordino/tables/data_error.h"

namespace sordino {
namespace {

using internal::Gather;
using internal::GatherNormalised;
using internal::NormalisedOnDevice;
using internal::Rows;
using internal::StoredType;

std::size_t AsSize(std::int64_t number) { return static_cast<std::size_t>(number); }

// In memory, or on the device already.
void CheckTensors(const Dataset& data, c10::Device device = c10::kCPU) {
  const at::ScalarType type = StoredType(data.declaration.kind);
  const at::ScalarType label_type = data.declaration.target ? at::kFloat : at::kLong;
  const std::size_t dimensions = data.declaration.shape.size() + 1;
  const auto is_there = [&](const at::Tensor& tensor) {
    return tensor.defined() && (tensor.is_cpu() || tensor.device().type() == device.type());
  };
  const bool right = is_there(data.inputs) && is_there(data.labels) &&
                     data.inputs.scalar_type() == type && data.labels.scalar_type() == label_type &&
                     data.labels.dim() == 1 && AsSize(data.inputs.dim()) == dimensions &&
                     data.inputs.size(0) == data.labels.size(0) &&
                     data.inputs.sizes().slice(1) == at::IntArrayRef(data.declaration.shape);
  if (!right) {
    throw Error(fmt::format(
        "the records of '{}' are not what was declared; the inputs must be {} in memory, one of "
        "the declared shape for each label, and the labels {}.",
        data.declaration.name, c10::toString(type),
        data.declaration.target ? "numbers" : "whole numbers"));
  }
}

// The device with its number: another thread may have another current one.
c10::Device Present(c10::Device device) {
  if (device.is_cpu()) return device;
  if (!c10::impl::hasDeviceGuardImpl(device.type()) ||
      c10::impl::VirtualGuardImpl(device.type()).deviceCount() <=
          std::max<int>(device.index(), 0)) {
    throw Error(
        fmt::format("the device is '{}', which is not there; use 'cpu', or a machine and a "
                    "libtorch that have it.",
                    device.str()));
  }
  return device.has_index() ? device : c10::impl::VirtualGuardImpl(device.type()).getDevice();
}

}  // namespace

at::Tensor Normalise(const DatasetDeclaration& declaration, const at::Tensor& inputs) {
  const internal::NormalisationConstants constants = internal::MakeConstants(declaration);
  const at::ScalarType type = StoredType(declaration.kind);
  if (inputs.scalar_type() != type ||
      inputs.dim() < static_cast<std::int64_t>(declaration.shape.size()) ||
      inputs.sizes().slice(AsSize(inputs.dim()) - declaration.shape.size()) !=
          at::IntArrayRef(declaration.shape)) {
    throw Error(
        fmt::format("the inputs do not have the type {} or the shape of an example that "
                    "was declared for '{}'.",
                    c10::toString(type), declaration.name));
  }
  const at::NoGradGuard no_grad;
  if (!inputs.is_cpu()) return NormalisedOnDevice(constants, inputs);
  if (type == at::kLong) return inputs;
  std::vector<std::int64_t> example = declaration.shape;
  example.insert(example.begin(), -1);
  if (inputs.numel() == 0) return at::empty(inputs.sizes(), at::kFloat);
  const at::Tensor stored = inputs.contiguous().view(example);
  return GatherNormalised(constants, stored, {stored.size(0)}).view(inputs.sizes());
}

Dataset KeptOnDevice(const Dataset& data, c10::Device device) {
  constexpr std::size_t kLargest = std::size_t{4} << 30;
  if (device.is_cpu() || data.inputs.nbytes() + data.labels.nbytes() > kLargest) return data;
  try {
    Dataset kept = data;
    kept.labels = data.labels.to(device);
    kept.inputs = data.inputs.to(device);
    return kept;
  } catch (const c10::OutOfMemoryError&) {
    return data;
  }
}

std::vector<at::Tensor> LoadRange(const Dataset& data, std::int64_t begin, std::int64_t end,
                                  c10::Device device) {
  CheckTensors(data, device);
  if (begin < 0 || end < begin || end > data.size()) {
    throw DataError(
        fmt::format("records that '{}' does not have were asked for.", data.declaration.name),
        fmt::format("records {} to {} of {}", begin, end, data.size()));
  }
  const at::NoGradGuard no_grad;
  // Moved as stored, a quarter of the bytes, and normalised there.
  const at::Tensor inputs = data.inputs.slice(0, begin, end).to(device);
  return {Normalise(data.declaration, inputs), data.labels.slice(0, begin, end).to(device)};
}

struct BatchLoader::State {
  struct Request {
    std::vector<std::uint64_t> indices;
    std::uint64_t seed = 0;
  };
  struct Ready {
    std::vector<at::Tensor> batch;
    std::optional<c10::Event> event;  // when the work on the device is done
    std::exception_ptr failure;
  };

  Dataset data;
  LoaderOptions options;
  internal::NormalisationConstants constants;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Request> requests;
  std::deque<Ready> ready;
  std::uint64_t requested = 0;
  std::uint64_t taken = 0;
  bool stop = false;

  // Of the thread: its stream, and the records on the device where they are kept there.
  std::optional<c10::Stream> stream;
  at::Tensor inputs_there;
  at::Tensor labels_there;

  std::thread thread;

  bool OnDevice() const { return !options.device.is_cpu(); }
  void Work();
  Ready Make(const Request& request);
  std::vector<at::Tensor> MakeInMemory(const Request& request);
  std::vector<at::Tensor> MakeOnDevice(const Request& request);
  void KeepOnDevice();
};

void BatchLoader::State::Work() {
  // Not inference mode: what it makes cannot be an input of an autograd graph.
  const at::NoGradGuard no_grad;
  while (true) {
    Request request;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return stop || !requests.empty(); });
      if (stop) return;
      request = std::move(requests.front());
      requests.pop_front();
    }
    Ready made;
    try {
      made = Make(request);
    } catch (...) {
      made.failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    ready.push_back(std::move(made));
    changed.notify_all();
  }
}

BatchLoader::State::Ready BatchLoader::State::Make(const Request& request) {
  Ready made;
  if (!OnDevice()) {
    made.batch = MakeInMemory(request);
    return made;
  }
  // A stream of its own: copies run beside the step. The taker's stream waits for the event.
  const bool first = !stream;
  if (first) {
    stream =
        c10::impl::VirtualGuardImpl(options.device.type()).getStreamFromGlobalPool(options.device);
  }
  const c10::StreamGuard guard(*stream);
  if (first) KeepOnDevice();
  made.batch = MakeOnDevice(request);
  made.event.emplace(options.device.type());
  made.event->record(*stream);
  return made;
}

std::vector<at::Tensor> BatchLoader::State::MakeInMemory(const Request& request) {
  const Rows rows{static_cast<std::int64_t>(request.indices.size()), request.indices.data()};
  const at::Tensor labels = Gather(data.labels, rows, false);
  if (!options.augmentation.Changes()) {
    return {GatherNormalised(constants, data.inputs, rows), labels};
  }
  const at::Tensor images =
      Augment(Gather(data.inputs, rows, false), options.augmentation, request.seed);
  return {Normalise(data.declaration, images), labels};
}

void BatchLoader::State::KeepOnDevice() {
  if (options.augmentation.Changes()) return;
  const Dataset kept = KeptOnDevice(data, options.device);
  if (kept.inputs.is_cpu()) return;  // then batches travel one by one
  inputs_there = kept.inputs;
  labels_there = kept.labels;
}

std::vector<at::Tensor> BatchLoader::State::MakeOnDevice(const Request& request) {
  const Rows rows{static_cast<std::int64_t>(request.indices.size()), request.indices.data()};
  const auto there = [&](const at::Tensor& pinned) {
    return pinned.to(options.device, /*non_blocking=*/true);
  };
  if (labels_there.defined()) {
    const at::Tensor pinned =
        at::empty({rows.count}, at::TensorOptions().dtype(at::kLong).pinned_memory(rows.count > 0));
    std::copy(request.indices.begin(), request.indices.end(),
              pinned.mutable_data_ptr<std::int64_t>());
    const at::Tensor indices = there(pinned);
    return {NormalisedOnDevice(constants, inputs_there.index_select(0, indices)),
            labels_there.index_select(0, indices)};
  }
  at::Tensor inputs = Gather(data.inputs, rows, !options.augmentation.Changes());
  if (options.augmentation.Changes()) {
    inputs = Augment(inputs, options.augmentation, request.seed).pin_memory();
  }
  return {NormalisedOnDevice(constants, there(inputs)), there(Gather(data.labels, rows, true))};
}

BatchLoader::BatchLoader(const Dataset& data, LoaderOptions options)
    : state_(std::make_unique<State>()) {
  CheckTensors(data);
  state_->constants = internal::MakeConstants(data.declaration);
  if (data.declaration.kind == InputKind::kImage) {
    CheckAugmentation(options.augmentation, data.declaration.shape[1], data.declaration.shape[2]);
  } else if (options.augmentation.Changes()) {
    throw Error(fmt::format(
        "augmentation was asked for, but the records of '{}' are not images; leave it out.",
        data.declaration.name));
  }
  options.device = Present(options.device);
  state_->data = data;
  state_->data.inputs = data.inputs.contiguous();
  state_->data.labels = data.labels.contiguous();
  state_->options = options;
  state_->thread = std::thread([state = state_.get()] { state->Work(); });
}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
  }
  state_->thread.join();
}

void BatchLoader::Request(std::vector<std::uint64_t> indices, std::uint64_t seed) {
  const auto records = static_cast<std::uint64_t>(state_->data.size());
  for (const std::uint64_t index : indices) {
    if (index >= records) {
      throw DataError(fmt::format("a record that '{}' does not have was asked for.",
                                  state_->data.declaration.name),
                      fmt::format("record {} of {}", index, records));
    }
  }
  const std::lock_guard lock(state_->mutex);
  state_->requests.push_back({std::move(indices), seed});
  ++state_->requested;
  state_->changed.notify_all();
}

std::vector<at::Tensor> BatchLoader::Take() {
  State::Ready ready;
  {
    std::unique_lock lock(state_->mutex);
    if (state_->taken == state_->requested) {
      throw Error("a batch was taken that was not asked for; call Request first.");
    }
    state_->changed.wait(lock, [&] { return !state_->ready.empty(); });
    ready = std::move(state_->ready.front());
    state_->ready.pop_front();
    ++state_->taken;
  }
  if (ready.failure) std::rethrow_exception(ready.failure);
  if (ready.event) {
    const c10::Device device = state_->options.device;
    const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
    ready.event->block(stream);
    // The memory belongs to the loader's stream: it may not be given out again before this
    // stream is done with it.
    for (const at::Tensor& tensor : ready.batch) tensor.record_stream(stream);
  }
  return std::move(ready.batch);
}

}  // namespace sordino
