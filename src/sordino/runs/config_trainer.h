// The trainer that the settings of a run describe.
#ifndef SORDINO_RUNS_CONFIG_TRAINER_H_
#define SORDINO_RUNS_CONFIG_TRAINER_H_

#include "sordino/data/dataset.h"
#include "sordino/models/model.h"
#include "sordino/runs/train_config.h"
#include "sordino/training/classification.h"
#include "sordino/training/trainer.h"

namespace sordino {

// 1 for every example of {inputs, labels} whose class the model predicts, else 0; in evaluation
// mode, after which the model is in training mode. The model must outlive it.
LossFunction RightPredictions(Model& model, const FeatureShape& features);

// Without clipping and noise where the settings say so. `options` hold what is not in the settings:
// device, charges, seed and canaries; gradients, augmentation and the measurement of held-out
// records are filled in. Model and data must outlive the trainer.
Trainer MakeTrainer(const TrainConfig& config, const PrivacyPlan& plan, Model& model,
                    const FeatureShape& features, const Dataset& data, TrainerOptions options);

}  // namespace sordino

#endif  // SORDINO_RUNS_CONFIG_TRAINER_H_
