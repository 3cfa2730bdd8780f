// The moments accountant as published (Abadi et al. 2016, arXiv 1607.00133).
//
// log moment alpha(lambda) = lambda R(lambda + 1) at integer lambda; moments add over steps
// (theorem 2.1) and epsilon = min over lambda of (alpha(lambda) + log(1/delta)) / lambda (theorem
// 2.2). This is Renyi accounting at integer orders with the old conversion, kept for comparison
// with published numbers; it applies to (Poisson-sampled) Gaussians, as in the paper.
#ifndef SORDINO_ACCOUNTING_MOMENTS_H_
#define SORDINO_ACCOUNTING_MOMENTS_H_

#include <string>

#include "sordino/accounting/event.h"
#include "sordino/accounting/renyi.h"
#include "sordino/base/quantity.h"

namespace sordino {

struct MomentsResult {
  double epsilon = kInfinity;
  int lambda = 0;
  std::string reason;  // why it does not apply; empty where it does
};

inline constexpr int kMaxMoment = 1024;

MomentsResult MomentsAccountant(const Event& event, double log_delta);
// The same with the curve of the event, which remembers what it was asked.
MomentsResult MomentsAccountant(const Event& event, double log_delta, RenyiCurve& curve);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_MOMENTS_H_
