#include "sordino/training/internal/data_canaries.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sordino/data/batch_loader.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/gradients/saved_tensors.h"
#include "sordino/training/internal/canary_score.h"

namespace sordino {
namespace {

constexpr std::int64_t kPassCanaries = 500;
// How far the losses are compared from the present model, as a share of its norm.
constexpr double kStepShare = 0.01;

Batch CanaryBatch(const Dataset& records, const at::Tensor& labels,
                  const DataCanaryOptions& options) {
  at::Tensor inputs = LoadRange(records, 0, records.size(), options.device)[0];
  if (options.copies > 1) {
    std::vector<std::int64_t> sizes = inputs.sizes().vec();
    sizes.insert(sizes.begin() + 1, options.copies);
    inputs = inputs.unsqueeze(1).expand(sizes).contiguous();
  }
  return {inputs, labels.to(options.device)};
}

double NormOf(const std::vector<at::Tensor>& tensors) {
  double squares = 0;
  for (const at::Tensor& tensor : tensors) {
    squares += tensor.detach().to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(squares);
}

std::vector<at::Tensor> Values(const std::vector<NamedParameter>& parameters) {
  std::vector<at::Tensor> values;
  values.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) values.push_back(parameter.value.detach());
  return values;
}

// The parameters are elsewhere while this lives, and bit for bit where they were afterwards.
class Moved {
 public:
  explicit Moved(std::vector<at::Tensor> values) : values_(std::move(values)) {
    for (const at::Tensor& value : values_) kept_.push_back(value.clone());
  }
  ~Moved() { CopyBack(); }
  Moved(const Moved&) = delete;
  Moved& operator=(const Moved&) = delete;

  void By(const std::vector<at::Tensor>& direction, double factor) {
    CopyBack();
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i].add_(direction[i].to(values_[i].scalar_type()), factor);
    }
  }

 private:
  void CopyBack() {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i].copy_(kept_[i]);
  }

  std::vector<at::Tensor> values_;
  std::vector<at::Tensor> kept_;
};

// A model that left the range of its numbers tells nothing about a canary.
at::Tensor Finite(const at::Tensor& values) { return values.nan_to_num(0, 0, 0); }

at::Tensor LessMedian(const at::Tensor& values) { return values - values.median(); }

}  // namespace

DataCanaries::DataCanaries(const CanaryRecords& records, std::vector<NamedParameter> parameters,
                           LossFunction losses, const DataCanaryOptions& options, Generator& stream)
    : parameters_(std::move(parameters)),
      losses_(std::move(losses)),
      clipper_(parameters_, options.gradients,
               {.largest_batch = std::max<std::int64_t>(1, records.records.size())}),
      are_replaced_(options.adjacency == Adjacency::kReplaceOne) {
  const std::int64_t count = records.records.size();
  in_ = CanaryBatch(records.records, records.records.labels, options);
  if (are_replaced_) out_ = {in_[0], records.other_labels.to(options.device)};
  is_in_ = at::zeros({count}, at::TensorOptions().dtype(at::kLong));
  for (std::int64_t i = 0; i < count; ++i) {
    is_in_.mutable_data_ptr<std::int64_t>()[i] = static_cast<std::int64_t>(stream.Next64() & 1);
  }
  start_ = Advantage();
  scores_ = at::zeros({count}, at::TensorOptions().dtype(at::kDouble));
  static_cast<void>(clipper_.Norms(losses_, in_, FlatClipping(ClipNorm(1))));
}

Dataset DataCanaries::Joined(const Dataset& data, const CanaryRecords& canaries,
                             Adjacency adjacency) {
  std::vector<at::Tensor> inputs = {data.inputs, canaries.records.inputs};
  std::vector<at::Tensor> labels = {data.labels, canaries.records.labels};
  if (adjacency == Adjacency::kReplaceOne) {
    inputs.push_back(canaries.records.inputs);
    labels.push_back(canaries.other_labels);
  }
  Dataset joined;
  joined.declaration = data.declaration;
  joined.inputs = at::cat(inputs);
  joined.labels = at::cat(labels);
  return joined;
}

