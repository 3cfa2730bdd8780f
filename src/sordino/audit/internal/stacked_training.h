// Trains several models of one architecture at once, without privacy (models/stacked_model.h).
//
// Each model has records, a sampler and streams of random bits of its own, drawn as
// Trainer::NonPrivate draws them, and one optimizer steps all of them: its algorithms work on each
// number by itself. So each model becomes what it would become alone, to the rounding of float32.
#ifndef SORDINO_AUDIT_INTERNAL_STACKED_TRAINING_H_
#define SORDINO_AUDIT_INTERNAL_STACKED_TRAINING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "sordino/data/dataset.h"
#include "sordino/models/model.h"
#include "sordino/runs/train_config.h"
#include "sordino/training/privacy_plan.h"

namespace sordino::internal {

struct StackedShadow {
  std::unique_ptr<Model> model;
  Dataset seen;
  PrivacyPlan plan;  // its sampler and its steps
  std::optional<std::uint64_t> seed;
};

// Whether models of these settings can be trained so: a run without privacy on the CPU, of a model
// with a stacked pass, with an optimizer that works on each number, and with batches that are not
// empty but with a probability below 1e-17 a step (an empty one makes no update).
bool CanBeStacked(const TrainConfig& config, const Model& model, const PrivacyPlan& plan,
                  c10::Device device);

// Trains all of them in place, with their averaged weights where the settings have an average.
void TrainStacked(const TrainConfig& config, std::vector<StackedShadow>& shadows,
                  const std::function<void(double share)>& progress);

// [models, records]: what they say of the records (audit/membership.h), all of them in one pass.
at::Tensor StackedConfidences(const TrainConfig& config, const std::vector<StackedShadow>& shadows,
                              const Dataset& data);

}  // namespace sordino::internal

#endif  // SORDINO_AUDIT_INTERNAL_STACKED_TRAINING_H_
