#include "sordino/runs/config_trainer.h"

#include <utility>

namespace sordino {
namespace {

class EvaluationMode {
 public:
  explicit EvaluationMode(Model& model) : model_(model) { model_.Train(false); }
  ~EvaluationMode() { model_.Train(true); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Model& model_;
};

}  // namespace

LossFunction RightPredictions(Model& model, const FeatureShape& features) {
  return [&model, features](const Batch& batch) {
    const EvaluationMode evaluation(model);
    return Logits(model, batch[0], features).argmax(1).eq(batch[1]).to(at::kFloat);
  };
}

Trainer MakeTrainer(const TrainConfig& config, const PrivacyPlan& plan, Model& model,
                    const FeatureShape& features, const Dataset& data, TrainerOptions options) {
  options.gradients = GradientOptionsOf(config);
  options.loader.augmentation = AugmentationOptionsOf(config);
  const LossFunction losses = LossOf(data.declaration, model, config.training.copies, features,
                                     ClassWeightsOf(config, options.loader.device));
  if (plan.options().held_out) {
    HeldOutOptions held_out = options.held_out.value_or(HeldOutOptions());
    held_out.is_right = RightPredictions(model, features);
    held_out.rule = NoiseRuleOf(config, plan);
    options.held_out = std::move(held_out);
  }
  const OptimizerOptions optimizer = OptimizerOptionsOf(config);
  if (config.run.non_private) {
    return Trainer::NonPrivate(plan, ParametersOf(model), losses, data, optimizer,
                               std::move(options));
  }
  if (!config.AddsNoise()) {
    return Trainer::WithoutNoise(plan, ParametersOf(model), losses, data, optimizer,
                                 std::move(options));
  }
  return {plan, ParametersOf(model), losses, data, optimizer, std::move(options)};
}

}  // namespace sordino
