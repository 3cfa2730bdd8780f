// Reconstruction of a record by an informed adversary, and the bounds on its success.
//
// Threat model (Balle, Cherubin and Hayes, arXiv 2201.04845): the adversary knows every record of
// the data but one, all settings, and the model after each step. A linear softmax model is trained
// by the private trainer with full batches, which is the easiest case for the adversary: the
// difference of two models is the noised sum of the clipped gradients, and less the gradients of
// the known records it is the clipped gradient of the target and the noise.
//
//   rebuilt  The gradient of softmax regression is s (p - y) x^T for the weights and s (p - y) for
//            the biases, with s the factor of clipping, so that x = W^T b / ||b||^2. Exact without
//            noise, whatever the clipping; nothing is known of the target in advance.
//   guessed  The target is one of m candidates, each as likely; the guess is the one with the
//            largest likelihood of all steps (Hayes, Mahloujifar and Balle, arXiv 2302.07225).
//
// The bounds are on the probability that a reconstruction succeeds, whatever the adversary does,
// for a prior under which a blind guess succeeds with probability kappa at most (1 / m for
// candidates):
//   ReconstructionBound       the blow-up function, the largest P(E) over all events E with Q(E) <=
//                             kappa, for the outputs P with the target and Q without it. It is 1 -
//                             f(kappa) for the trade-off curve f of the event, which is concave, so
//                             that it holds for the mean over targets. Certified: f is bounded from
//                             below by the accountant's lines (accounting/tradeoff.h).
//   RenyiReconstructionBound  the least (kappa e^R(alpha))^((alpha - 1) / alpha) over orders, from
//                             the Renyi curve of the event (theorem 3 of the first paper).
#ifndef SORDINO_AUDIT_RECONSTRUCTION_H_
#define SORDINO_AUDIT_RECONSTRUCTION_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"
#include "sordino/data/dataset.h"

namespace sordino {

// kappa in (0, 1]. `failure` is the distance in total variation from what the event says
// (accounting/failures.h).
double ReconstructionBound(const Event& event, double kappa, double failure = 0);
// nullopt where the event has no Renyi curve.
std::optional<double> RenyiReconstructionBound(const Event& event, double kappa,
                                               double failure = 0);

struct ReconstructionOptions {
  std::int64_t records = 50;      // of the data, the target included; from 1
  std::int64_t candidates = 100;  // from 2
  std::int64_t trials = 200;      // targets, each in a training of its own; from 1
  std::int64_t steps = 1;
  double clip = 1;
  Delta delta{1e-5};
  std::uint64_t seed = 1;  // which records are known, candidates and targets
  // Of the noise, for tests; the operating system's randomness where it is left out.
  std::optional<std::uint64_t> insecure_seed = {};
  std::function<void(double share)> progress = {};
};

// What came of the trials with one budget.
struct ReconstructionLevel {
  std::optional<double> epsilon;  // none: clipped, without noise
  double noise = 0;               // multiplier
  std::int64_t right = 0;         // guesses
  // Root of the mean squared difference of a rebuilt input and its target, whose numbers are from 0
  // to 1 for images, and as the model sees them else.
  double rebuilt_error = 0;
  double bound = 1;
  std::optional<double> renyi_bound;
  at::Tensor rebuilt;  // of the first kShownTargets trials, in the scale of the error
  at::Tensor guessed;
};

struct Reconstruction {
  std::vector<ReconstructionLevel> levels;  // the first is without noise
  // Of the mean of the candidates, which needs no model.
  double blind_error = 0;
  at::Tensor targets;  // like ReconstructionLevel::rebuilt
};

inline constexpr std::int64_t kShownTargets = 20;

// `data` are public images or features with classes: nothing that comes back is private. Throws
// Error for fewer records than a trial needs, for options out of range and for budgets that no
// noise meets.
Reconstruction Reconstruct(const Dataset& data, const std::vector<double>& epsilons,
                           const ReconstructionOptions& options);

}  // namespace sordino

#endif  // SORDINO_AUDIT_RECONSTRUCTION_H_
