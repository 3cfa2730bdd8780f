// Shadow models: trained as a run was, on random halves of records that are asked about.
#ifndef SORDINO_AUDIT_SHADOW_MODELS_H_
#define SORDINO_AUDIT_SHADOW_MODELS_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "sordino/audit/membership.h"
#include "sordino/data/dataset.h"
#include "sordino/models/model.h"
#include "sordino/runs/run_folder.h"

namespace sordino {

inline constexpr std::int64_t kMinShadows = 4;
inline constexpr std::int64_t kMaxShadows = 4096;

// Confidences of a model in records, in their order.
at::Tensor ConfidencesOf(const Model& model, const Dataset& data, c10::Device device);

struct ShadowOptions {
  std::int64_t shadows = 16;
  c10::Device device = c10::kCPU;
  std::optional<std::uint64_t> seed = {};  // of the halves and of the trainings, for tests
  // Several models at once, where there is a way (models/stacked_model.h); false: one after the
  // other. What comes out is the same, to the rounding of float32.
  bool stacked = true;
  // The share that is done; may throw.
  std::function<void(double share)> progress = {};
};

// Every record is in the halves of half of the models: models come in pairs that see opposite
// halves. Each is trained with the settings of the run: its model with the same first weights,
// which its folder makes known, as many steps, the same share of the records in a batch and, for a
// private run, the same noise. Nothing is charged: what the models say must stay as private as the
// records. Throws Error for a number of models that is odd or out of range, and for fewer than four
// records.
ShadowConfidences TrainShadows(const TrainedRun& run, const Dataset& data,
                               const ShadowOptions& options);

}  // namespace sordino

#endif  // SORDINO_AUDIT_SHADOW_MODELS_H_
