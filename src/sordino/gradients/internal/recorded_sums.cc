#include "sordino/gradients/internal/recorded_sums.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/gradients/internal/isolation/isolation.h"
#include "sordino/gradients/internal/physical_batch.h"
#include "sordino/kernels/launch.h"
#include "sordino/kernels/padded_copy.h"

namespace sordino {
namespace {

// Each holds the memory of a whole pass.
constexpr std::size_t kMaxRecordings = 3;
// A first failure may be due to a batch that had to be looked at anew.
constexpr int kMaxFailures = 3;

std::vector<const void*> AddressesOf(const std::vector<NamedParameter>& parameters) {
  std::vector<const void*> addresses;
  addresses.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) {
    addresses.push_back(parameter.value.const_data_ptr());
  }
  return addresses;
}

// What an operation throws that cannot be recorded: an error of libtorch, alone or through a
// script, or of a graph that has changed. Mistakes of the caller are none of these.
bool IsOfRecording(const std::exception& error) {
  if (dynamic_cast<const Error*>(&error) != nullptr) {
    return dynamic_cast<const NotPerExample*>(&error) != nullptr;
  }
  return dynamic_cast<const c10::Error*>(&error) != nullptr ||
         dynamic_cast<const std::runtime_error*>(&error) != nullptr;
}

// Sizes of an example and types of a batch.
bool SameKind(const Batch& a, const Batch& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const at::Tensor& x, const at::Tensor& y) {
                      return x.scalar_type() == y.scalar_type() && x.device() == y.device() &&
                             x.sizes().slice(1) == y.sizes().slice(1);
                    });
}

}  // namespace

// What a recording was made for.
struct RecordedFor {
  const LossFunction* loss = nullptr;
  const std::type_info* function = nullptr;
  const std::type_info* policy = nullptr;
  std::vector<double> numbers;
  std::vector<std::int64_t> groups;
  std::int64_t size = 0;
  std::vector<const void*> parameters;

  bool operator==(const RecordedFor&) const = default;
};

struct RecordedSums::Recording {
  RecordedFor key;
  Batch inputs;  // of `size` examples
  at::Tensor mask;
  Totals outputs;
  std::unique_ptr<RecordedGraph> graph;
  // To the outputs and their memory, when they were last handed out as they are.
  std::vector<std::size_t> references;

  void Fill(const Batch& batch, std::int64_t micro_batch);
  std::vector<std::size_t> References() const;
  bool IsLent() const { return !references.empty() && References() != references; }
  Totals Lent();
  Totals Copied() const;
};

// The examples, and copies of the first one after them.
void RecordedSums::Recording::Fill(const Batch& batch, std::int64_t micro_batch) {
  const at::NoGradGuard no_grad;
  const std::int64_t examples = Examples(batch);
  const std::int64_t units = examples / micro_batch;
  if (kKernelsAreBuilt && mask.is_cuda() && CanCopyPadded(batch, inputs)) {
    DevicePaddedCopy(PaddedTensorsOf(batch, inputs, mask, units), mask);
    return;
  }
  for (std::size_t k = 0; k < batch.size(); ++k) {
    inputs[k].narrow(0, 0, examples).copy_(batch[k], /*non_blocking=*/true);
    if (examples == key.size) continue;
    const at::Tensor rest = inputs[k].narrow(0, examples, key.size - examples);
    rest.copy_(batch[k].narrow(0, 0, 1).expand_as(rest), /*non_blocking=*/true);
  }
  mask.narrow(0, 0, units).fill_(true);
  mask.narrow(0, units, mask.numel() - units).fill_(false);
}

// How many tensors refer to each of the outputs, and how many to its memory.
std::vector<std::size_t> RecordedSums::Recording::References() const {
  std::vector<std::size_t> counts;
  counts.reserve(2 * outputs.gradients.size() + 4);
  const auto count = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    counts.push_back(tensor.use_count());
    counts.push_back(tensor.storage().use_count());
  };
  for (const at::Tensor& gradient : outputs.gradients) count(gradient);
  count(outputs.clipped);
  count(outputs.counts);
  return counts;
}

Totals RecordedSums::Recording::Lent() {
  references = References();
  return outputs;
}

// The next replay writes over the outputs. One copy of all gradients, where they have one type.
Totals RecordedSums::Recording::Copied() const {
  const at::NoGradGuard no_grad;
  Totals totals;
  totals.gradients.resize(outputs.gradients.size());
  std::vector<at::Tensor> rows;
  rows.reserve(outputs.gradients.size());
  bool have_one_type = true;
  for (const at::Tensor& gradient : outputs.gradients) {
    if (!gradient.defined()) continue;
    rows.push_back(gradient.reshape({-1}));
    have_one_type = have_one_type && rows.back().scalar_type() == rows.front().scalar_type();
  }
  const at::Tensor joined = have_one_type && !rows.empty() ? at::cat(rows) : at::Tensor();
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < outputs.gradients.size(); ++k) {
    const at::Tensor& gradient = outputs.gradients[k];
    if (!gradient.defined()) continue;
    totals.gradients[k] = joined.defined()
                              ? joined.narrow(0, begin, gradient.numel()).view(gradient.sizes())
                              : gradient.clone();
    begin += gradient.numel();
  }
  totals.clipped = outputs.clipped.clone();
  if (outputs.counts.defined()) totals.counts = outputs.counts.clone();
  totals.norms = outputs.norms;
  return totals;
}

