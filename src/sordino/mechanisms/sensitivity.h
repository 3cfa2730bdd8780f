// How far a statistic can move when one record changes.
//
// Global sensitivity: the maximum of ||f(D) - f(D')|| over all neighbouring D, D'; local
// sensitivity: the same with D fixed (Dwork et al. 2006; Nissim, Raskhodnikova and Smith 2007).
// Noise may be scaled to the global one only: the local one is itself a fact about the data and
// must not be released.
//
// Records are numbers in declared bounds [low, high], w = high - low. Under add-remove `n` is a
// promise that the smaller of two neighbours has at least n records; under replace-one the number
// of records is public and equals n. The global forms, with L1 = L2 for all but the histogram:
//
//   statistic   add-remove              replace-one
//   count       1                       0
//   sum         max(|low|, |high|)      w
//   mean        w / (n + 1)             w / n
//   variance    w^2 n / (n + 1)^2       w^2 (n - 1) / n^2     (population variance, divisor n)
//   median      w / 2                   w for odd n, w / 2 for even n
//   minimum     w                       w
//   maximum     w                       w
//   histogram   1                       2 in L1, sqrt(2) in L2
//
// The median of an even number of records is the mean of the two in the middle. Where no finite
// number exists the answer says why: without bounds one record can move a sum without limit,
// and the mean of an empty dataset does not exist.
#ifndef SORDINO_MECHANISMS_SENSITIVITY_H_
#define SORDINO_MECHANISMS_SENSITIVITY_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sordino/base/quantity.h"

namespace sordino {

// A declared range of a column. Finite, low < high; anything else throws Error.
class Bounds {
 public:
  Bounds(double low, double high);
  double low() const { return low_; }
  double high() const { return high_; }
  double width() const { return high_ - low_; }
  // The nearest point of [low, high]; NaN becomes low, so that no record escapes the bound.
  double Clamp(double value) const {
    if (!(value > low_)) return low_;
    return value < high_ ? value : high_;
  }

 private:
  double low_;
  double high_;
};

struct Sensitivity {
  L1Sensitivity l1;
  L2Sensitivity l2;
};

// A finite sensitivity, or the reason why there is none.
class SensitivityAnswer {
 public:
  static SensitivityAnswer Finite(double l1, double l2);
  static SensitivityAnswer Infinite(std::string reason);

  bool finite() const { return sensitivity_.has_value(); }
  // Stops the program when the answer is infinite: ask finite() first.
  const Sensitivity& value() const;
  // One sentence; empty for a finite answer.
  const std::string& reason() const { return reason_; }

 private:
  std::optional<Sensitivity> sensitivity_;
  std::string reason_;
};

enum class Statistic : std::uint8_t {
  kCount,
  kSum,
  kMean,
  kVariance,
  kMedian,
  kMinimum,
  kMaximum,
  kHistogram,
};

std::string_view StatisticName(Statistic statistic);  // "count", "sum", ...

// The table above. Zero-out counts as add-remove for count, sum and histogram; for the others it
// throws Error, because the statistic of a record that contributes nothing is not defined.
SensitivityAnswer GlobalSensitivity(Statistic statistic, const std::optional<Bounds>& bounds,
                                    Adjacency adjacency, std::uint64_t n);

// The sensitivity at `data`, whose values must lie in the bounds (else Error). Neighbours take
// their new record from the whole interval [low, high]. A histogram has at least two bins.
SensitivityAnswer LocalSensitivity(Statistic statistic, std::span<const double> data,
                                   const Bounds& bounds, Adjacency adjacency);

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_SENSITIVITY_H_
