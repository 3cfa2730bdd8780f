#include "sordino/audit/internal/stacked_training.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "sordino/audit/membership.h"
#include "sordino/data/batch_loader.h"
#include "sordino/models/stacked_model.h"
#include "sordino/optimizers/optimizer.h"
#include "sordino/random/random_source.h"

namespace sordino::internal {
namespace {

constexpr double kMinExpectedBatch = 40;  // e^-40 = 4e-18
constexpr std::int64_t kRecordsOfAPass = 64;

// The batches of one model.
class ShadowBatches {
 public:
  ShadowBatches(const StackedShadow& shadow, const LoaderOptions& options)
      : steps_(shadow.plan.steps()),
        random_(shadow.seed ? RandomSource(*shadow.seed) : RandomSource()),
        sampler_(shadow.plan.sampler().Make(
            shadow.plan.sampling(), static_cast<std::uint64_t>(shadow.seen.size()), random_)),
        loader_(std::make_unique<BatchLoader>(shadow.seen, options)) {
    Request();
  }

  // That of the next step.
  std::vector<at::Tensor> Take() {
    std::vector<at::Tensor> batch = loader_->Take();
    Request();
    return batch;
  }

 private:
  void Request() {
    if (requested_ == steps_) return;
    const auto stream = random_.Stream(
        {.step = static_cast<std::uint64_t>(requested_), .rank = 0, .tensor = kSamplingStream});
    std::vector<std::uint64_t> indices = sampler_->Batch(requested_, *stream);
    loader_->Request(std::move(indices), stream->Next64());
    ++requested_;
  }

  std::int64_t steps_;
  RandomSource random_;
  std::unique_ptr<BatchSampler> sampler_;
  std::unique_ptr<BatchLoader> loader_;
  std::int64_t requested_ = 0;
};

// Batches of different sizes in one: rows without an example have the weight 0.
struct PaddedBatch {
  at::Tensor inputs;   // [k, n, ...]
  at::Tensor labels;   // [k, n]
  at::Tensor weights;  // [k, n], 1 / (size of the batch of the model)
};

PaddedBatch Padded(std::deque<ShadowBatches>& models) {
  std::vector<std::vector<at::Tensor>> batches;
  std::int64_t rows = 1;
  for (ShadowBatches& model : models) {
    batches.push_back(model.Take());
    rows = std::max(rows, batches.back()[1].size(0));
  }
  const auto count = static_cast<std::int64_t>(batches.size());
  std::vector<std::int64_t> sizes = {count, rows};
  const at::Tensor& like = batches[0][0];
  for (std::int64_t i = 1; i < like.dim(); ++i) sizes.push_back(like.size(i));
  PaddedBatch padded = {.inputs = at::zeros(sizes, like.options()),
                        .labels = at::zeros({count, rows}, at::kLong),
                        .weights = at::zeros({count, rows}, at::kFloat)};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::vector<at::Tensor>& batch = batches[static_cast<std::size_t>(i)];
    const std::int64_t size = batch[1].size(0);
    if (size == 0) continue;
    padded.inputs[i].narrow(0, 0, size).copy_(batch[0]);
    padded.labels[i].narrow(0, 0, size).copy_(batch[1]);
    padded.weights[i].narrow(0, 0, size).fill_(1 / static_cast<double>(size));
  }
  return padded;
}

std::vector<NamedParameter> Stacked(const std::vector<StackedShadow>& shadows) {
  std::vector<NamedParameter> stacked;
  const auto first = shadows[0].model->Parameters();
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::vector<at::Tensor> values;
    values.reserve(shadows.size());
    for (const StackedShadow& shadow : shadows) {
      values.push_back(shadow.model->Parameters()[i].second.detach());
    }
    stacked.push_back({first[i].first, at::stack(values).set_requires_grad(true)});
  }
  return stacked;
}

