// The budget of a dataset for C++ programs. Link sordino::ledger; libtorch is not needed.
//
//   Ledger ledger = Ledger::Open("visits.db");
//   const Event cost = Event::Pure(Epsilon(1));
//   const Begun run = ledger.BeginRun({.what = "count of visits", .plan = cost}, {.event = cost});
//   if (run.verdict.admitted) ...  // the charge is on the disk: now the noise may be drawn
//
// A whole program: tests/install/main.cc. Everything is in the namespace sordino:
//
//   Budget, ProtectedUnit             epsilon, delta, adjacency, and whose data are protected
//   Ledger                            Create, Open, BeginRun, Charge, Return, Preview
//   LedgerOptions, WitnessUse         where the newest entry is remembered, how long to wait
//   RunDeclaration                    what a run may release in all
//   LedgerCharge                      what is charged now
//   Begun, Verdict                    whether the ledger admits it, and why not
//   StepCharger, StepCosts            the steps of a training, charged in blocks of about a second
//   VerifyLedger                      checks everything in a file
//   Event, Epsilon, Delta             what is charged, and the quantities
//   Error                             a mistake of the caller or a damaged file, in one sentence
#ifndef SORDINO_LEDGER_H_
#define SORDINO_LEDGER_H_

#include "sordino/accounting/event.h"     // IWYU pragma: export
#include "sordino/base/error.h"           // IWYU pragma: export
#include "sordino/base/quantity.h"        // IWYU pragma: export
#include "sordino/ledger/budget.h"        // IWYU pragma: export
#include "sordino/ledger/ledger.h"        // IWYU pragma: export
#include "sordino/ledger/step_charger.h"  // IWYU pragma: export

#endif  // SORDINO_LEDGER_H_
