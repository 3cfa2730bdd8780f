// PrepareRun of training_run.h: from settings to a plan, a model and everything that can be known
// before the data are read.
#include <ATen/Context.h>
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
#include "sordino/gradients/flat_clipping.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/runs/config_trainer.h"
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
  const auto any_process = [](const StepDraws&) {};  // it asks a little more of the grid
  for (std::int64_t step = 0; step < plan.steps(); ++step) {
    const double wider = plan.StepClip(step).value() / smallest;
    static_cast<void>(StepGrid({.kind = &plan.noise_kind(),
                                .multiplier = clipping.GradientNoise(plan.StepNoise(step)),
                                .unit_share = plan.UnitShare(),
                                .divisor = plan.Divisor(step),
                                .step = step,
                                .earlier = any_process},
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
  const auto clipping = run.plan.StartClipping(sums->parameters());
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
  TryNoise(run.plan, *clipping, sums->Sum(loss, batch, policy, /*step=*/0, random));
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

// Why no noise meets a budget.
std::string NoPlan(const PlanOptions& options, Epsilon epsilon, Delta delta) {
  const double failure = PrivacyPlan(options, NoiseMultiplier(1e6), delta).Failure(options.steps);
  const std::string advice =
      failure > delta.value() * kFailureShares.back()
          ? fmt::format(
                "what can fail beside it has a probability of {:.2g} over these steps "
                "(docs/plan.md), so give a larger delta, fewer steps or norms that fail less",
                failure)
          : "give a larger budget, fewer steps or a smaller batch";
  return fmt::format("no noise meets epsilon {:g} and delta {:g} with {} steps at batch {:g}; {}.",
                     epsilon.value(), delta.value(), options.steps, options.batch, advice);
}

PrivacyPlan MakePlan(const TrainConfig& config, const DatasetDeclaration& declaration,
                     std::optional<double> noise) {
  const PlanOptions options = PlanOptionsOf(config, declaration);
  const Delta delta(*config.privacy.delta);
  if (config.HasAdaptiveNoise()) {
    const double share = *config.privacy.validation_budget;
    const Epsilon epsilon(*config.privacy.epsilon);
    if (noise) return AdaptivePlan(options, share, epsilon, delta, NoiseMultiplier(*noise));
    std::optional<PrivacyPlan> plan = AdaptivePlanForBudget(options, share, epsilon, delta);
    if (!plan) throw Error(NoPlan(options, epsilon, delta));
    return *std::move(plan);
  }
  if (noise) return {options, NoiseMultiplier(*noise), delta};
  if (config.run.non_private) return {options, NoiseMultiplier(1), delta};
  if (config.privacy.noise) return {options, NoiseMultiplier(*config.privacy.noise), delta};
  std::optional<PrivacyPlan> plan =
      PrivacyPlan::ForBudget(options, Epsilon(*config.privacy.epsilon), delta);
  if (!plan) {
    throw Error(NoPlan(options, Epsilon(*config.privacy.epsilon), delta));
  }
  return *std::move(plan);
}

RunPrivacy PrivacyOf(const TrainConfig& config) {
  if (config.run.non_private) return RunPrivacy::kNonPrivate;
  return config.run.insecure_seed ? RunPrivacy::kSeeded : RunPrivacy::kPrivate;
}

Interval EpsilonOf(const PrivacyPlan& plan, RunPrivacy privacy, std::int64_t steps) {
  if (privacy == RunPrivacy::kNonPrivate) return {kInfinity, kInfinity};
  return steps == 0 ? Interval{0, 0} : plan.Epsilon(steps);
}

AdaptiveFacts PlannedAdaptive(const PrivacyPlan& plan, Epsilon epsilon) {
  const PrivacyFilter filter = FilterOf(plan, epsilon);
  AdaptiveFacts facts;
  facts.filter = filter.kind() == PrivacyFilter::Kind::kGaussian
                     ? std::string("Gaussian filter")
                     : fmt::format("Renyi filter of order {:.6g}", filter.order());
  facts.first_noise = plan.noise().value();
  facts.count_noise = plan.options().held_out->count_noise.value();
  return facts;
}

StatementFacts PlannedFacts(const PreparedRun& run) {
  const TrainConfig& config = run.config;
  StatementFacts facts;
  facts.privacy = run.privacy;
  facts.data = run.declaration.name;
  facts.model = run.model->Description();
  facts.records = run.declaration.records;
  facts.rows_per_user = run.declaration.rows_per_user;
  facts.adjacency = run.plan.options().adjacency;
  facts.steps = run.plan.steps();
  facts.planned_steps = run.plan.steps();
  if (config.HasAdaptiveNoise()) {
    facts.adaptive = PlannedAdaptive(run.plan, Epsilon(*config.privacy.epsilon));
    facts.epsilon = {0, *config.privacy.epsilon};
  } else {
    facts.epsilon = EpsilonOf(run.plan, run.privacy, facts.steps);
  }
  facts.delta = run.plan.delta().value();
  facts.charges_epochs = run.plan.sampler().HasWholeEpochs();
  facts.has_secret_batches = run.plan.sampler().IsSecret() || run.plan.options().held_out;
  facts.sampling = run.plan.sampler().Statement();
  if (run.privacy == RunPrivacy::kNonPrivate) {
    facts.plan = fmt::format("{} sampling, batch {:g}, {} steps, without clipping and noise",
                             config.privacy.sampling.name, *config.training.batch, facts.steps);
  } else {
    facts.plan = run.plan.Description();
    facts.norms_assumption = run.plan.norms().Assumption();
    facts.event = run.plan.event().ToString();
  }
  if (!config.run.ledger.empty()) {
    facts.ledger = config.run.ledger;
    facts.budget = Ledger::Open(config.run.ledger, {.read_only = true}).budget();
  }
  facts.normalisation = run.declaration.normalisation.source;
  facts.pretrained = config.model.pretrained;
  facts.purpose = config.run.purpose;
  facts.has_test = !config.data.test.empty() || IsDatasetName(config.data.source);
  return facts;
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
  if (!ledger.empty() && config.run.non_private) {
    throw Error(fmt::format(
        "a run without privacy cannot be charged to the ledger '{}'; leave out --non-private, or "
        "use data that have no ledger.",
        ledger));
  }
  return ledger;
}

PreparedRun Assembled(TrainConfig config, DatasetDeclaration declaration, c10::Device device,
                      std::unique_ptr<Model> model, std::optional<double> noise) {
  PrivacyPlan plan = MakePlan(config, declaration, noise);
  const RunPrivacy privacy = PrivacyOf(config);
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

PreparedRun internal::PrepareWithNoise(const TrainConfig& config, std::optional<double> noise,
                                       int local_rank) {
  // What needs no data comes first, so that a misspelt name is not hidden by a missing file.
  const c10::Device device = UseDevice(config, local_rank);
  if (config.data.source.empty()) Completed(config, {});  // says what is missing
  DatasetDeclaration declaration = Declare(config.data);
  TrainConfig completed = Completed(config, declaration);
  if (config.training.threads > 0) UseThreads(static_cast<int>(config.training.threads));
  completed.run.ledger = LedgerFile(completed);
  std::unique_ptr<Model> model = MakeConfiguredModel(completed, ModelShapeOf(declaration), device);
  CheckStart(completed, *model);
  PreparedRun run =
      Assembled(std::move(completed), std::move(declaration), device, std::move(model), noise);
  CheckAugmentation(run);
  TryStep(run);
  run.facts = PlannedFacts(run);
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
