// PrepareRun of training_run.h: from settings to a plan, a model and everything that can be known
// before the data are read.
#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"
#include "sordino/clipping/clipping_component.h"
#include "sordino/clipping/norms_component.h"
#include "sordino/device/precision.h"
#include "sordino/device/threads.h"
#include "sordino/gradients/example_count.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/runs/config_trainer.h"
#include "sordino/runs/internal/run_plan.h"
#include "sordino/runs/internal/training_loop.h"
#include "sordino/runs/training_run.h"
#include "sordino/training/canary_records.h"
#include "sordino/training/classification.h"

namespace sordino {
namespace {

// The noise of every step can be drawn for sums of this sensitivity, that of the smallest bounds.
void TryNoise(const PrivacyPlan& plan, const ClippingState& clipping, const BoundedSum& sum) {
  std::int64_t coordinates = 0;
  for (const at::Tensor& gradient : sum.gradients) coordinates += gradient.numel();
  const double smallest = plan.SmallestClip().value();
  const double remembered = plan.Memory().Rounding();
  for (std::int64_t step = 0; step < plan.steps(); ++step) {
    const double wider = plan.StepClip(step).value() / smallest;
    static_cast<void>(StepGrid({.kind = &plan.noise_kind(),
                                .multiplier = clipping.GradientNoise(plan.StepNoise(step)),
                                .unit_share = plan.UnitShare(),
                                .divisor = plan.Divisor(step),
                                .largest_batch = static_cast<double>(plan.LargestBatch()),
                                .step = step,
                                .remembered = remembered},
                               L2Sensitivity(sum.sensitivity.value() * wider), coordinates));
    if (plan.options().noise_schedule.IsConstant() && plan.options().clip_schedule.IsConstant()) {
      return;
    }
  }
}

// One clipped step of nothing but made-up records: a model that mixes examples, or a layer that
// cannot be differentiated by example, is refused before anything is spent.
void TryStep(const PreparedRun& run) {
  const std::int64_t copies = run.config.training.copies;
  const Batch batch =
      MadeUpBatch(run.declaration, *run.model,
                  std::max<std::int64_t>(3, run.plan.options().micro_batch), copies, run.device);
  const FeatureShape feature_shape = batch[0].sizes().slice(1).vec();
  run.model->Train(true);
  const at::Tensor rows = copies > 1 ? batch[0].flatten(0, 1) : batch[0];
  const at::Tensor logits = Logits(*run.model, rows, feature_shape);
  if (logits.dim() != 2 || logits.size(0) != rows.size(0) ||
      logits.size(1) != run.declaration.Outputs()) {
    throw Error(fmt::format("the model '{}' does not fit the data: it must give {} for an example.",
                            run.config.ModelName(),
                            run.declaration.target ? std::string("one number")
                                                   : fmt::format("{} numbers, one for each class,",
                                                                 run.declaration.classes)));
  }
  if (run.privacy == RunPrivacy::kNonPrivate) return;
  // With the bounds of the plan: batches that are too large for the rounding are found here too.
  const auto sums = run.plan.StartSums(ParametersOf(*run.model), GradientOptionsOf(run.config));
  const auto clipping = HasNoise(run.privacy)
                            ? run.plan.StartClipping(sums->parameters())
                            : run.plan.StartClippingWithoutNoise(sums->parameters());
  const LossFunction loss = LossOf(run.declaration, *run.model, copies, feature_shape,
                                   ClassWeightsOf(run.config, run.device));
  // Sums are rounded least well for the smallest bounds.
  const ClippingPolicy& policy = clipping->TightestPolicy(run.plan.SmallestClip());
  RandomSource random;
  if (!AreRecords(run.config.run.canary_kind)) {
    CheckCanaries(run.config.run.canaries, sums->parameters());
  }
  if (policy.transform() != nullptr) {
    // Gradients as they are, which are compared with those of ordinary autograd.
    static_cast<void>(
        sums->Sum(loss, batch, FlatClipping(run.plan.StepClip(0)), /*step=*/0, random));
  }
  const BoundedSum sum = sums->Sum(loss, batch, policy, /*step=*/0, random);
  if (!HasNoise(run.privacy)) return;
  TryNoise(run.plan, *clipping, sum);
  if (run.plan.options().held_out) {
    static_cast<void>(CountExamples(
        RightPredictions(*run.model, feature_shape),
        MadeUpBatch(run.declaration, *run.model, /*examples=*/3, /*copies=*/1, run.device),
        run.config.training.fallback));
  }
}

// What the run would only find after its first charge.
void CheckStart(const TrainConfig& config, const Model& model) {
  static_cast<void>(
      Optimizer(ParametersOf(model), OptimizerOptionsOf(config), *config.training.steps));
  const std::string name = internal::NonFiniteWeight(model);
  if (!name.empty()) {
    throw Error(fmt::format(
        "a weight of '{}' is not a finite number before the first step; give other weights to "
        "start from.",
        name));
  }
}

void CheckAugmentation(const PreparedRun& run) {
  if (!AugmentationOptionsOf(run.config).Changes()) return;
  if (run.declaration.kind != InputKind::kImage) {
    throw Error(
        "--flip, --shift and --copies change images, and the data are none; leave them out.");
  }
  if (run.model->HasFeatures()) {
    throw Error(
        fmt::format("the model '{}' computes its features once for each record, so records cannot "
                    "be changed at "
                    "random; leave out --flip, --shift and --copies.",
                    run.config.ModelName()));
  }
}

std::string LedgerFile(const TrainConfig& config) {
  std::string ledger = LedgerOfData(config.run.ledger, config.data);
  if (!ledger.empty() && !config.AddsNoise()) {
    throw Error(fmt::format(
        "a run without privacy cannot be charged to the ledger '{}'; leave out {}, or use "
        "data that have no ledger.",
        ledger, config.run.non_private ? "--non-private" : "--noise 0"));
  }
  return ledger;
}

PreparedRun Assembled(TrainConfig config, DatasetDeclaration declaration, c10::Device device,
                      std::unique_ptr<Model> model, std::optional<double> noise) {
  PrivacyPlan plan = internal::MakePlan(config, declaration, noise);
  const RunPrivacy privacy = internal::PrivacyOf(config);
  return {.config = std::move(config),
          .declaration = std::move(declaration),
          .device = device,
          .model = std::move(model),
          .plan = std::move(plan),
          .privacy = privacy,
          .facts = {},
          .resume = std::nullopt};
}

c10::Device UseDevice(const TrainConfig& config, int local_rank) {
  const c10::Device device = ParseDevice(config.training.device, local_rank);
  // What names no GPU of its own takes this one, and no memory of others.
  if (device.is_cuda()) c10::impl::VirtualGuardImpl(c10::kCUDA).setDevice(device);
  UsePrecision(ParsePrecision("--precision", config.training.precision));
  // A seed is for the same bits again, and cuDNN's fastest convolutions do not give them.
  if (config.run.insecure_seed) at::globalContext().setDeterministicCuDNN(true);
  return device;
}

}  // namespace

PreparedRun PrepareRun(const TrainConfig& config, int local_rank) {
  return internal::PrepareWithNoise(config, std::nullopt, local_rank);
}

PreparedRun internal::PrepareUntold(const TrainConfig& config, std::optional<double> noise,
                                    int local_rank) {
  // What needs no data comes first, so that a misspelt name is not hidden by a missing file.
  const c10::Device device = UseDevice(config, local_rank);
  if (config.data.source.empty()) Completed(config, {});  // says what is missing
  DatasetDeclaration declaration = Declare(config.data);
  TrainConfig completed = Completed(config, declaration);
  if (config.training.threads > 0) UseThreads(static_cast<int>(config.training.threads));
  // Left to libtorch there may be more than equal places allow.
  if (GradientOptionsOf(completed).equal_places && device.is_cpu() &&
      at::get_num_threads() > kThreadsOfEqualPlaces) {
    UseThreads(kThreadsOfEqualPlaces);
  }
  completed.run.ledger = LedgerFile(completed);
  std::unique_ptr<Model> model = MakeConfiguredModel(completed, ModelShapeOf(declaration), device);
  CheckStart(completed, *model);
  PreparedRun run =
      Assembled(std::move(completed), std::move(declaration), device, std::move(model), noise);
  CheckAugmentation(run);
  TryStep(run);
  return run;
}

PreparedRun internal::PrepareWithNoise(const TrainConfig& config, std::optional<double> noise,
                                       int local_rank) {
  PreparedRun run = PrepareUntold(config, noise, local_rank);
  run.facts =
      internal::PlannedFacts(run.config, run.declaration, run.plan, run.model->Description());
  if (run.config.run.canaries > 0 && !std::isfinite(run.facts.epsilon.upper)) {
    throw Error(
        "--canaries audit what is claimed of a run, and this one has no finite epsilon; give more "
        "noise, or leave them out.");
  }
  return run;
}

PreparedRun internal::PrepareServing(const TrainConfig& config, double noise, int local_rank) {
  const c10::Device device = UseDevice(config, local_rank);
  DatasetDeclaration declaration = Declare(config.data);
  TrainConfig completed = Completed(config, declaration);
  std::unique_ptr<Model> model = MakeConfiguredModel(completed, ModelShapeOf(declaration), device);
  return Assembled(std::move(completed), std::move(declaration), device, std::move(model), noise);
}

}  // namespace sordino
