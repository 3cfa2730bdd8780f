#include "sordino/mechanisms/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "sordino/base/check.h"

namespace sordino {
namespace {

SensitivityAnswer Scalar(double value) { return SensitivityAnswer::Finite(value, value); }

SensitivityAnswer UndefinedOnEmpty(Statistic statistic) {
  return SensitivityAnswer::Infinite(fmt::format(
      "the {} of an empty dataset does not exist, so a neighbour without records has no answer; "
      "promise a smallest number of records or release a noisy sum and a noisy count",
      StatisticName(statistic)));
}

bool NeedsBounds(Statistic statistic) {
  return statistic != Statistic::kCount && statistic != Statistic::kHistogram;
}

bool ContributesAdditively(Statistic statistic) {
  return statistic == Statistic::kCount || statistic == Statistic::kSum ||
         statistic == Statistic::kHistogram;
}

// Zero-out is add-remove for additive statistics and undefined for the rest.
Adjacency Normalise(Statistic statistic, Adjacency adjacency) {
  if (adjacency != Adjacency::kZeroOut) return adjacency;
  if (ContributesAdditively(statistic)) return Adjacency::kAddRemove;
  throw Error(fmt::format(
      "the sensitivity of a {} is not defined under zero-out adjacency; use add-remove or "
      "replace-one.",
      StatisticName(statistic)));
}

double MedianOfSorted(std::span<const double> sorted) {
  const std::size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : sorted[n / 2 - 1] / 2 + sorted[n / 2] / 2;
}

struct Moments {
  double n = 0;
  double mean = 0;
  double variance = 0;  // divisor n
};

Moments MomentsOf(std::span<const double> data) {
  Moments m{.n = static_cast<double>(data.size())};
  for (const double x : data) m.mean += x / m.n;
  for (const double x : data) m.variance += (x - m.mean) * (x - m.mean) / m.n;
  return m;
}

Moments With(const Moments& m, double x) {
  const double n = m.n + 1;
  const double distance = x - m.mean;
  return {n, m.mean + distance / n, m.n / n * (m.variance + distance * distance / n)};
}

Moments Without(const Moments& m, double x) {
  const double n = m.n - 1;
  const double mean = m.mean - (x - m.mean) / n;
  const double variance = m.n / n * m.variance - (x - mean) * (x - mean) / m.n;
  return {n, mean, std::max(variance, 0.0)};
}

double LocalSum(std::span<const double> data, const Bounds& b, bool replace) {
  double worst = replace ? 0 : std::max(std::abs(b.low()), std::abs(b.high()));
  for (const double x : data) {
    worst = std::max(worst, replace ? std::max(b.high() - x, x - b.low()) : std::abs(x));
  }
  return worst;
}

double LocalMean(std::span<const double> data, const Bounds& b, bool replace) {
  const Moments m = MomentsOf(data);
  if (replace) return LocalSum(data, b, true) / m.n;
  double worst = std::max(b.high() - m.mean, m.mean - b.low()) / (m.n + 1);
  for (const double x : data) worst = std::max(worst, std::abs(x - m.mean) / (m.n - 1));
  return worst;
}

// The variance after adding x is a convex parabola in x with its minimum at the mean, so the
// extremes lie at low, high and the mean.
double FarthestVariance(const Moments& rest, const Bounds& b, double from) {
  double worst = 0;
  for (const double x : {b.low(), b.high(), b.Clamp(rest.mean)}) {
    worst = std::max(worst, std::abs(With(rest, x).variance - from));
  }
  return worst;
}

double LocalVariance(std::span<const double> data, const Bounds& b, bool replace) {
  const Moments m = MomentsOf(data);
  if (replace && data.size() == 1) return 0;
  double worst = replace ? 0 : FarthestVariance(m, b, m.variance);
  for (const double x : data) {
    const Moments rest = Without(m, x);
    worst = std::max(worst, replace ? FarthestVariance(rest, b, m.variance)
                                    : std::abs(rest.variance - m.variance));
  }
  return worst;
}

// Medians, minima and maxima are monotone in every record, so a new record need only be tried at
// the two bounds; and on sorted data only the order statistics next to the old one can matter,
// which this finds by trying every record.
template <typename OfSorted>
double LocalOrderStatistic(std::span<const double> data, const Bounds& b, bool replace,
                           const OfSorted& of_sorted) {
  std::vector<double> sorted(data.begin(), data.end());
  std::sort(sorted.begin(), sorted.end());
  const double now = of_sorted(sorted);
  double worst = 0;
  std::vector<double> other;
  const auto try_data = [&] { worst = std::max(worst, std::abs(of_sorted(other) - now)); };
  if (!replace) {
    other.assign(sorted.begin(), sorted.end());
    other.insert(other.begin(), b.low());
    try_data();
    other.assign(sorted.begin(), sorted.end());
    other.push_back(b.high());
    try_data();
  }
  // Removing any record left of the middle has the same effect on the middle, and so on the
  // right; the ends and the middle itself cover every case.
  const std::size_t n = sorted.size();
  for (const std::size_t i : {std::size_t{0}, (n - 1) / 2, n / 2, n - 1}) {
    std::vector<double> rest(sorted.begin(), sorted.end());
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
    if (!replace) {
      other = rest;
      try_data();
      continue;
    }
    other = rest;
    other.insert(other.begin(), b.low());
    try_data();
    other = rest;
    other.push_back(b.high());
    try_data();
  }
  return worst;
}

}  // namespace

Bounds::Bounds(double low, double high) : low_(low), high_(high) {
  if (!std::isfinite(low) || !std::isfinite(high) || !(low < high) || !std::isfinite(high - low)) {
    throw Error(fmt::format(
        "the bounds {},{} are not a range; give two finite numbers, the smaller one first.", low,
        high));
  }
}

SensitivityAnswer SensitivityAnswer::Finite(double l1, double l2) {
  SensitivityAnswer answer;
  answer.sensitivity_ = Sensitivity{L1Sensitivity(l1), L2Sensitivity(l2)};
  return answer;
}

SensitivityAnswer SensitivityAnswer::Infinite(std::string reason) {
  SensitivityAnswer answer;
  answer.reason_ = std::move(reason);
  return answer;
}

const Sensitivity& SensitivityAnswer::value() const {
  SORDINO_CHECK(sensitivity_.has_value(), "an infinite sensitivity was used as a number");
  return *sensitivity_;
}

std::string_view StatisticName(Statistic statistic) {
  switch (statistic) {
    case Statistic::kCount:
      return "count";
    case Statistic::kSum:
      return "sum";
    case Statistic::kMean:
      return "mean";
    case Statistic::kVariance:
      return "variance";
    case Statistic::kMedian:
      return "median";
    case Statistic::kMinimum:
      return "minimum";
    case Statistic::kMaximum:
      return "maximum";
    case Statistic::kHistogram:
      return "histogram";
  }
  return "statistic";
}

SensitivityAnswer GlobalSensitivity(Statistic statistic, const std::optional<Bounds>& bounds,
                                    Adjacency adjacency, std::uint64_t n) {
  const bool replace = Normalise(statistic, adjacency) == Adjacency::kReplaceOne;
  if (NeedsBounds(statistic) && !bounds) {
    return SensitivityAnswer::Infinite(
        fmt::format("without bounds one record can move a {} without limit; declare bounds",
                    StatisticName(statistic)));
  }
  if (!ContributesAdditively(statistic) && n == 0) return UndefinedOnEmpty(statistic);
  const double w = bounds ? bounds->width() : 0;
  const double count = static_cast<double>(n);
  switch (statistic) {
    case Statistic::kCount:
      return Scalar(replace ? 0 : 1);
    case Statistic::kSum:
      return Scalar(replace ? w : std::max(std::abs(bounds->low()), std::abs(bounds->high())));
    case Statistic::kMean:
      return Scalar(replace ? w / count : w / (count + 1));
    case Statistic::kVariance:
      return Scalar(replace ? w * w * (count - 1) / (count * count)
                            : w * w * count / ((count + 1) * (count + 1)));
    case Statistic::kMedian:
      return Scalar(replace && n % 2 == 1 ? w : w / 2);
    case Statistic::kMinimum:
    case Statistic::kMaximum:
      return Scalar(w);
    case Statistic::kHistogram:
      return replace ? SensitivityAnswer::Finite(2, std::numbers::sqrt2) : Scalar(1);
  }
  SORDINO_CHECK(false, "an unknown statistic has no sensitivity");
}

SensitivityAnswer LocalSensitivity(Statistic statistic, std::span<const double> data,
                                   const Bounds& bounds, Adjacency adjacency) {
  const bool replace = Normalise(statistic, adjacency) == Adjacency::kReplaceOne;
  for (const double x : data) {
    if (!(x >= bounds.low() && x <= bounds.high())) {
      throw Error(fmt::format("the record {} lies outside the bounds {},{}; clamp the data first.",
                              x, bounds.low(), bounds.high()));
    }
  }
  if (replace && data.empty()) return Scalar(0);
  // Adding to an empty dataset or removing the only record meets an empty dataset.
  if (!replace && !ContributesAdditively(statistic) && data.size() < 2) {
    return UndefinedOnEmpty(statistic);
  }
  switch (statistic) {
    case Statistic::kCount:
    case Statistic::kHistogram:
      return GlobalSensitivity(statistic, bounds, adjacency, data.size());
    case Statistic::kSum:
      return Scalar(LocalSum(data, bounds, replace));
    case Statistic::kMean:
      return Scalar(LocalMean(data, bounds, replace));
    case Statistic::kVariance:
      return Scalar(LocalVariance(data, bounds, replace));
    case Statistic::kMedian:
      return Scalar(LocalOrderStatistic(data, bounds, replace, MedianOfSorted));
    case Statistic::kMinimum:
      return Scalar(LocalOrderStatistic(data, bounds, replace,
                                        [](std::span<const double> s) { return s.front(); }));
    case Statistic::kMaximum:
      return Scalar(LocalOrderStatistic(data, bounds, replace,
                                        [](std::span<const double> s) { return s.back(); }));
  }
  SORDINO_CHECK(false, "an unknown statistic has no sensitivity");
}

}  // namespace sordino
