// How many bands of correlated noise are worth their noise, where records are sampled.
//
// Cyclic Poisson sampling with b bands (BandMF; Choquette-Choo et al., arXiv 2306.08153, Theorem
// 4): the records are split into b groups once, without looking at them; step t draws from group t
// mod b, each record with probability b q, where q is the expected batch over all records. C has b
// bands, so the columns of one group's steps do not overlap, and the run is ceil(n / b) Poisson
// releases of one group: the event is
//
//   ceil(n / b) * poisson(b q, gaussian(z)),
//
// with the draws' deviation z * ColumnNorm of C. One band is Poisson sampling with independent
// noise; 1/q bands are one release of each record an epoch, without amplification.
//
// The choice. For each number of bands, the least z that meets the budget is found with the
// certified accountant (accounting/calibration.h), and the bands with the least RMSE at that noise
// win. Fewer bands are more amplification, more bands are less noise in sums.
#ifndef SORDINO_CORRELATION_BANDS_CHOICE_H_
#define SORDINO_CORRELATION_BANDS_CHOICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"
#include "sordino/correlation/strategy.h"

namespace sordino {

struct BandsQuestion {
  std::int64_t steps;  // n
  SamplingRate rate;   // q, of a step: expected batch over records
  Epsilon epsilon;
  Delta delta;
  Adjacency adjacency = Adjacency::kAddRemove;
};

struct BandsRow {
  std::int64_t bands;
  NoiseMultiplier noise;  // z
  Interval epsilon;       // at that noise
  double rmse;            // of prefix sums, in units of one contribution
};

struct BandsChoice {
  BandsRow best;
  BandsRow independent;          // one band
  std::vector<BandsRow> rows;    // all that were looked at, by their bands
  std::string strategy() const;  // "banded:10", "none"
  double Ratio() const { return best.rmse / independent.rmse; }
};

// The event of a run with so many bands. Throws Error for b q > 1.
Event CyclicPoissonEvent(std::int64_t steps, SamplingRate rate, std::int64_t bands,
                         NoiseMultiplier noise, Adjacency adjacency = Adjacency::kAddRemove);

// The best number of bands up to 1/q, 256 and what is optimised in about a second. nullopt: no
// noise meets the budget.
std::optional<BandsChoice> ChooseBands(const BandsQuestion& question);
// So many bands alone.
std::optional<BandsRow> CalibrateBands(const BandsQuestion& question, std::int64_t bands);

// Where nobody samples (a stream, a fixed order, one pass): the least RMSE of independent noise, of
// the bands that 'banded' takes and of the buffers that 'blt' takes. The noise multiplier is the
// same for all of them, so it does not matter.
std::unique_ptr<Strategy> ChooseUnsampled(const Participation& participation);

}  // namespace sordino

#endif  // SORDINO_CORRELATION_BANDS_CHOICE_H_
