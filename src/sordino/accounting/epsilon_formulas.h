// Closed forms of the epsilon of T steps, each on a share q of the data and (e, d)-private on what
// it sees, as slides and lectures print them for composition with amplification by sampling:
//
//   q T e                      basic composition           q T d = delta
//   q e sqrt(T ln(1/delta))    strong composition          q T d = delta
//   q e sqrt(T)                the moments accountant      d = delta
//
// A Gaussian step of multiplier z is (e, d)-private for e = sqrt(2 ln(1.25/d)) / z, which is proven
// for e <= 1 (Dwork and Roth 2014, theorem A.1). q e stands for ln(1 + q(exp(e) - 1)), which is
// larger; the last two forms leave out constants and terms of their theorems. So none of them is a
// guarantee. They are there to be compared with what an accountant certifies.
#ifndef SORDINO_ACCOUNTING_EPSILON_FORMULAS_H_
#define SORDINO_ACCOUNTING_EPSILON_FORMULAS_H_

#include <string_view>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"

namespace sordino {

struct EpsilonFormula {
  std::string_view name;  // "basic", "strong", "moments"
  std::string_view form;
  double epsilon;
};

// Those that the event has: T copies of a Gaussian, Laplace, pure or approximate release under
// add-remove or zero-out, with or without sampling (Poisson, or batches of a fixed size). None for
// other events and where the step has no (e, d) of the form: delta 0 or 1, or an own d above it.
std::vector<EpsilonFormula> EpsilonFormulas(const Event& event, Delta delta);

}  // namespace sordino

#endif  // SORDINO_ACCOUNTING_EPSILON_FORMULAS_H_
