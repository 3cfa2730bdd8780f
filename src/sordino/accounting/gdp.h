// Gaussian differential privacy (Dong, Roth and Su 2019, arXiv 1905.02383).
//
// A mechanism is mu-GDP when telling neighbours apart is no easier than N(0,1) from N(mu,1). mu
// composes as sqrt(sum mu_i^2), exactly for unsampled Gaussians (mu = 1 / sigma).
//
// For Poisson-sampled Gaussians the central limit theorem of Bu, Dong, Long and Su (2019, arXiv
// 1911.11607) gives mu = q sqrt(T (e^(1/sigma^2) - 1)) as T grows. That is an ESTIMATE, not a
// bound: it can be below the truth (6.600 where 6.767 is right for q 0.04, sigma 1.5, T 2249,
// delta 1e-5), and it never decides what was spent.
#ifndef SORDINO_ACCOUNTING_GDP_H_
#define SORDINO_ACCOUNTING_GDP_H_

#include <string>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino {

struct GdpResult {
  double mu = kInfinity;
  bool sound = false;  // exact for unsampled Gaussians, an estimate with sampling
  std::string reason;  // why there is no mu; empty where there is
};

// What a mu is worth says the curve of the Gaussian mechanism (gaussian.h).
GdpResult GdpOf(const Event& event);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_GDP_H_