RecordedSums::RecordedSums(PartClipper& parts, Recorder recorder)
    : parts_(parts), recorder_(std::move(recorder)) {}

RecordedSums::~RecordedSums() = default;

// The recording of such parts; made, and empty, when they are seen for the first time.
RecordedSums::Recording* RecordedSums::Find(const LossFunction& loss, const Batch& batch,
                                            const ClippingPolicy& policy, std::int64_t size) {
  RecordedFor key{.loss = &loss,
                  .function = &loss.target_type(),
                  .policy = &typeid(policy),
                  .numbers = policy.Numbers(),
                  .groups = policy.Groups(parts_.parameters()),
                  .size = size,
                  .parameters = AddressesOf(parts_.parameters())};
  for (auto recording = recordings_.begin(); recording != recordings_.end(); ++recording) {
    if (!((*recording)->key == key) || !SameKind((*recording)->inputs, batch)) continue;
    std::rotate(recordings_.begin(), recording, recording + 1);  // the last one used is the first
    return recordings_.front().get();
  }
  if (recordings_.size() == kMaxRecordings) recordings_.pop_back();
  auto recording = std::make_unique<Recording>();
  recording->key = std::move(key);
  recording->inputs.reserve(batch.size());
  // Sizes and types to compare with; memory only when it is recorded.
  for (const at::Tensor& tensor : batch) {
    std::vector<std::int64_t> sizes = tensor.sizes().vec();
    sizes.front() = 0;
    recording->inputs.push_back(at::empty(sizes, tensor.options()));
  }
  recordings_.insert(recordings_.begin(), std::move(recording));
  return nullptr;
}

void RecordedSums::Record(Recording& recording, const LossFunction& loss, const Batch& batch,
                          const ClippingPolicy& policy) {
  const std::int64_t micro_batch = parts_.sum().micro_batch;
  for (std::size_t k = 0; k < batch.size(); ++k) {
    std::vector<std::int64_t> sizes = batch[k].sizes().vec();
    sizes.front() = recording.key.size;
    recording.inputs[k] = at::empty(sizes, batch[k].options());
  }
  recording.mask = at::zeros({recording.key.size / micro_batch},
                             batch.front().options().dtype(at::kBool).requires_grad(false));
  recording.Fill(batch, micro_batch);
  recording.graph = recorder_(batch.front().device(), [&] {
    recording.outputs = parts_.MaskedSum(loss, recording.inputs, policy, recording.mask);
  });
}

bool RecordedSums::Takes(const ClippingPolicy& policy) {
  return !policy.Numbers().empty() && policy.transform() == nullptr && policy.CountBound() == 0;
}

void RecordedSums::Failed(const std::exception& error) {
  recordings_.erase(recordings_.begin());
  if (IsOutOfMemory(error)) {
    problem_ = "there is not enough memory for a recorded step beside the others.";
  } else if (++failures_ < kMaxFailures) {
    return;
  } else if (const auto* told = dynamic_cast<const NotPerExample*>(&error)) {
    problem_ = told->what();
  } else if (std::string_view(error.what()).find("captur") != std::string_view::npos) {
    problem_ =
        "an operation of the model cannot be recorded, for example because it reads a value from "
        "the device.";
  } else {
    problem_ = "an operation of the model failed while it was recorded.";
  }
}

std::optional<Totals> RecordedSums::Sum(const LossFunction& loss, const Batch& batch,
                                        const ClippingPolicy& policy, std::int64_t size,
                                        bool may_lend) {
  if (!problem_.empty()) return std::nullopt;
  const std::int64_t micro_batch = parts_.sum().micro_batch;
  if (!Takes(policy) || size < 2 * micro_batch || size % micro_batch != 0 ||
      Examples(batch) % micro_batch != 0) {
    return std::nullopt;
  }
  Recording* const recording = Find(loss, batch, policy, size);
  if (recording == nullptr) return std::nullopt;
  if (recording->IsLent()) {
    // Somebody keeps sums. The memory of this one is theirs, and later ones are copies.
    lends_ = false;
    recordings_.erase(recordings_.begin());
    return std::nullopt;
  }
  try {
    if (!recording->graph) {
      Record(*recording, loss, batch, policy);
    } else {
      recording->Fill(batch, micro_batch);
    }
    recording->graph->Replay();
  } catch (const std::exception& error) {
    if (!IsOfRecording(error)) throw;
    Failed(error);
    return std::nullopt;
  }
  has_replayed_ = true;
  return may_lend && lends_ ? recording->Lent() : recording->Copied();
}

}  // namespace sordino
