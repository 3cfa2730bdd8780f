#include "sordino/mechanisms/sensitivity_survey.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

constexpr Statistic kSurveyed[] = {Statistic::kCount,    Statistic::kSum,      Statistic::kMean,
                                   Statistic::kVariance, Statistic::kMedian,   Statistic::kMinimum,
                                   Statistic::kMaximum,  Statistic::kHistogram};

TEST(SensitivitySurvey, EnumeratesTheClosedFormsOfEveryStatistic) {
  for (const Statistic statistic : kSurveyed) {
    for (const Adjacency adjacency : {Adjacency::kAddRemove, Adjacency::kReplaceOne}) {
      const SensitivitySurvey survey = SurveySensitivity({.statistic = statistic,
                                                          .bounds = Bounds(-1, 2),
                                                          .adjacency = adjacency,
                                                          .records = 3,
                                                          .domain = {-1, 0, 0.5, 2}});
      ASSERT_TRUE(survey.enumerated_global && survey.enumerated_global->finite());
      EXPECT_NEAR(survey.enumerated_global->value().l1.value(), survey.global.value().l1.value(),
                  1e-12)
          << StatisticName(statistic) << " " << AdjacencyName(adjacency);
      EXPECT_NEAR(survey.enumerated_global->value().l2.value(), survey.global.value().l2.value(),
                  1e-12);
      EXPECT_FALSE(survey.local || survey.enumerated_local || survey.smooth);
    }
  }
}

TEST(SensitivitySurvey, LocalLiesBelowSmoothBelowGlobal) {
  const std::vector<double> example = {0, 0.5, 0.5, 0.5, 1};
  for (const Statistic statistic : kSurveyed) {
    if (statistic == Statistic::kCount) continue;
    const SensitivitySurvey survey = SurveySensitivity({.statistic = statistic,
                                                        .bounds = Bounds(0, 1),
                                                        .adjacency = Adjacency::kReplaceOne,
                                                        .domain = {0, 0.5, 1},
                                                        .example = example,
                                                        .smoothness = 0.4});
    const auto size = [](const auto& answer) { return answer->value().l1.value(); };
    // A variance moves most by a record that is not in the domain: the enumeration is a lower
    // bound.
    EXPECT_LE(size(survey.enumerated_local), size(survey.local) + 1e-12);
    if (statistic != Statistic::kVariance) {
      EXPECT_NEAR(size(survey.enumerated_local), size(survey.local), 1e-12)
          << StatisticName(statistic);
    }
    EXPECT_LE(size(survey.enumerated_local), size(survey.smooth) + 1e-12);
    EXPECT_LE(size(survey.smooth), survey.global.value().l1.value() + 1e-12);
  }
}

// Nissim, Raskhodnikova and Smith 2007, section 3.1: the smooth sensitivity of the median of
// sorted x_1 <= ... <= x_n, n odd, is max_k e^{-k beta} max_t (x_{m+t} - x_{m+t-k-1}), where
// records below x_1 are the lower and those above x_n the upper bound.
double SmoothMedian(std::vector<double> x, double beta) {
  std::sort(x.begin(), x.end());
  const int n = static_cast<int>(x.size());
  const int m = (n + 1) / 2;
  const auto at = [&](int i) {
    return i < 1 ? 0.0 : i > n ? 1.0 : x[static_cast<std::size_t>(i - 1)];
  };
  double widest = 0;
  for (int k = 0; k <= n; ++k) {
    for (int t = 0; t <= k + 1; ++t) {
      widest = std::max(widest, std::exp(-k * beta) * (at(m + t) - at(m + t - k - 1)));
    }
  }
  return widest;
}

TEST(SensitivitySurvey, SmoothSensitivityOfTheMedianIsThePublishedOne) {
  for (const double beta : {0.1, 0.5, 1.0, 3.0}) {
    for (const std::vector<double>& example :
         {std::vector<double>{0.25, 0.5, 0.5, 0.5, 0.75}, std::vector<double>{0, 0, 1, 1, 1},
          std::vector<double>{0.5, 0.5, 0.5, 0.5, 0.5}, std::vector<double>{0, 0.25, 1}}) {
      const SensitivitySurvey survey = SurveySensitivity({.statistic = Statistic::kMedian,
                                                          .bounds = Bounds(0, 1),
                                                          .adjacency = Adjacency::kReplaceOne,
                                                          .domain = {0, 0.25, 0.5, 0.75, 1},
                                                          .example = example,
                                                          .smoothness = beta});
      EXPECT_NEAR(survey.smooth->value().l1.value(), SmoothMedian(example, beta), 1e-12) << beta;
    }
  }
}

// The definition: one replaced record moves the logarithm of the smooth sensitivity by at most
// beta, for every pair of neighbours.
TEST(SensitivitySurvey, SmoothSensitivityIsSmooth) {
  const std::vector<double> domain = {0, 0.5, 1};
  const auto smooth = [&](const std::vector<double>& example) {
    return SurveySensitivity({.statistic = Statistic::kVariance,
                              .bounds = Bounds(0, 1),
                              .adjacency = Adjacency::kReplaceOne,
                              .domain = domain,
                              .example = example,
                              .smoothness = 0.2})
        .smooth->value()
        .l1.value();
  };
  for (const double a : domain) {
    for (const double b : domain) {
      for (const double c : domain) {
        for (const double d : domain) {
          EXPECT_LE(std::abs(std::log(smooth({a, b, c}) / smooth({a, b, d}))), 0.2 + 1e-12);
        }
      }
    }
  }
}

TEST(SensitivitySurvey, SaysWhyThereIsNoFiniteAnswer) {
  const SensitivitySurvey survey =
      SurveySensitivity({.adjacency = Adjacency::kReplaceOne, .records = 3, .domain = {0, 1}});
  EXPECT_FALSE(survey.global.finite());
  EXPECT_DOUBLE_EQ(survey.enumerated_global->value().l1.value(), 1.0 / 3);
}

TEST(SensitivitySurvey, RefusesQuestionsThatDoNotFitTogether) {
  const auto refused = [](const SensitivityQuestion& question) {
    EXPECT_THROW(SurveySensitivity(question), Error);
  };
  refused({.statistic = Statistic::kHistogram, .records = 3});
  refused({.bounds = Bounds(0, 1), .records = 3, .domain = {0, 2}});
  refused({.bounds = Bounds(0, 1), .example = std::vector<double>{}});
  refused({.bounds = Bounds(0, 1), .example = std::vector<double>{3}});
  refused({.example = std::vector<double>{0.5}});
  refused({.bounds = Bounds(0, 1), .records = 7, .example = std::vector<double>{0.5}});
  refused({.bounds = Bounds(0, 1), .records = 30, .domain = {0, 1}});
  refused({.bounds = Bounds(0, 1), .records = 3, .domain = {0, 1}, .smoothness = 1});
  refused({.bounds = Bounds(0, 1),
           .domain = {0, 1},
           .example = std::vector<double>{0.5},
           .smoothness = 0});
  refused({.bounds = Bounds(0, 1), .adjacency = Adjacency::kZeroOut, .records = 3});
}

}  // namespace
}  // namespace sordino
