// Statistics that see the data once, row by row, in constant memory.
//
// Count, sum, mean, variance and histogram are sums of a small vector over the rows. Every row's
// vector is rounded to integers on its own, the sums are exact 128-bit integers, and integer noise
// is added to them: the sensitivity below holds for the numbers as computed, without rounding
// error (threat 2). With u = (x - low) / (high - low) of the clamped value, a row contributes
//
//   count      1
//   sum        x
//   mean       (u, 1 - u)                        mean = low + w A / (A + B)
//   variance   ((1 - u)^2, 2 u (1 - u), u^2)     from E u and E u^2
//   histogram  1 in the row's bin
//   vector mean  (x clipped to L2 norm tau, w tau)   mean = w tau A / B
//
// The vectors of mean and variance have L1 norm exactly 1, so the number of rows, which must be
// private too, is protected with them: a mean costs what a count costs.
//
// A vector mean of d numbers weighs the count with w = d^(-1/4), which makes the worst total error
// of the quotient least: a row has the L2 norm sqrt(1 + w^2) tau, and with noise of m times that in
// each coordinate the mean squared error for a mean of norm tau is
// (m tau / n)^2 (1 + w^2) (d + 1 / w^2) = (m tau / n)^2 (sqrt(d) + 1)^2, to first order in 1 / n.
// For d = 1 that is the error (2 m tau / n)^2 of replace-one with a public n; for larger d it is
// less than its d (2 m tau / n)^2.
//
// Groups. A statistic may be kept for several disjoint groups that were declared in advance. A row
// touches one group only, so all groups together have the sensitivity of one: parallel
// composition.
//
// The privacy unit. Let s be the bound on one row's vector and k the number of rows of one unit (1,
// or the cap of rows per user). L1 and L2 sensitivity are k s under add-remove. Under replace-one
// a unit's rows may leave one group and enter another: 2 k s in L1, and sqrt(2) k s in L2 where
// contributions are not negative. Only where each unit is exactly one row, there are no groups and
// no row can be skipped is the number of rows n public under replace-one (count_is_public); then
// mean and variance divide by n, the mean's sensitivity is w / n and the sum's w. Rows of vectors
// may be opposite: under replace-one two of them differ by 2 tau, which is also the most that two
// rows in different groups do, sqrt(2) sqrt(1 + w^2) tau.
#ifndef SORDINO_MECHANISMS_STREAMED_STATISTIC_H_
#define SORDINO_MECHANISMS_STREAMED_STATISTIC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/noise_kind.h"
#include "sordino/base/quantity.h"
#include "sordino/mechanisms/calibration.h"
#include "sordino/mechanisms/release.h"
#include "sordino/mechanisms/sensitivity.h"
#include "sordino/random/generator.h"

namespace sordino {

struct PrivacyUnit {
  Adjacency adjacency = Adjacency::kAddRemove;
  std::uint32_t rows = 1;        // at most so many rows belong to one unit
  std::size_t groups = 1;        // declared groups
  bool count_is_public = false;  // see above; only with replace-one, one row and one group
};

struct NoiseBudget {
  Epsilon epsilon{0};
  Delta delta{0};
  NoiseKind noise = NoiseKind::kLaplace;
  double confidence = kDefaultConfidence;
};

class StreamedStatistic {
 public:
  virtual ~StreamedStatistic() = default;
  StreamedStatistic(const StreamedStatistic&) = delete;
  StreamedStatistic& operator=(const StreamedStatistic&) = delete;

  // One row of group `group`. The value is clamped, a NaN to the lower bound; a count ignores it
  // and a histogram takes it as the number of the bin.
  virtual void Add(std::size_t group, double value) = 0;
  // The same for a row of several numbers, as many as the statistic has columns.
  virtual void AddVector(std::size_t group, std::span<const double> row);

  // One release for each group. Each call draws new noise and must be charged again.
  virtual std::vector<Release> Finish(Generator& generator) const = 0;

  // What one Finish costs, all groups together.
  virtual Event event() const = 0;
  // How far its noise is from that of the event, all groups together (release.h).
  virtual double failure() const { return 0; }

 protected:
  StreamedStatistic() = default;
};

// A bad budget or unit throws Error. A count whose number of rows is public is refused: there is
// nothing to protect, and nothing private to release.
std::unique_ptr<StreamedStatistic> MakeCount(const PrivacyUnit& unit, const NoiseBudget& budget);
std::unique_ptr<StreamedStatistic> MakeSum(const Bounds& bounds, const PrivacyUnit& unit,
                                           const NoiseBudget& budget);
std::unique_ptr<StreamedStatistic> MakeMean(const Bounds& bounds, const PrivacyUnit& unit,
                                            const NoiseBudget& budget);
std::unique_ptr<StreamedStatistic> MakeVariance(const Bounds& bounds, const PrivacyUnit& unit,
                                                const NoiseBudget& budget);
// Rows of `dimension` >= 1 numbers, each row clipped to the L2 norm tau; a row that is not finite
// is counted as a row of zeros. Release::noise_scale is that of one coordinate, to first order and
// for the coordinate where it is largest.
std::unique_ptr<StreamedStatistic> MakeVectorMean(std::size_t dimension, ClipNorm tau,
                                                  const PrivacyUnit& unit,
                                                  const NoiseBudget& budget);
// Rows whose bin is not in [0, bins) count in no bin.
std::unique_ptr<StreamedStatistic> MakeHistogram(std::size_t bins, const PrivacyUnit& unit,
                                                 const NoiseBudget& budget);

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_STREAMED_STATISTIC_H_
