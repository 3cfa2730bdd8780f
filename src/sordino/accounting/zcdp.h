// Zero-concentrated differential privacy (Bun and Steinke 2016, arXiv 1605.02065).
//
// rho-zCDP: R(alpha) <= rho alpha at every order alpha > 1. rho adds under composition.
//   gaussian(s) 1/(2 s^2); discrete Gaussian k^2/(2 s^2); tree height/(2 s^2); pure(e) e^2/2
//   (proposition 1.4); exponential(e) e^2/8 (Cesar and Rogers 2020, arXiv 2004.07223).
// zCDP does not gain from sampling (a sampled Gaussian has no small linear bound at large orders),
// so a sampled event keeps the rho of the event inside.
//
// To (epsilon, delta): the optimum of the tight conversion over real orders (arXiv 2004.00010),
// which is below rho + 2 sqrt(rho log(1/delta)) (proposition 1.3).
#ifndef SORDINO_ACCOUNTING_ZCDP_H_
#define SORDINO_ACCOUNTING_ZCDP_H_

#include <string>

#include "sordino/accounting/event.h"
#include "sordino/accounting/renyi_conversion.h"

namespace sordino {

struct ZcdpResult {
  double rho = kInfinity;
  std::string reason;  // why there is no rho; empty where there is
};

ZcdpResult ZcdpOf(const Event& event);

// rho in [0, inf], log_delta in [-inf, 0].
RenyiEpsilonResult ZcdpEpsilon(double rho, double log_delta);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_ZCDP_H_
