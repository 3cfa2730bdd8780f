// The canaries of a run: gradients (canaries.h), records (data_canaries.h), or none.
#ifndef SORDINO_TRAINING_INTERNAL_RUN_CANARIES_H_
#define SORDINO_TRAINING_INTERNAL_RUN_CANARIES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/data/dataset.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/random/generator.h"
#include "sordino/training/canaries.h"
#include "sordino/training/internal/data_canaries.h"
#include "sordino/training/privacy_plan.h"
#include "sordino/training/trainer.h"

namespace sordino {

// How many the options name, of both kinds and of those that are records.
std::int64_t CanariesOf(const TrainerOptions& options);
std::int64_t CanaryRecordsOf(const TrainerOptions& options);

class RunCanaries {
 public:
  // `parameters` are those of the clipped sum; `coins` is the stream kCanaryStream. The model is
  // the one that the run begins with.
  RunCanaries(const TrainerOptions& options, const PrivacyPlan& plan,
              const std::vector<NamedParameter>& parameters, const LossFunction& losses,
              Generator& coins);

  bool IsEmpty() const { return !gradients_ && !records_; }
  bool AreRecords() const { return records_ != nullptr; }

  // What batches are loaded from: the data, with the canaries that are records after them.
  Dataset Joined(const Dataset& data, const TrainerOptions& options) const;
  // A batch that was drawn over so many records and all canaries after them, to one of Joined();
  // returns the canaries in it that are gradients.
  std::vector<std::int64_t> TakeFrom(std::vector<std::uint64_t>& batch,
                                     std::uint64_t records) const;
  // What those add to the sum.
  std::vector<Dirac> Gradients(const std::vector<std::int64_t>& drawn,
                               const ClippingPolicy& policy) const;

  // What a step released, of a sum under the policy of the step with this divisor; then the
  // gradients that it gave, before the model moves by them. Canaries that are records draw a seed
  // for libtorch's generators from the stream, for models that draw from them.
  void ObserveSum(const NoisedGradients& mean, double divisor, SamplingRate rate,
                  const ClippingPolicy& policy);
  void ObserveGradients(const NoisedGradients& gradients, double divisor, SamplingRate rate,
                        Generator& stream);

  CanaryScores Scores() const;

  void Save(NamedTensors& state) const;
  void Restore(SavedTensors& saved);

 private:
  Adjacency adjacency_;
  std::unique_ptr<Canaries> gradients_;
  std::unique_ptr<DataCanaries> records_;
  double bound_ = 0;  // on the norm of a clipped gradient, in the step that was seen last
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_RUN_CANARIES_H_