void DataCanaries::Place(std::vector<std::uint64_t>& batch, std::uint64_t records) const {
  const auto* const is_in = is_in_.const_data_ptr<std::int64_t>();
  const auto is_out = [&](std::uint64_t index) {
    return index >= records && is_in[index - records] == 0;
  };
  if (!are_replaced_) {
    std::erase_if(batch, is_out);
    return;
  }
  for (std::uint64_t& index : batch) {
    if (is_out(index)) index += static_cast<std::uint64_t>(size());
  }
}

at::Tensor DataCanaries::Losses(const Batch& batch) const {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < size(); begin += kPassCanaries) {
    const Batch part = Slice(batch, begin, std::min(size(), begin + kPassCanaries));
    parts.push_back(losses_(part).to(at::kCPU, at::kDouble));
  }
  return at::cat(parts);
}

at::Tensor DataCanaries::Advantage() const {
  const at::Tensor losses = Losses(in_);
  return Finite(are_replaced_ ? Losses(out_) - losses : -losses);
}

void DataCanaries::AddScores(const Batch& batch, double sign, const NoisedGradients& gradient,
                             double divisor, SamplingRate rate, ClipNorm bound,
                             const std::function<void()>& reseed) {
  reseed();
  const at::Tensor norms = clipper_.Norms(losses_, batch, FlatClipping(bound)).sum(0).to(at::kCPU);
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> values = Values(parameters_);
  const double length = NormOf(gradient.value());
  const double reach = kStepShare * std::max(1.0, NormOf(values));
  at::Tensor ahead;
  at::Tensor behind;
  {
    Moved model(values);
    model.By(gradient.value(), reach / length);
    reseed();
    ahead = Losses(batch);
    model.By(gradient.value(), -reach / length);
    reseed();
    behind = Losses(batch);
  }
  const at::Tensor products = (ahead - behind) * (divisor * length / (2 * reach));
  const at::Tensor seen = LessMedian(Finite(products / norms)).contiguous();
  const at::Tensor kept = Finite(norms).clamp_max(bound.value()).contiguous();
  const double noise = gradient.standard_deviation() * divisor;
  for (std::int64_t i = 0; i < size(); ++i) {
    scores_.mutable_data_ptr<double>()[i] +=
        sign * internal::StepScore(seen.const_data_ptr<double>()[i],
                                   kept.const_data_ptr<double>()[i], noise, rate);
  }
}

void DataCanaries::Observe(const NoisedGradients& gradient, double divisor, SamplingRate rate,
                           ClipNorm bound, const std::function<void()>& reseed) {
  AddScores(in_, 1, gradient, divisor, rate, bound, reseed);
  if (are_replaced_) AddScores(out_, -1, gradient, divisor, rate, bound, reseed);
}

CanaryScores DataCanaries::Scores() const {
  const at::Tensor last = LessMedian(Advantage() - start_).contiguous();
  const at::Tensor updates = LessMedian(Finite(scores_)).contiguous();
  CanaryScores result;
  for (std::int64_t i = 0; i < size(); ++i) {
    result.is_in.push_back(static_cast<char>(is_in_.const_data_ptr<std::int64_t>()[i]));
    result.every_update.push_back(updates.const_data_ptr<double>()[i]);
    result.last_model.push_back(last.const_data_ptr<double>()[i]);
  }
  return result;
}

NamedTensors DataCanaries::Save() const {
  return {{"canary.in", is_in_.clone()},
          {"canary.start", start_.clone()},
          {"canary.scores", scores_.clone()}};
}

void DataCanaries::Restore(SavedTensors& saved) {
  is_in_ = saved.Take("canary.in", {size()}, at::kLong).clone();
  start_ = saved.Take("canary.start", {size()}, at::kDouble).clone();
  scores_ = saved.Take("canary.scores", {size()}, at::kDouble).clone();
}

}  // namespace sordino