void Unstack(const std::vector<NamedParameter>& stacked, std::vector<StackedShadow>& shadows) {
  const at::NoGradGuard no_grad;
  for (std::size_t k = 0; k < shadows.size(); ++k) {
    const auto parameters = shadows[k].model->Parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i].second.detach().copy_(stacked[i].value[static_cast<std::int64_t>(k)]);
    }
  }
}

}  // namespace

bool CanBeStacked(const TrainConfig& config, const Model& model, const PrivacyPlan& plan,
                  c10::Device device) {
  const OptimizerOptions optimizer = OptimizerOptionsOf(config);
  const auto parameters = model.Parameters();
  return config.run.non_private && device.is_cpu() && config.model.script.empty() &&
         config.training.copies == 1 && optimizer.projection_radius == 0 && !model.HasFeatures() &&
         plan.options().batch >= kMinExpectedBatch &&
         static_cast<bool>(FindStackedForward(config.model.name, ModelOptionsOf(config))) &&
         std::all_of(parameters.begin(), parameters.end(),
                     [](const auto& entry) { return entry.second.requires_grad(); });
}

void TrainStacked(const TrainConfig& config, std::vector<StackedShadow>& shadows,
                  const std::function<void(double share)>& progress) {
  const StackedForward forward = FindStackedForward(config.model.name, ModelOptionsOf(config));
  LoaderOptions loader;
  loader.augmentation = AugmentationOptionsOf(config);
  std::deque<ShadowBatches> batches;  // a sampler may refer to its source: nothing moves
  for (StackedShadow& shadow : shadows) {
    shadow.model->Train(true);
    batches.emplace_back(shadow, loader);
  }
  const std::vector<NamedParameter> parameters = Stacked(shadows);
  std::vector<at::Tensor> values;
  values.reserve(parameters.size());
  for (const NamedParameter& parameter : parameters) values.push_back(parameter.value);
  std::optional<at::Tensor> class_weights;
  if (const at::Tensor weights = ClassWeightsOf(config, c10::kCPU); weights.defined()) {
    class_weights = weights;
  }
  const std::int64_t steps = shadows[0].plan.steps();
  Optimizer optimizer(parameters, OptimizerOptionsOf(config), steps);
  for (std::int64_t step = 0; step < steps; ++step) {
    const PaddedBatch batch = Padded(batches);
    const at::Tensor losses =
        at::cross_entropy_loss(forward(values, batch.inputs).flatten(0, 1), batch.labels.flatten(),
                               class_weights, at::Reduction::None);
    const at::Tensor loss = (losses * batch.weights.flatten()).sum();
    optimizer.StepNonPrivate(torch::autograd::grad({loss}, values));
    if (progress) progress(static_cast<double>(step + 1) / static_cast<double>(steps));
  }
  const Optimizer::AveragedWeights averaged(optimizer);
  Unstack(parameters, shadows);
}

at::Tensor StackedConfidences(const TrainConfig& config, const std::vector<StackedShadow>& shadows,
                              const Dataset& data) {
  const at::NoGradGuard no_grad;
  const StackedForward forward = FindStackedForward(config.model.name, ModelOptionsOf(config));
  std::vector<at::Tensor> values;
  for (const NamedParameter& parameter : Stacked(shadows)) values.push_back(parameter.value);
  const auto models = static_cast<std::int64_t>(shadows.size());
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < data.size(); begin += kRecordsOfAPass) {
    const std::int64_t end = std::min(data.size(), begin + kRecordsOfAPass);
    const at::Tensor inputs = Normalise(data.declaration, data.inputs.slice(0, begin, end));
    std::vector<std::int64_t> sizes = inputs.sizes().vec();
    sizes.insert(sizes.begin(), models);
    const at::Tensor logits = forward(values, inputs.unsqueeze(0).expand(sizes)).flatten(0, 1);
    const at::Tensor labels = data.labels.slice(0, begin, end).repeat({models});
    parts.push_back(ClassConfidences(logits, labels).view({models, -1}));
  }
  return at::cat(parts, 1);
}

}  // namespace sordino::internal
