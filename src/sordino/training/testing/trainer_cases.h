// Small problems whose gradients are known by heart, for the tests of the trainer.
#ifndef SORDINO_TRAINING_TESTING_TRAINER_CASES_H_
#define SORDINO_TRAINING_TESTING_TRAINER_CASES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sordino/data/dataset.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/training/privacy_plan.h"

namespace sordino {

// Normal features and labels 0 or 1.
Dataset RandomFeatures(std::int64_t records, std::int64_t features, std::uint64_t seed);

Dataset FirstRecords(Dataset data, std::int64_t records);

// All records in every step, clip 1, add-remove.
PlanOptions FullBatch(std::int64_t records, std::int64_t steps);

// One vector of weights.
struct Weights {
  explicit Weights(std::int64_t size);

  std::vector<NamedParameter> Named() const { return {{"weights", value}}; }
  LossFunction SquaredError() const;  // (x w - label)^2
  LossFunction Linear() const;        // x w
  LossFunction NoGradient() const;    // 0 w
  double MeanSquaredError(const Dataset& data) const;

  at::Tensor value;
};

// A table x,y,above of points of the unit square; those above the diagonal are of class "yes".
void WritePoints(const std::filesystem::path& file, int count);

}  // namespace sordino

#endif  // SORDINO_TRAINING_TESTING_TRAINER_CASES_H_
