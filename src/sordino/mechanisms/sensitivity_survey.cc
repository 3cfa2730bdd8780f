#include "sordino/mechanisms/sensitivity_survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/base/quantity.h"

namespace sordino {
namespace {

constexpr double kNotThere = std::numeric_limits<double>::quiet_NaN();

double SumOf(const std::vector<double>& data) {
  double sum = 0;
  for (const double x : data) sum += x;
  return sum;
}

double MeanOf(const std::vector<double>& data) {
  return data.empty() ? kNotThere : SumOf(data) / static_cast<double>(data.size());
}

double VarianceOf(const std::vector<double>& data) {
  const double mean = MeanOf(data);
  double squares = 0;
  for (const double x : data) squares += (x - mean) * (x - mean);
  return data.empty() ? kNotThere : squares / static_cast<double>(data.size());
}

double MedianOf(std::vector<double> data) {
  if (data.empty()) return kNotThere;
  std::sort(data.begin(), data.end());
  const std::size_t half = data.size() / 2;
  return data.size() % 2 == 1 ? data[half] : (data[half - 1] + data[half]) / 2;
}

std::vector<double> BinCounts(const std::vector<double>& data, const Bounds& bounds,
                              std::size_t bins) {
  std::vector<double> counts(bins, 0);
  for (const double x : data) {
    const double place = (x - bounds.low()) / bounds.width() * static_cast<double>(bins);
    counts[static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(bins) - 1))] += 1;
  }
  return counts;
}

// Which dataset of n records of the domain comes next, like the digits of a number. False behind
// the last.
bool NextDataset(const std::vector<double>& domain, std::vector<std::size_t>& digits,
                 std::vector<double>& data) {
  for (std::size_t place = 0; place < digits.size(); ++place) {
    digits[place] = (digits[place] + 1) % domain.size();
    data[place] = domain[digits[place]];
    if (digits[place] != 0) return true;
  }
  return false;
}

SensitivityAnswer SmoothSensitivity(const Query<double>& query, const std::vector<double>& example,
                                    const std::vector<double>& domain, double beta) {
  double l1 = 0;
  double l2 = 0;
  // The example itself, whose records need not be in the domain.
  const auto take = [&](const std::vector<double>& data) {
    double distance = 0;
    for (std::size_t i = 0; i < data.size(); ++i) distance += data[i] == example[i] ? 0 : 1;
    const SensitivityAnswer local =
        EnumerateLocalSensitivity<double>(query, data, domain, Adjacency::kReplaceOne);
    l1 = std::max(l1, std::exp(-beta * distance) * local.value().l1.value());
    l2 = std::max(l2, std::exp(-beta * distance) * local.value().l2.value());
  };
  take(example);
  std::vector<double> data(example.size(), domain.front());
  std::vector<std::size_t> digits(example.size(), 0);
  do {
    take(data);
  } while (NextDataset(domain, digits, data));
  return SensitivityAnswer::Finite(l1, l2);
}

void CheckRecords(const char* what, const std::vector<double>& values,
                  const std::optional<Bounds>& bounds) {
  for (const double x : values) {
    if (!std::isfinite(x) || (bounds && (x < bounds->low() || x > bounds->high()))) {
      throw Error(fmt::format("{} holds {}, which is not within the bounds; give records that are.",
                              what, x));
    }
  }
}

// One dataset of n records has n neighbours for each value of the domain, or n and one for each.
void CheckEffort(const SensitivityQuestion& question, double records) {
  const double values = static_cast<double>(question.domain.size());
  const bool replace = question.adjacency == Adjacency::kReplaceOne;
  const double size = replace ? records : records + 1;
  const double queries =
      std::pow(values, size) * (replace ? size * values : size + values) * (size + 1);
  if (queries <= kMaxSurveyQueries) return;
  throw Error(
      fmt::format("{} values in datasets of {} records are {:.1e} steps to enumerate, more than "
                  "{:.0e}; give a smaller domain or fewer records.",
                  values, size, queries, kMaxSurveyQueries));
}

