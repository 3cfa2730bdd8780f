// Canaries as data: made-up records (canary_records.h) that take part in a private run as any
// record does, and whose presence can be guessed afterwards.
//
// Before the first step a fair coin of each, from the audit's own stream, says whether it is in the
// data. The sampler of the run draws from the records and all canaries. A canary that was drawn is
// loaded, differentiated and clipped with the batch where its coin said yes. Where it said no, it
// is left out of the batch, or replaced by the same input with another label under replace-one,
// where neighbours have as many records.
//
// What this costs in privacy: nothing. To the mechanism the data are the n records and those of the
// N canaries that are in, and the plan is made for n + N of them: the declared number, the rate
// that follows from it, the largest batch and the divisor depend on n and N alone, which are
// public, and on no coin. Neighbours differ in one record and have the same canaries and coins,
// which do not depend on the records, so for each outcome of the coins the guarantee is that of the
// plan, and averaging over them keeps it. A run with fewer records than the plan was made for is
// covered by add-remove and zero-out as any smaller dataset is; under replace-one the number is n +
// N always. The guarantee for a real record is then no weaker than for a canary, whose worst case
// it includes.
//
// Two attackers give every canary a score, both by what the run releases and not by the data, so
// that what is published about the scores is post-processing:
//   - Every update. The inner product of the released gradient with the canary's own, at the model
//     of that step, over the canary's norm and less the median of all canaries, which takes the
//     place of what the records add; then as in canaries.h, with what clipping leaves of the norm.
//     Inner products are differences of the losses at two models on both sides of the present one,
//     and norms need one more pass: each step costs three passes over the canaries.
//   - The last model. How far the loss of the canary fell since the start of the run; under
//     replace-one less how far it fell for the other label. Less the median.
#ifndef SORDINO_TRAINING_INTERNAL_DATA_CANARIES_H_
#define SORDINO_TRAINING_INTERNAL_DATA_CANARIES_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/data/dataset.h"
#include "sordino/gradients/clipper.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/random/generator.h"
#include "sordino/training/canaries.h"
#include "sordino/training/canary_records.h"

namespace sordino {

class SavedTensors;

struct DataCanaryOptions {
  Adjacency adjacency = Adjacency::kAddRemove;
  GradientOptions gradients = {};
  c10::Device device = c10::kCPU;
  std::int64_t copies = 1;  // augmentation multiplicity, which the losses expect
};

class DataCanaries {
 public:
  // `parameters` are those of the clipped sum. Evaluates the losses and the norms of all canaries
  // once, so that what cannot be computed throws here.
  DataCanaries(const CanaryRecords& records, std::vector<NamedParameter> parameters,
               LossFunction losses, const DataCanaryOptions& options, Generator& stream);

  std::int64_t size() const { return is_in_.numel(); }

  // The data with all records that a batch may hold: `data`, the canaries, and the records that
  // replace them.
  static Dataset Joined(const Dataset& data, const CanaryRecords& canaries, Adjacency adjacency);
  // A batch that was drawn over the records and, after them, the canaries, to one of Joined().
  void Place(std::vector<std::uint64_t>& batch, std::uint64_t records) const;

  // A released gradient, before the model moves by it, of a sum with this divisor whose gradients
  // were clipped to `bound`. `reseed` puts
  // libtorch's generators into one state before each pass, for models that draw from them.
  void Observe(const NoisedGradients& gradient, double divisor, SamplingRate rate, ClipNorm bound,
               const std::function<void()>& reseed);

  CanaryScores Scores() const;

  NamedTensors Save() const;
  void Restore(SavedTensors& saved);

 private:
  at::Tensor Losses(const Batch& batch) const;  // [canaries], float64 on the CPU
  at::Tensor Advantage() const;                 // how low the losses are, for the last model
  void AddScores(const Batch& batch, double sign, const NoisedGradients& gradient, double divisor,
                 SamplingRate rate, ClipNorm bound, const std::function<void()>& reseed);

  std::vector<NamedParameter> parameters_;
  LossFunction losses_;
  Clipper clipper_;
  bool are_replaced_;
  Batch in_;           // the canaries as the model sees them
  Batch out_;          // and with other labels; empty but under replace-one
  at::Tensor is_in_;   // int64, 0 or 1
  at::Tensor start_;   // Advantage() of the first model
  at::Tensor scores_;  // of every update
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_DATA_CANARIES_H_
