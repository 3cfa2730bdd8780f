// Accounting for C++ programs: how much privacy was spent, and the noise that a budget asks for.
// Link sordino::accounting; libtorch is not needed.
//
//   const Event event = Event::Repeat(
//       Event::Poisson(SamplingRate(0.01), Event::Gaussian(NoiseMultiplier(4))), 10000);
//   const double spent = Account(event, Delta(1e-5)).value.upper;
//
// A whole program: examples/spent_epsilon.cc. Everything is in the namespace sordino:
//
//   Epsilon, Delta, NoiseMultiplier,  quantities as types: a swapped pair does not compile
//   SamplingRate, Adjacency
//   Event                             what a mechanism released, as data; text form and hash
//   Account, AccountDelta             the certified interval of epsilon or delta, and the answer of
//                                     every accountant beside it (AccountReport)
//   CertifiedEpsilon                  the interval alone, also for log delta = -infinity
//   CalibrateNoise, CalibrateSteps,   the least noise, the most steps or the largest sampling rate
//   CalibrateRate                     within a budget; nullopt if there is none
//   Interval                          lower and upper end; the upper end is what is spent
//   Error                             a mistake of the caller, in one sentence
#ifndef SORDINO_ACCOUNT_H_
#define SORDINO_ACCOUNT_H_

#include "sordino/accounting/accountant.h"   // IWYU pragma: export
#include "sordino/accounting/calibration.h"  // IWYU pragma: export
#include "sordino/accounting/event.h"        // IWYU pragma: export
#include "sordino/base/error.h"              // IWYU pragma: export
#include "sordino/base/quantity.h"           // IWYU pragma: export

#endif  // SORDINO_ACCOUNT_H_
