// What a fit guarantees, in words: the counterpart of statement.h for `sordino fit`.
#ifndef SORDINO_RUNS_FIT_STATEMENT_H_
#define SORDINO_RUNS_FIT_STATEMENT_H_

#include <cstdint>
#include <string>

#include "sordino/base/quantity.h"
#include "sordino/ledger/budget.h"
#include "sordino/runs/statement.h"

namespace sordino {

// Everything that the statement depends on. All of it is public.
struct FitFacts {
  RunState state = RunState::kPlanned;
  RunPrivacy privacy = RunPrivacy::kPrivate;
  std::string data;
  std::string model;         // "logistic regression of 45 features and an intercept"
  std::string method;        // "objective perturbation", by the name of the method
  std::string plan;          // a sentence: lambda, row bound, noise, certificate
  std::int64_t records = 0;  // 0: private
  bool counts_users = false;
  std::int64_t rows_per_user = 0;  // of users: at most
  Adjacency adjacency = Adjacency::kAddRemove;
  Interval epsilon;
  double delta = 0;
  std::string event;
  bool needs_minimum = false;  // a gradient norm is certified
  bool has_test = false;
  std::string ledger;  // empty: none
  Budget budget;
  Interval ledger_epsilon;
  std::string ledger_head;
  std::size_t ledger_seeded = 0;
  ReleasePurpose purpose;
};

// The guarantee in one sentence, for the end of a fit on a terminal.
std::string FitGuarantee(const FitFacts& facts);
// Plain text of at most 80 columns, ending in a line break.
std::string FitStatement(const FitFacts& facts);

}  // namespace sordino

#endif  // SORDINO_RUNS_FIT_STATEMENT_H_
