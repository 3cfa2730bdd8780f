#include "sordino/runs/config_trainer.h"

#include <utility>

namespace sordino {

Trainer MakeTrainer(const TrainConfig& config, const PrivacyPlan& plan, const Model& model,
                    const FeatureShape& features, const Dataset& data, TrainerOptions options) {
  options.gradients = GradientOptionsOf(config);
  options.loader.augmentation = AugmentationOptionsOf(config);
  const LossFunction losses = LossOf(data.declaration, model, config.training.copies, features,
                                     ClassWeightsOf(config, options.loader.device));
  const OptimizerOptions optimizer = OptimizerOptionsOf(config);
  if (config.run.non_private) {
    return Trainer::NonPrivate(plan, ParametersOf(model), losses, data, optimizer,
                               std::move(options));
  }
  return {plan, ParametersOf(model), losses, data, optimizer, std::move(options)};
}

}  // namespace sordino
