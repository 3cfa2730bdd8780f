// The best of several private trainings as one release: honest tuning.
//
//   PreparedTuning tuning = PrepareTuning(settings);      // reads no private data, spends nothing
//   TunedResult result = RunTuning(tuning, observer);
//
// A try draws its settings (tried_settings.h), trains by them with the noise of the plan, and is
// scored on the public test set. It is a run of one mechanism, whatever was drawn: all settings
// that can be tried have the same event. K tries count, K drawn in secret, and the best of them is
// released with its settings: the event best-poisson or best-tnb of a try's event
// (accounting/internal/pairs/selection.h has the proof). Of tries with the same score the first one
// is released, which is each of them with equal chances, as the proof asks.
//
// What the proof asks to be secret is not shown:
//   - A public number of tries is made, always, of which the first K count; the others are trained,
//     scored and dropped. K is above that number with a probability that is paid for out of delta
//     (accounting/failures.h), with what can fail in each of E[K] tries.
//   - Nothing is written of a try before all are made. The files are those of the best one, made
//     the same way whichever it was; a part of them is written before the first try, as planned.
//   - Where no try counts (K = 0 of a Poisson number), and where the weights of the best one are
//     not finite, the model has its initial weights. It is trained no less: all tries take all
//     steps.
//
// A tuning is one charge, which is durable before the first noise is drawn. It cannot be resumed:
// whoever could stop it at a chosen moment would learn how the tries went.
#ifndef SORDINO_RUNS_TUNED_TRAINING_H_
#define SORDINO_RUNS_TUNED_TRAINING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/ledger/budget_filter.h"
#include "sordino/mechanisms/private_selection.h"
#include "sordino/runs/training_run.h"
#include "sordino/runs/tried_settings.h"

namespace sordino {

inline constexpr std::int64_t kMaxTries = 10'000;

struct TuneSettings {
  TrainConfig config;                    // with a target epsilon
  std::vector<std::string> tries;        // ParseTriedSettings
  double expected = 10;                  // of the tries that count: above 1
  std::string distribution = "poisson";  // of their number; or "tnb:ETA", ETA in (-1, 10]
};

struct PreparedTuning {
  PreparedRun run;  // by the first values; its facts are those of the tuning
  std::vector<TriedSetting> tried;
  double expected = 0;
  SecretRuns tries;
  Event event = Event::None();  // of the tuning
  double failure = 0;
};

// Throws Error for every mistake that can be known without the data, and where no noise meets the
// budget.
PreparedTuning PrepareTuning(const TuneSettings& settings);

// Refuses what the ledger that was named would refuse now, and returns its filter as it would be
// with the tuning; nothing without one.
std::optional<BudgetFilter> CheckLedger(const PreparedTuning& tuning);

struct TunedResult {
  RunResult run;     // steps and noise are those of a try
  TryValues chosen;  // of the released try, in the order of PreparedTuning::tried; empty: planned
};
TunedResult PlannedResult(const PreparedTuning& tuning);

// `made` of `all` steps of all tries.
using TuningObserver = std::function<void(std::int64_t made, std::int64_t all)>;

TunedResult RunTuning(PreparedTuning& tuning, const TuningObserver& observer);

namespace internal {

// With K given instead of drawn. For tests: whoever knows K knows more than the event says.
TunedResult RunTuningWith(PreparedTuning& tuning, std::int64_t counted,
                          const TuningObserver& observer);

}  // namespace internal

}  // namespace sordino

#endif  // SORDINO_RUNS_TUNED_TRAINING_H_