void Check(const SensitivityQuestion& question) {
  if (question.statistic == Statistic::kHistogram && (question.bins < 2 || !question.bounds)) {
    throw Error("a histogram has at least two equal bins within its bounds; give bounds and bins.");
  }
  if (question.adjacency == Adjacency::kZeroOut) {
    throw Error("sensitivities are surveyed under add-remove or replace-one, not zero-out.");
  }
  CheckRecords("the domain", question.domain, question.bounds);
  if (question.example) {
    if (!question.bounds) {
      throw Error("the local sensitivity at an example needs the bounds of the records.");
    }
    CheckRecords("the example", *question.example, question.bounds);
    if (question.example->empty()) throw Error("an example has at least one record.");
  }
  if (!question.smoothness) return;
  CheckRange("the smoothness beta", *question.smoothness, 0, true, kInfinity, true);
  if (!question.example || question.domain.empty() ||
      question.adjacency != Adjacency::kReplaceOne) {
    throw Error(
        "smooth sensitivity is that of an example over a domain, under replace-one; give all "
        "three.");
  }
}

// By default that of the example; under add-remove the neighbour without one of its records.
std::uint64_t RecordsOf(const SensitivityQuestion& question) {
  if (!question.example) return question.records;
  const std::uint64_t size = question.example->size();
  const std::uint64_t least = question.adjacency == Adjacency::kReplaceOne ? size : size - 1;
  if (question.records == 0 || question.records == least) return least;
  throw Error(
      fmt::format("an example of {} records is a dataset of {} here, and {} were given; leave the "
                  "number of records out.",
                  size, least, question.records));
}

}  // namespace

Query<double> StatisticQuery(Statistic statistic, const std::optional<Bounds>& bounds,
                             std::size_t bins) {
  return [=](const std::vector<double>& data) -> std::vector<double> {
    switch (statistic) {
      case Statistic::kCount:
        return {static_cast<double>(data.size())};
      case Statistic::kSum:
        return {SumOf(data)};
      case Statistic::kMean:
        return {MeanOf(data)};
      case Statistic::kVariance:
        return {VarianceOf(data)};
      case Statistic::kMedian:
        return {MedianOf(data)};
      case Statistic::kMinimum:
        return {data.empty() ? kNotThere : *std::min_element(data.begin(), data.end())};
      case Statistic::kMaximum:
        return {data.empty() ? kNotThere : *std::max_element(data.begin(), data.end())};
      case Statistic::kHistogram:
        return BinCounts(data, bounds.value(), bins);
    }
    SORDINO_CHECK(false, "an unknown statistic has no value");
  };
}

SensitivitySurvey SurveySensitivity(const SensitivityQuestion& question) {
  Check(question);
  const std::uint64_t records = RecordsOf(question);
  const Query<double> query = StatisticQuery(question.statistic, question.bounds, question.bins);
  SensitivitySurvey survey{.global = GlobalSensitivity(question.statistic, question.bounds,
                                                       question.adjacency, records)};
  const bool enumerates = !question.domain.empty() && records > 0;
  if (enumerates) {
    CheckEffort(question, static_cast<double>(records));
    const bool replace = question.adjacency == Adjacency::kReplaceOne;
    survey.enumerated_global = EnumerateGlobalSensitivity<double>(
        query, replace ? records : records + 1, question.domain, question.adjacency);
  }
  if (!question.example) return survey;
  survey.local =
      LocalSensitivity(question.statistic, *question.example, *question.bounds, question.adjacency);
  if (!question.domain.empty()) {
    survey.enumerated_local = EnumerateLocalSensitivity<double>(
        query, *question.example, question.domain, question.adjacency);
  }
  if (question.smoothness) {
    survey.smooth =
        SmoothSensitivity(query, *question.example, question.domain, *question.smoothness);
  }
  return survey;
}

}  // namespace sordino
