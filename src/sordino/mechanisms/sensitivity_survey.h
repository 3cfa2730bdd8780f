// The sensitivities of a named statistic side by side: in closed form over an interval, and
// enumerated over a small domain of records (sensitivity.h, enumerated_sensitivity.h).
//
// The enumeration shares nothing with the closed forms but the statistic itself, so that each shows
// the other right. It is exact for the domain; for the interval it is a lower bound. Under
// add-remove `records` is the promised least number in the smaller neighbour: datasets of that size
// and one more are tried, with all their neighbours.
//
// Smooth sensitivity (Nissim, Raskhodnikova and Smith 2007), under replace-one only: the largest
// over all datasets y of the domain of e^{-beta d(x, y)} times the local sensitivity at y, with d
// the number of records in which x and y differ. It is an upper bound on the local sensitivity
// whose logarithm moves by at most beta when one record changes, so that noise may be scaled to it
// with the mechanisms of that paper; none of them is in this library.
//
// Local and smooth sensitivity are facts about the example: it is declared, never private data.
#ifndef SORDINO_MECHANISMS_SENSITIVITY_SURVEY_H_
#define SORDINO_MECHANISMS_SENSITIVITY_SURVEY_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "sordino/mechanisms/enumerated_sensitivity.h"
#include "sordino/mechanisms/sensitivity.h"

namespace sordino {

// The statistic as a function of the records. A histogram has `bins` >= 2 equal bins within the
// bounds, which it needs; a mean and what else does not exist for no records is NaN there.
Query<double> StatisticQuery(Statistic statistic, const std::optional<Bounds>& bounds = {},
                             std::size_t bins = 2);

inline constexpr double kMaxSurveyQueries = 2e7;
inline constexpr std::size_t kSurveyBins = 2;
inline constexpr std::size_t kMaxSurveyBins = 1000;

struct SensitivityQuestion {
  Statistic statistic = Statistic::kMean;
  std::optional<Bounds> bounds = {};
  Adjacency adjacency = Adjacency::kAddRemove;
  std::uint64_t records = 0;
  std::size_t bins = kSurveyBins;                   // of a histogram
  std::vector<double> domain = {};                  // empty: nothing is enumerated
  std::optional<std::vector<double>> example = {};  // a declared dataset
  std::optional<double> smoothness = {};            // beta > 0, for an example and a domain
};

struct SensitivitySurvey {
  SensitivityAnswer global;
  std::optional<SensitivityAnswer> enumerated_global = {};
  std::optional<SensitivityAnswer> local = {};
  std::optional<SensitivityAnswer> enumerated_local = {};
  std::optional<SensitivityAnswer> smooth = {};
};

// Throws Error for a question that does not fit together, for records of the domain or the example
// outside of the bounds, and for more than kMaxSurveyQueries evaluations of the statistic.
SensitivitySurvey SurveySensitivity(const SensitivityQuestion& question);

}  // namespace sordino

#endif  // SORDINO_MECHANISMS_SENSITIVITY_SURVEY_H_
