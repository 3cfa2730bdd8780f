#include "sordino/training/classification.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sordino/data/batch_loader.h"

namespace sordino {
namespace {

// Examples in one pass without gradients.
constexpr std::int64_t kChunk = 500;

// The same where a device computes: as many small ones as make its launches worthwhile.
std::int64_t ChunkOf(const Dataset& data, c10::Device device) {
  constexpr std::int64_t kEntries = std::int64_t{1} << 21;
  constexpr std::int64_t kMost = 2500;
  if (device.is_cpu() || data.declaration.kind == InputKind::kTokens) return kChunk;
  const std::int64_t entries = c10::multiply_integers(data.declaration.shape);
  return std::clamp(kEntries / std::max<std::int64_t>(entries, 1), kChunk, kMost);
}

}  // namespace

std::vector<NamedParameter> ParametersOf(const Model& model) {
  std::vector<NamedParameter> parameters;
  for (const auto& [name, value] : model.Parameters()) parameters.push_back({name, value});
  return parameters;
}

at::Tensor Logits(const Model& model, const at::Tensor& inputs, const FeatureShape& features) {
  if (!model.HasFeatures()) return model.Forward(inputs);
  std::vector<std::int64_t> sizes = {inputs.size(0)};
  sizes.insert(sizes.end(), features.begin(), features.end());
  return model.Forward(inputs.view(sizes));
}

LossFunction CrossEntropy(const Model& model, std::int64_t copies, FeatureShape features,
                          const at::Tensor& class_weights) {
  std::optional<at::Tensor> weights;
  if (class_weights.defined()) weights = class_weights;
  return [&model, copies, features = std::move(features), weights](const Batch& batch) {
    if (copies == 1) {
      return at::cross_entropy_loss(Logits(model, batch[0], features), batch[1], weights,
                                    at::Reduction::None);
    }
    // Copies of an example count as one: the mean of their losses has the mean of their gradients.
    const at::Tensor losses =
        at::cross_entropy_loss(Logits(model, batch[0].flatten(0, 1), features),
                               batch[1].repeat_interleave(copies), weights, at::Reduction::None);
    return losses.view({batch[1].size(0), copies}).mean(1);
  };
}

LossFunction SquaredLoss(const Model& model, std::int64_t copies, FeatureShape features) {
  return [&model, copies, features = std::move(features)](const Batch& batch) {
    const at::Tensor rows = copies == 1 ? batch[0] : batch[0].flatten(0, 1);
    const at::Tensor targets = copies == 1 ? batch[1] : batch[1].repeat_interleave(copies);
    const at::Tensor losses =
        Logits(model, rows, features).squeeze(1).sub(targets).square().mul(0.5);
    return copies == 1 ? losses : losses.view({batch[1].size(0), copies}).mean(1);
  };
}

LossFunction LossOf(const DatasetDeclaration& declaration, const Model& model, std::int64_t copies,
                    FeatureShape features, const at::Tensor& class_weights) {
  return declaration.target ? SquaredLoss(model, copies, std::move(features))
                            : CrossEntropy(model, copies, std::move(features), class_weights);
}

Batch MadeUpBatch(const DatasetDeclaration& data, const Model& model, std::int64_t examples,
                  std::int64_t copies, c10::Device device) {
  std::vector<std::int64_t> sizes = {examples};
  if (copies > 1) sizes.push_back(copies);
  sizes.insert(sizes.end(), data.shape.begin(), data.shape.end());
  // The same in every process: what is found out with them depends on the declaration alone.
  at::Tensor inputs;
  if (data.kind == InputKind::kTokens) {
    const std::int64_t words = std::max<std::int64_t>(data.vocabulary - 1, 1);
    inputs =
        at::arange(c10::multiply_integers(sizes), at::kLong).remainder(words).add(1).view(sizes);
  } else {
    inputs = at::randn(sizes, at::detail::createCPUGenerator(/*seed=*/41), at::kFloat);
  }
  inputs = inputs.to(device);
  if (model.HasFeatures()) {
    const at::NoGradGuard no_grad;
    inputs = model.Features(inputs);
  }
  const at::ScalarType label = data.target ? at::kFloat : at::kLong;
  const std::int64_t classes = std::max<std::int64_t>(data.target ? 1 : data.classes, 1);
  return {inputs, at::arange(examples, at::kLong).remainder(classes).to(device, label)};
}

Dataset WithFeatures(const Dataset& data, const Model& model, c10::Device device,
                     FeatureShape* features, const std::function<void(double)>& progress) {
  const at::NoGradGuard no_grad;
  const std::int64_t records = data.size();
  const at::Tensor sample = MadeUpBatch(data.declaration, model, 1, 1, device)[0];
  *features = sample.sizes().slice(1).vec();
  Dataset result = data;
  result.declaration.kind = InputKind::kFeatures;
  result.declaration.normalisation = {};
  result.declaration.shape = {sample.numel() / sample.size(0)};
  result.inputs = at::empty({records, result.declaration.shape[0]}, at::kFloat);
  for (std::int64_t begin = 0; begin < records; begin += kChunk) {
    const std::int64_t end = std::min(records, begin + kChunk);
    const at::Tensor part = model.Features(LoadRange(data, begin, end, device)[0]);
    result.inputs.slice(0, begin, end).copy_(part.flatten(1));
    progress(static_cast<double>(end) / static_cast<double>(records));
  }
  return result;
}

namespace {

TestMetrics EvaluateNumbers(const Model& model, const Dataset& test, c10::Device device,
                            const FeatureShape& features) {
  const at::NoGradGuard no_grad;
  const std::int64_t records = test.size();
  // Read once, at the end: a device is not waited for in between.
  const at::Tensor sums = at::zeros({2}, at::TensorOptions(device).dtype(at::kDouble));
  const std::int64_t chunk = ChunkOf(test, device);
  for (std::int64_t begin = 0; begin < records; begin += chunk) {
    const std::vector<at::Tensor> batch =
        LoadRange(test, begin, std::min(records, begin + chunk), device);
    const at::Tensor gap =
        Logits(model, batch[0], features).squeeze(1).sub(batch[1]).to(at::kDouble);
    sums[0].add_(gap.square().sum());
    sums[1].add_(gap.abs().sum());
  }
  const at::Tensor read = sums.cpu();
  const auto squares = read[0].item<double>();
  const auto distances = read[1].item<double>();
  const auto count = static_cast<double>(std::max<std::int64_t>(records, 1));
  const double unit = test.declaration.target->Unit();
  return {.accuracy = std::nullopt,
          .error = PredictionError{squares / count * unit * unit, distances / count * unit},
          .loss = squares / count / 2};
}

}  // namespace

TestMetrics Evaluate(const Model& model, const Dataset& test, c10::Device device,
                     const FeatureShape& features) {
  if (test.declaration.target) return EvaluateNumbers(model, test, device, features);
  const at::NoGradGuard no_grad;
  const std::int64_t records = test.size();
  // Read once, at the end: a device is not waited for in between. Counts below 2^53 are exact.
  const at::Tensor sums = at::zeros({2}, at::TensorOptions(device).dtype(at::kDouble));
  const std::int64_t chunk = ChunkOf(test, device);
  for (std::int64_t begin = 0; begin < records; begin += chunk) {
    const std::vector<at::Tensor> batch =
        LoadRange(test, begin, std::min(records, begin + chunk), device);
    const at::Tensor logits = Logits(model, batch[0], features);
    sums[0].add_(logits.argmax(1).eq(batch[1]).sum());
    sums[1].add_(at::cross_entropy_loss(logits, batch[1], {}, at::Reduction::Sum));
  }
  const at::Tensor read = sums.cpu();
  const auto count = static_cast<double>(std::max<std::int64_t>(records, 1));
  return {.accuracy = read[0].item<double>() / count,
          .error = std::nullopt,
          .loss = read[1].item<double>() / count};
}

}  // namespace sordino
