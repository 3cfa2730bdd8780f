#include "sordino/audit/shadow_models.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/data/batch_loader.h"
#include "sordino/data/catalog.h"
#include "sordino/random/random_source.h"
#include "sordino/training/classification.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

constexpr std::int64_t kPassRecords = 500;
constexpr std::int64_t kMinAudited = 4;

Dataset Selected(const Dataset& data, const at::Tensor& indices) {
  Dataset half;
  half.declaration = data.declaration;
  half.declaration.records = indices.numel();
  half.declaration.rows_per_user = 0;
  half.inputs = data.inputs.index_select(0, indices);
  half.labels = data.labels.index_select(0, indices);
  return half;
}

// A random half, true, and the other one, false.
at::Tensor RandomHalf(std::int64_t records, Generator& stream) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(records));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[stream.Next64() % i]);
  }
  at::Tensor half = at::zeros({records}, at::TensorOptions().dtype(at::kBool));
  for (std::int64_t i = 0; i < records / 2; ++i) {
    half.mutable_data_ptr<bool>()[order[static_cast<std::size_t>(i)]] = true;
  }
  return half;
}

// The declaration of the run with its public number of records, which the file of a model does not
// hold; 0 where it is private.
DatasetDeclaration DeclarationOf(const TrainedRun& run) {
  DatasetDeclaration declaration = run.data;
  if (declaration.records == 0 && !run.config.privacy.rate) {
    declaration.records = Declare(run.config.data).records;
  }
  return declaration;
}

NoiseMultiplier NoiseOf(const TrainedRun& run) {
  const TrainConfig& config = run.config;
  if (config.run.non_private) return NoiseMultiplier(1);
  if (config.privacy.noise) return NoiseMultiplier(*config.privacy.noise);
  const auto plan =
      PrivacyPlan::ForBudget(PlanOptionsOf(config, DeclarationOf(run)),
                             Epsilon(*config.privacy.epsilon), Delta(*config.privacy.delta));
  if (!plan) throw Error("no noise meets the budget of the run, so it cannot be repeated.");
  return plan->noise();
}

// The plan of the run for so many records: the same share of them in a batch.
PrivacyPlan ShadowPlan(const TrainedRun& run, NoiseMultiplier noise, std::int64_t records) {
  PlanOptions options = PlanOptionsOf(run.config, DeclarationOf(run));
  const double rate =
      options.rate ? options.rate->value() : options.batch / static_cast<double>(options.records);
  options.records = records;
  options.rows_per_user = 0;
  options.batch = std::max(1.0, rate * static_cast<double>(records));
  if (!Samplers().Find(options.sampling.name).HasRate()) options.batch = std::round(options.batch);
  options.rate.reset();
  return {options, noise, Delta(*run.config.privacy.delta)};
}

Trainer MakeShadowTrainer(const TrainConfig& config, const PrivacyPlan& plan, const Model& model,
                          const FeatureShape& features, const Dataset& seen, c10::Device device,
                          std::optional<std::uint64_t> seed) {
  TrainerOptions options;
  options.gradients = GradientOptionsOf(config);
  options.loader.augmentation = AugmentationOptionsOf(config);
  options.loader.device = device;
  options.insecure_seed = seed;
  const LossFunction losses =
      CrossEntropy(model, config.training.copies, features, ClassWeightsOf(config, device));
  const OptimizerOptions optimizer = OptimizerOptionsOf(config);
  if (config.run.non_private) {
    return Trainer::NonPrivate(plan, ParametersOf(model), losses, seen, optimizer,
                               std::move(options));
  }
  return {plan, ParametersOf(model), losses, seen, optimizer, std::move(options)};
}

}  // namespace

at::Tensor ConfidencesOf(const Model& model, const Dataset& data, c10::Device device) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> parts;
  for (std::int64_t begin = 0; begin < data.size(); begin += kPassRecords) {
    const std::int64_t end = std::min(data.size(), begin + kPassRecords);
    const at::Tensor inputs =
        Normalise(data.declaration, data.inputs.slice(0, begin, end)).to(device);
    parts.push_back(
        ClassConfidences(model.Forward(model.Features(inputs)), data.labels.slice(0, begin, end))
            .cpu());
  }
  return parts.empty() ? at::zeros({0}, at::kDouble) : at::cat(parts);
}

ShadowConfidences TrainShadows(const TrainedRun& run, const Dataset& data,
                               const ShadowOptions& options) {
  if (options.shadows < kMinShadows || options.shadows > kMaxShadows || options.shadows % 2 != 0) {
    throw Error(fmt::format("the number of shadow models is {}; give an even one from {} to {}.",
                            options.shadows, kMinShadows, kMaxShadows));
  }
  if (data.size() < kMinAudited) {
    throw Error("an audit with shadow models needs at least two members and two others.");
  }
  if (!run.config.training.steps) {
    throw Error(
        "shadow models are trained as the run was, and this one is a fit; give a run of 'sordino "
        "train', or --shadows 0.");
  }
  RandomSource random = options.seed ? RandomSource(*options.seed) : RandomSource();
  const auto stream = random.Stream({.step = 0, .rank = 0, .tensor = kSamplingStream});
  const NoiseMultiplier noise = NoiseOf(run);
  std::vector<at::Tensor> confidences;
  std::vector<at::Tensor> saw;
  for (std::int64_t k = 0; k < options.shadows; ++k) {
    saw.push_back(k % 2 == 0 ? RandomHalf(data.size(), *stream) : saw.back().logical_not());
    TrainConfig config = run.config;
    config.model.seed = stream->Next64() >> 1;
    const std::unique_ptr<Model> model =
        MakeConfiguredModel(config, ModelShapeOf(run.data), options.device);
    Dataset seen = Selected(data, saw.back().nonzero().squeeze(1));
    FeatureShape features;
    if (model->HasFeatures()) {
      model->Train(false);
      seen = WithFeatures(seen, *model, options.device, &features, [](double) {});
    }
    const auto seed = options.seed ? std::optional<std::uint64_t>(stream->Next64()) : std::nullopt;
    Trainer trainer = MakeShadowTrainer(config, ShadowPlan(run, noise, seen.size()), *model,
                                        features, seen, options.device, seed);
    model->Train(true);
    trainer.Run([&](std::int64_t steps) {
      const double share = static_cast<double>(steps) / static_cast<double>(trainer.plan().steps());
      if (options.progress) {
        options.progress((static_cast<double>(k) + share) / static_cast<double>(options.shadows));
      }
      return true;
    });
    const Optimizer::AveragedWeights averaged(trainer.optimizer());
    model->Train(false);
    confidences.push_back(ConfidencesOf(*model, data, options.device));
  }
  return {.confidences = at::stack(confidences), .saw = at::stack(saw)};
}

}  // namespace sordino
