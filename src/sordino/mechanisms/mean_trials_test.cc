#include "sordino/mechanisms/mean_trials.h"

#include <gtest/gtest.h>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// A measured error is within 5 standard errors of an exact prediction: false alarms below 1e-5.
TEST(MeanTrials, BinaryErrorsAreAsPredicted) {
  InsecureSeededGenerator noise(1);
  for (const double epsilon : {0.05, 1.0}) {
    const MeanQuestion question{
        .kind = MeanKind::kBinary, .records = 200, .epsilon = Epsilon(epsilon)};
    const MeasuredMeanError measured = MeasureMeanError(question, 4000, 7, noise);
    EXPECT_NEAR(measured.error, PredictMeanError(question).error, 5 * measured.standard_error);
    EXPECT_LT(measured.standard_error, 0.1 * measured.error);
  }
}

TEST(MeanTrials, BoundsHoldAndAreNotVacuous) {
  InsecureSeededGenerator noise(2);
  const MeanQuestion scalar{.kind = MeanKind::kScalar, .records = 500, .epsilon = Epsilon(1)};
  const MeanQuestion vector{.kind = MeanKind::kVector,
                            .records = 500,
                            .dimension = 20,
                            .epsilon = Epsilon(1),
                            .delta = Delta(1e-5)};
  for (const MeanQuestion& question : {scalar, vector}) {
    const double bound = PredictMeanError(question).error;
    const MeasuredMeanError measured = MeasureMeanError(question, 500, 7, noise);
    EXPECT_LT(measured.error, bound + 5 * measured.standard_error);
    EXPECT_GT(measured.error, bound / 10);
    EXPECT_GT(measured.error, PredictMeanError(question).without_privacy);
  }
}

TEST(MeanTrials, RefusesWhatHasNoAnswer) {
  SecureGenerator noise;
  EXPECT_THROW(PredictMeanError({.records = 0}), Error);
  EXPECT_THROW(PredictMeanError({.records = 5, .epsilon = Epsilon(0)}), Error);
  EXPECT_THROW(PredictMeanError({.records = 5, .dimension = 2}), Error);
  EXPECT_THROW(PredictMeanError({.kind = MeanKind::kVector, .records = 5}), Error);
  EXPECT_THROW(MeasureMeanError({.records = 5}, 1, 1, noise), Error);
  EXPECT_THROW(MeasureMeanError({.records = 1'000'000'000}, 100, 1, noise), Error);
}

}  // namespace
}  // namespace sordino
