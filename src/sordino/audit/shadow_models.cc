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

#include "sordino/audit/internal/stacked_training.h"
#include "sordino/base/error.h"
#include "sordino/data/batch_loader.h"
#include "sordino/data/catalog.h"
#include "sordino/random/random_source.h"
#include "sordino/runs/config_trainer.h"

namespace sordino {
namespace {

using internal::StackedShadow;

constexpr std::int64_t kPassRecords = 500;
constexpr std::int64_t kMinAudited = 4;
constexpr std::int64_t kStackedShadows = 8;  // models that are trained at once

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
  if (!config.AddsNoise()) return NoiseMultiplier(1);
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

// Halves and seeds, drawn one model after the other.
class ShadowMaker {
 public:
  ShadowMaker(const TrainedRun& run, const Dataset& data, const ShadowOptions& options)
      : run_(run),
        data_(data),
        options_(options),
        random_(options.seed ? RandomSource(*options.seed) : RandomSource()),
        stream_(random_.Stream({.step = 0, .rank = 0, .tensor = kSamplingStream})),
        noise_(NoiseOf(run)) {}

  StackedShadow Next() {
    saw_.push_back(saw_.size() % 2 == 0 ? RandomHalf(data_.size(), *stream_)
                                        : saw_.back().logical_not());
    Dataset seen = Selected(data_, saw_.back().nonzero().squeeze(1));
    PrivacyPlan plan = ShadowPlan(run_, noise_, seen.size());
    return {.model = MakeConfiguredModel(run_.config, ModelShapeOf(run_.data), options_.device),
            .seen = std::move(seen),
            .plan = std::move(plan),
            .seed = options_.seed ? std::optional<std::uint64_t>(stream_->Next64()) : std::nullopt};
  }

  const std::vector<at::Tensor>& saw() const { return saw_; }

 private:
  const TrainedRun& run_;
  const Dataset& data_;
  const ShadowOptions& options_;
  RandomSource random_;
  std::unique_ptr<Generator> stream_;
  NoiseMultiplier noise_;
  std::vector<at::Tensor> saw_;
};

void TrainAlone(const TrainConfig& config, StackedShadow& shadow, c10::Device device,
                const std::function<void(double)>& progress) {
  Model& model = *shadow.model;
  FeatureShape features;
  if (model.HasFeatures()) {
    model.Train(false);
    shadow.seen = WithFeatures(shadow.seen, model, device, &features, [](double) {});
  }
  TrainerOptions options;
  options.loader.device = device;
  options.insecure_seed = shadow.seed;
  Trainer trainer =
      MakeTrainer(config, shadow.plan, model, features, shadow.seen, std::move(options));
  model.Train(true);
  trainer.Run([&](std::int64_t steps) {
    progress(static_cast<double>(steps) / static_cast<double>(trainer.plan().steps()));
    return true;
  });
  // What the model keeps when the trainer is gone.
  std::vector<at::Tensor> averages;
  {
    const Optimizer::AveragedWeights averaged(trainer.optimizer());
    for (const auto& [name, value] : model.Parameters()) averages.push_back(value.detach().clone());
  }
  const at::NoGradGuard no_grad;
  const auto parameters = model.Parameters();
  for (std::size_t i = 0; i < averages.size(); ++i) {
    parameters[i].second.detach().copy_(averages[i]);
  }
}

// What each of them says of the records, [models, records].
at::Tensor TrainedGroup(const TrainConfig& config, std::vector<StackedShadow>& group,
                        const Dataset& data, const ShadowOptions& options,
                        const std::function<void(double)>& progress) {
  const bool stacked =
      options.stacked && std::all_of(group.begin(), group.end(), [&](const StackedShadow& shadow) {
        return internal::CanBeStacked(config, *shadow.model, shadow.plan, options.device);
      });
  if (stacked) {
    internal::TrainStacked(config, group, progress);
    return internal::StackedConfidences(config, group, data);
  }
  const auto count = static_cast<double>(group.size());
  std::vector<at::Tensor> confidences;
  for (std::size_t k = 0; k < group.size(); ++k) {
    TrainAlone(config, group[k], options.device,
               [&](double share) { progress((static_cast<double>(k) + share) / count); });
    group[k].model->Train(false);
    confidences.push_back(ConfidencesOf(*group[k].model, data, options.device));
  }
  return at::stack(confidences);
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
  ShadowMaker maker(run, data, options);
  std::vector<at::Tensor> confidences;
  for (std::int64_t begin = 0; begin < options.shadows; begin += kStackedShadows) {
    const std::int64_t count = std::min(kStackedShadows, options.shadows - begin);
    std::vector<StackedShadow> group;
    for (std::int64_t k = 0; k < count; ++k) group.push_back(maker.Next());
    const auto tell = [&](double share) {
      if (!options.progress) return;
      options.progress((static_cast<double>(begin) + share * static_cast<double>(count)) /
                       static_cast<double>(options.shadows));
    };
    confidences.push_back(TrainedGroup(run.config, group, data, options, tell));
  }
  return {.confidences = at::cat(confidences), .saw = at::stack(maker.saw())};
}

}  // namespace sordino
