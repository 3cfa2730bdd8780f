// Canaries: made-up records of a private run whose presence can be guessed afterwards.
//
// A canary is a record with a gradient of its own: the clipping norm in one coordinate of the model
// and 0 in all others (a Dirac). No two canaries have the same coordinate. Before the first step a
// fair coin of each says whether it is in the data. It takes part in every step like a record: the
// sampler of the run draws it or does not, and if it was drawn its gradient is added to the clipped
// sum before the noise (noise/gradient_noise.h, where it is shown that the sensitivity stays what
// it is). No model is evaluated for it. Where its coin said no, nothing is added; under
// replace-one, where neighbours have as many records, the gradient has the other sign.
//
// Two attackers give every canary a score. Neither knows the data: a score that is computed from
// the release and from the sum under it would tell, together with the release, about the sum, and
// what is published of an audit is not paid for. From the release alone it is post-processing.
//   - Every update. They see the noised gradients of all steps. The score is the logarithm of the
//     likelihood ratio of the two worlds, added up over the steps (internal/canary_score.h), with
//     what is seen of the coordinate y, the canary V, the noise s and the sampling rate q, less the
//     same with -V under replace-one. What the records add to y is taken as more noise: where
//     y spreads clearly more than the noise over the canaries of the same parameter, s is that
//     spread, so that steps in which the records drown the canaries count little.
//   - The last model. How far the coordinate of the model moved against the gradient, less the
//     median of all canaries: a function of what the run releases.
#ifndef SORDINO_TRAINING_CANARIES_H_
#define SORDINO_TRAINING_CANARIES_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/gradients/clipping_policy.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/random/generator.h"

namespace sordino {

class SavedTensors;

// One entry for each canary.
struct CanaryScores {
  std::vector<char> is_in;
  std::vector<double> every_update;
  std::vector<double> last_model;
};

// Throws Error when the parameters have fewer coordinates than there are canaries.
void CheckCanaries(std::int64_t count, const std::vector<NamedParameter>& parameters);

class Canaries {
 public:
  // `parameters` are those of the clipped sum, in its order.
  Canaries(std::int64_t count, std::vector<NamedParameter> parameters, Adjacency adjacency,
           Generator& stream);

  std::int64_t size() const { return static_cast<std::int64_t>(coordinates_.size()); }

  // A batch is drawn over the records and, after them, the canaries: takes the canaries out of it.
  static std::vector<std::int64_t> TakeFrom(std::vector<std::uint64_t>& batch,
                                            std::uint64_t records);
  // What those that were drawn add to the sum under this policy.
  std::vector<Dirac> Gradients(const std::vector<std::int64_t>& drawn,
                               const ClippingPolicy& policy) const;

  // What a step released, of a sum with this divisor.
  void Observe(const NoisedGradients& gradient, double divisor, SamplingRate rate,
               const ClippingPolicy& policy);

  CanaryScores Scores() const;

  NamedTensors Save() const;
  void Restore(SavedTensors& saved);

 private:
  // The bound of the clipping group of each canary's coordinate.
  std::vector<double> Values(const ClippingPolicy& policy) const;
  // The entries of the canaries' coordinates, as doubles on the CPU.
  at::Tensor Gathered(const std::vector<at::Tensor>& tensors) const;
  // For each canary, the noise, or the spread of what is seen where that is clearly larger.
  std::vector<double> Spread(const at::Tensor& seen, double noise) const;
  void FindPlaces();

  std::vector<NamedParameter> parameters_;
  bool other_sign_;
  at::Tensor is_in_;                       // int64, 0 or 1
  std::vector<std::int64_t> coordinates_;  // rising: the coins are independent of the order
  // Those of a parameter: which canaries, and where in it.
  struct Places {
    at::Tensor canaries;
    at::Tensor entries;
  };
  std::vector<Places> places_;
  std::vector<std::size_t> parameter_of_;
  at::Tensor start_;   // what the model began with
  at::Tensor scores_;  // of every update
};

}  // namespace sordino

#endif  // SORDINO_TRAINING_CANARIES_H_
