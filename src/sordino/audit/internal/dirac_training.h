// Trainings whose released updates an attacker scores: a linear loss, and records with one gradient
// each.
//
// The model is two layers of d numbers each, a and b, and the loss of a record x is x (a + b), so
// that its gradient is x in both layers whatever the weights are. Canary i is a row that is `size`
// in coordinate i and 0 elsewhere. What a step releases in the coordinates i of both layers has
// the gradient of canary i in it and of no other record.
#ifndef SORDINO_AUDIT_INTERNAL_DIRAC_TRAINING_H_
#define SORDINO_AUDIT_INTERNAL_DIRAC_TRAINING_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sordino/audit/internal/self_audit_case.h"
#include "sordino/training/privacy_plan.h"
#include "sordino/training/trainer.h"

namespace sordino::internal {

struct DiracTraining {
  PlanOptions plan;  // its number of records is Records()
  NoiseMultiplier noise{1};
  std::int64_t canaries = 1;
  std::int64_t rows = 1;     // of each canary
  std::int64_t fillers = 0;  // rows beside those of each canary
  double size = 100;         // of a row of a canary, before it is clipped
  double filler_size = 0;    // of a filler, in the coordinate of its canary

  std::int64_t Records() const { return canaries * (rows + fillers); }
};

// The plan of the options with the number of records of the training.
PrivacyPlan PlanOf(const DiracTraining& training, Delta delta);

// One training of all steps of the plan. The canaries are there in World::kWith. In the other their
// rows are missing under add-remove, without a gradient under zero-out, and have the opposite sign
// under replace-one. `place` moves the rows of a canary among its fillers. `watch` is called after
// each step with what it released, the noised sums [2, canaries] of the two layers in float64.
using WatchStep = std::function<void(const Trainer& trainer, const at::Tensor& sums)>;
void TrainDiracs(const DiracTraining& training, World world, std::int64_t place,
                 std::optional<std::uint64_t> seed, const WatchStep& watch);

}  // namespace sordino::internal

#endif  // SORDINO_AUDIT_INTERNAL_DIRAC_TRAINING_H_
