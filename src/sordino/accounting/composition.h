// Composition theorems for (epsilon, delta), and amplification by subsampling.
//
//   basic      (sum eps_i, sum delta_i)                                 Dwork et al. 2006
//   advanced   sqrt(2 ln(1/d') sum eps_i^2) + sum eps_i (e^eps_i - 1) / (e^eps_i + 1),
//              sum delta_i + d'
//              Kairouz, Oh and Viswanath 2015, arXiv 1311.0776, theorem 3.5 (adaptive, different
//              steps); below eps sqrt(2k ln(1/d')) + k eps (e^eps - 1) of Dwork, Rothblum and
//              Vadhan 2010, theorem III.3
//   optimal    the exact curve of the composition of randomised responses, which dominate every
//              (eps, delta) mechanism: 1 - (1-delta_total) = (1-delta)^k (1 - H), with
//              H = E_P[(1 - e^(eps' - loss))_+] a binomial sum; theorem 3.3 of the same paper at
//              every real eps'
//   sampling   eps' = log(1 - q + q e^eps), delta' = q delta, for Poisson sampling under
//              add-remove and for sampling without replacement under replace-one
//              (Balle, Barthe and Gaboardi 2018, arXiv 1807.01647, theorems 8 and 9)
//
// delta is a logarithm throughout: (-inf, 0], -inf for delta 0. Results are rounded up by a
// relative 1e-12 or more.
#ifndef SORDINO_ACCOUNTING_COMPOSITION_H_
#define SORDINO_ACCOUNTING_COMPOSITION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sordino/accounting/event.h"
#include "sordino/accounting/renyi.h"
#include "sordino/base/quantity.h"

namespace sordino {

// `count` steps, each (epsilon, exp(log_delta))-DP.
struct StepGuarantee {
  double epsilon = 0;
  double log_delta = -kInfinity;
  std::uint64_t count = 1;
};

StepGuarantee ComposeBasic(std::span<const StepGuarantee> steps);
// q in [0, 1].
StepGuarantee AmplifyBySampling(StepGuarantee step, double q);

// epsilon of k steps with the slack delta' added to k delta.
double AdvancedEpsilon(std::span<const StepGuarantee> steps, double log_slack);

// The smallest epsilon at total delta; infinity where the steps' own deltas already exceed it.
// Equal steps: exact, for any count. Different steps: an upper bound (losses rounded up to a grid
// for up to a few hundred steps, a Renyi bound on the randomised responses beyond).
double OptimalEpsilon(const StepGuarantee& steps, double log_delta);
double OptimalEpsilon(std::span<const StepGuarantee> steps, double log_delta);
// log delta of the composition of equal steps at epsilon >= 0; exact.
double OptimalLogDelta(const StepGuarantee& steps, double epsilon);

// epsilon >= 0 such that one event is (epsilon, exp(log_delta))-DP, by the exact curve of its
// mechanism where that is in closed form (Gaussian, Laplace), amplified by sampling, and by the
// Renyi curve otherwise.
double StepEpsilon(const Event& event, double log_delta);
// The same; a Renyi curve that is needed is made once and left in `curve`, for the next call with
// the same event.
double StepEpsilon(const Event& event, double log_delta, std::optional<RenyiCurve>& curve);
// The smallest log delta at which StepEpsilon can be finite.
double LeastLogDelta(const Event& event);

// A classical method applied to an event, with the deltas of the steps chosen for it.
struct MethodResult {
  double epsilon = kInfinity;
  std::string reason;  // why it is infinite; empty where it is finite
};
MethodResult BasicComposition(const Event& event, double log_delta);
MethodResult AdvancedComposition(const Event& event, double log_delta);
MethodResult OptimalComposition(const Event& event, double log_delta);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_COMPOSITION_H_
