// What a run guarantees, in words that a data-protection officer can read.
//
// The statement says who is protected and against what, how strongly, under which assumptions, and
// what is not covered. It holds public values only. A run that is not private says so first.
#ifndef SORDINO_RUNS_STATEMENT_H_
#define SORDINO_RUNS_STATEMENT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/ledger/budget.h"
#include "sordino/report/deployment_record.h"

namespace sordino {

enum class RunState : std::uint8_t {
  kPlanned,      // nothing was trained (a dry run), or the run has not ended
  kFinished,     // all steps were made
  kInterrupted,  // it was stopped before
};

enum class RunPrivacy : std::uint8_t {
  kPrivate,
  kNonPrivate,    // neither clipping nor noise
  kWithoutNoise,  // clipping alone
  kSeeded,        // noise and batches from a seed that was typed
};

// Whether there is noise, and so a plan that would guarantee something with secret randomness.
constexpr bool HasNoise(RunPrivacy privacy) {
  return privacy == RunPrivacy::kPrivate || privacy == RunPrivacy::kSeeded;
}

// Noise that was lowered as the run went (training/adaptive_noise.h).
struct NoiseLevel {
  std::int64_t step = 0;  // steps made before the measurement
  double count = 0;       // of held-out records that were predicted right, noised
  double noise = 0;       // the multiplier from then on
};
struct AdaptiveFacts {
  std::string filter;      // "Renyi filter of order 12.3"
  double first_noise = 0;  // before any measurement
  double count_noise = 0;  // standard deviation on a count
  std::vector<NoiseLevel> levels;

  std::int64_t Lowered() const;  // how often
};

// Everything that the statement depends on.
struct StatementFacts {
  RunState state = RunState::kPlanned;
  RunPrivacy privacy = RunPrivacy::kPrivate;
  std::string data;                // its name
  std::string model;               // a sentence: models/model.h
  std::int64_t records = 0;        // 0: private
  std::int64_t rows_per_user = 0;  // 0: the unit is a record
  Adjacency adjacency = Adjacency::kAddRemove;
  Interval epsilon;           // what the ledger counts for the run, or would count for the plan
  Interval steps_epsilon;     // of the steps made, if the moment of the stop was fixed in advance
  Interval largest_epsilon;   // of the steps charged and all that were planned, made or not
  bool counts_whole = false;  // epsilon is that of the plan: ledger/budget_filter.h
  double delta = 0;
  std::int64_t steps = 0;  // made, or planned
  std::int64_t planned_steps = 0;
  bool charges_epochs = false;     // an event is that of an epoch, not of a step
  bool has_secret_batches = true;  // nobody may know who was in which batch
  std::string sampling;            // a paragraph of the sampler; empty: nothing to add
  std::string plan;                // a sentence: privacy_plan.h
  std::string event;               // accounting/event.h
  std::string tuning;              // how it was chosen among tries; empty: it is the only one
  std::string normalisation;       // where its constants are from; empty: pixels / 255
  std::string pretrained;          // the file that the weights began with; empty: none
  std::string norms_assumption;    // of how norms were found; empty: none
  bool has_test = false;           // a public test set was looked at
  std::optional<AdaptiveFacts> adaptive;  // nullopt: the plan was fixed in advance
  std::string audit;                      // a paragraph of run_audit.h; empty: there was none
  std::string stopped_by;                 // why it was stopped, where it was not asked to: a clause
  std::int64_t lost_steps = 0;            // charged, and not part of the run (run_ledger.h)
  std::string ledger;                     // its file; empty: the run has a ledger of its own
  Budget budget;                          // the ledger's, of all runs together
  Interval ledger_epsilon;                // composed, of everything that was charged to it
  std::string ledger_head;                // hash of its last entry
  std::size_t ledger_seeded = 0;          // runs in it whose noise came from a typed seed
  ReleasePurpose purpose;                 // as the people behind it say
};

// "NOT PRIVATE" and why; empty for a private run.
std::string NotPrivateWarning(RunPrivacy privacy);

// Why the numbers of a private run protect nobody, loudly: epsilon above 50, or delta above one
// over the declared number of records; empty otherwise.
std::string WeakGuaranteeWarning(const StatementFacts& facts);

// The guarantee in one sentence, after the warning where there is one, for the end of a run on a
// terminal.
std::string GuaranteeSentence(const StatementFacts& facts);

// Plain text of at most 80 columns, ending in a line break.
std::string Statement(const StatementFacts& facts);

}  // namespace sordino

#endif  // SORDINO_RUNS_STATEMENT_H_
