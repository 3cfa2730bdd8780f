// From Renyi differential privacy to (epsilon, delta).
//
// An event with Renyi divergence R(alpha) at order alpha = 1 + a is (epsilon, delta)-DP for
//   tight:  epsilon = R + log(1 - 1/alpha) - log(delta alpha) / a
//           (Canonne, Kamath and Steinke 2020, arXiv 2004.00010, proposition 12)
//   old:    epsilon = R + log(1/delta) / a        (Mironov 2017, arXiv 1702.07476).
// Both hold at every order, so the smallest over all real orders counts. a R(alpha) is convex in
// a, and so is a log a - alpha log alpha; the objective is a convex function over a, which has
// one minimum. It is searched on [1e-10, 1e9]. Results are rounded up by a relative 1e-12.
//
// delta enters as its logarithm, so 1e-300 and smaller are ordinary inputs.
#ifndef SORDINO_ACCOUNTING_RENYI_CONVERSION_H_
#define SORDINO_ACCOUNTING_RENYI_CONVERSION_H_

#include <functional>

#include "sordino/base/quantity.h"

namespace sordino {

enum class RenyiConversion { kTight, kOld };

struct RenyiEpsilonResult {
  double epsilon = kInfinity;
  double order = kInfinity;
};

struct RenyiDeltaResult {
  double log_delta = 0;  // at most 0
  double order = 1;
};

// One order. rdp in [0, inf], order > 1, log_delta in [-inf, 0]. At least 0.
double EpsilonFromRenyi(double rdp, double order, double log_delta,
                        RenyiConversion conversion = RenyiConversion::kTight);
// log delta at epsilon by the tight conversion, at most 0.
double LogDeltaFromRenyi(double rdp, double order, double epsilon);

// The best over all real orders. curve(order) is R, non-decreasing, infinity where unknown.
RenyiEpsilonResult MinimizeEpsilon(const std::function<double(double)>& curve, double log_delta,
                                   RenyiConversion conversion = RenyiConversion::kTight);
RenyiDeltaResult MinimizeDelta(const std::function<double(double)>& curve, double epsilon);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_RENYI_CONVERSION_H_
