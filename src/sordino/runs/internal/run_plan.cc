#include "sordino/runs/internal/run_plan.h"

#include <fmt/format.h>

#include <utility>

#include "sordino/accounting/failures.h"
#include "sordino/base/error.h"
#include "sordino/clipping/norms_component.h"
#include "sordino/ledger/ledger.h"
#include "sordino/training/adaptive_noise.h"

namespace sordino::internal {
namespace {

// Why no noise meets a budget.
std::string NoPlan(const PlanOptions& options, Epsilon epsilon, Delta delta) {
  const double failure = PrivacyPlan(options, NoiseMultiplier(1e6), delta).Failure(options.steps);
  const std::string advice =
      !FailuresArePaid(failure, epsilon, delta.value() * kFailureShares.back())
          ? fmt::format(
                "what can fail beside it has a probability of {:.2g} over these steps, for which "
                "delta pays 1 + e^epsilon times (docs/plan.md), so give a larger delta, a smaller "
                "epsilon, fewer steps or norms that fail less",
                failure)
          : "give a larger budget, fewer steps or a smaller batch";
  return fmt::format("no noise meets epsilon {:g} and delta {:g} with {} steps at batch {:g}; {}.",
                     epsilon.value(), delta.value(), options.steps, options.batch, advice);
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

}  // namespace

PrivacyPlan MakePlan(const TrainConfig& config, const DatasetDeclaration& declaration,
                     std::optional<double> noise) {
  const Delta delta(*config.privacy.delta);
  PlanOptions options = PlanOptionsOf(config, declaration);
  if (config.privacy.epsilon) {
    options = PrivacyPlan::Chosen(options, Epsilon(*config.privacy.epsilon), delta);
  }
  if (config.HasAdaptiveNoise()) {
    const double share = *config.privacy.validation_budget;
    const Epsilon epsilon(*config.privacy.epsilon);
    if (noise) return AdaptivePlan(options, share, epsilon, delta, NoiseMultiplier(*noise));
    std::optional<PrivacyPlan> plan = AdaptivePlanForBudget(options, share, epsilon, delta);
    if (!plan) throw Error(NoPlan(options, epsilon, delta));
    return *std::move(plan);
  }
  if (noise) return {options, NoiseMultiplier(*noise), delta};
  if (!config.AddsNoise()) return {options, NoiseMultiplier(1), delta};
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
  if (!config.AddsNoise()) return RunPrivacy::kWithoutNoise;
  return config.run.insecure_seed ? RunPrivacy::kSeeded : RunPrivacy::kPrivate;
}

StatementFacts PlannedFacts(const TrainConfig& config, const DatasetDeclaration& declaration,
                            const PrivacyPlan& plan, std::string model) {
  StatementFacts facts;
  facts.privacy = PrivacyOf(config);
  facts.data = declaration.name;
  facts.model = std::move(model);
  facts.records = declaration.records;
  facts.rows_per_user = declaration.rows_per_user;
  facts.adjacency = plan.options().adjacency;
  facts.steps = plan.steps();
  facts.planned_steps = plan.steps();
  if (config.HasAdaptiveNoise()) {
    facts.adaptive = PlannedAdaptive(plan, Epsilon(*config.privacy.epsilon));
    facts.epsilon = {0, *config.privacy.epsilon};
  } else {
    facts.epsilon =
        HasNoise(facts.privacy) ? plan.Epsilon(facts.steps) : Interval{kInfinity, kInfinity};
  }
  facts.delta = plan.delta().value();
  facts.charges_epochs = plan.sampler().HasWholeEpochs();
  facts.has_secret_batches = plan.sampler().IsSecret() || plan.options().held_out;
  facts.sampling = plan.sampler().Statement();
  if (facts.privacy == RunPrivacy::kNonPrivate) {
    facts.plan = fmt::format("{} sampling, batch {:g}, {} steps, without clipping and noise",
                             config.privacy.sampling.name, *config.training.batch, facts.steps);
  } else if (facts.privacy == RunPrivacy::kWithoutNoise) {
    facts.plan = plan.DescriptionWithoutNoise();
  } else {
    facts.plan = plan.Description();
    facts.norms_assumption = plan.norms().Assumption();
    facts.event = plan.event().ToString();
  }
  if (!config.run.ledger.empty()) {
    facts.ledger = config.run.ledger;
    facts.budget = Ledger::Open(config.run.ledger, {.read_only = true}).budget();
  }
  facts.normalisation = declaration.normalisation.source;
  facts.pretrained = config.model.pretrained;
  facts.purpose = config.run.purpose;
  facts.has_test = !config.data.test.empty() || IsDatasetName(config.data.source);
  return facts;
}

}  // namespace sordino::internal
