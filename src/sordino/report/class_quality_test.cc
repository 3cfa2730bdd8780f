#include "sordino/report/class_quality.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace sordino {
namespace {

struct Answer {
  std::vector<double> probabilities;
  std::int64_t truth;
};

ClassQuality QualityOf(const std::vector<Answer>& answers) {
  ClassQualityMeter meter;
  for (const Answer& answer : answers) meter.Add(answer.probabilities, answer.truth);
  return meter.Quality();
}

TEST(ClassQuality, OfFourRecordsIsThatByHand) {
  const ClassQuality quality =
      QualityOf({{{0.9, 0.1}, 0}, {{0.4, 0.6}, 1}, {{0.3, 0.7}, 0}, {{0.4, 0.6}, 0}});
  EXPECT_DOUBLE_EQ(quality.accuracy, 0.5);
  EXPECT_DOUBLE_EQ(quality.log_loss,
                   -(std::log(0.9) + std::log(0.6) + std::log(0.3) + std::log(0.4)) / 4);
  // The record of class 1 has 0.6, the others 0.1, 0.7 and 0.6.
  EXPECT_DOUBLE_EQ(*quality.auroc, 1.5 / 3);
  // Bins [9, 10) / 15 with 0.6 and 0.6, one right; [10, 11) with 0.7, wrong; [13, 14) with 0.9.
  EXPECT_NEAR(quality.calibration_error, (0.2 + 0.7 + 0.1) / 4, 1e-12);
  EXPECT_EQ(quality.calibration[9].records, 2);
  EXPECT_DOUBLE_EQ(quality.calibration[9].right, 0.5);
  EXPECT_DOUBLE_EQ(quality.calibration[13].probability, 0.9);
}

TEST(ClassQuality, OfOneClassHasNoArea) {
  EXPECT_FALSE(QualityOf({{{1, 0}, 0}, {{0.2, 0.8}, 0}}).auroc);
}

TEST(ClassQuality, ACertainMistakeIsAFiniteLoss) {
  EXPECT_TRUE(std::isfinite(QualityOf({{{1, 0}, 1}}).log_loss));
}

// All pairs of records, for each class.
TEST(ClassQuality, AreaIsThatOfAllPairs) {
  std::mt19937_64 random(5);
  std::vector<Answer> answers;
  for (int i = 0; i < 150; ++i) {
    // Few values, so that there are ties.
    std::vector<double> chances(4);
    double sum = 0;
    for (double& chance : chances) sum += chance = 1.0 + static_cast<double>(random() % 4);
    for (double& chance : chances) chance /= sum;
    answers.push_back({chances, static_cast<std::int64_t>(random() % 4)});
  }
  double mean = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    double wins = 0;
    double pairs = 0;
    for (const Answer& member : answers) {
      if (member.truth != static_cast<std::int64_t>(k)) continue;
      for (const Answer& other : answers) {
        if (other.truth == static_cast<std::int64_t>(k)) continue;
        ++pairs;
        const double gap = member.probabilities[k] - other.probabilities[k];
        wins += gap > 0 ? 1 : gap == 0 ? 0.5 : 0;
      }
    }
    mean += wins / pairs / 4;
  }
  EXPECT_NEAR(*QualityOf(answers).auroc, mean, 1e-12);
}

// Records whose classes are drawn from the probabilities: the error is what few records leave.
TEST(ClassQuality, OfHonestProbabilitiesIsCalibrated) {
  std::mt19937_64 random(6);
  std::uniform_real_distribution<double> uniform;
  std::vector<Answer> answers;
  for (int i = 0; i < 60'000; ++i) {
    const double chance = uniform(random);
    answers.push_back({{1 - chance, chance}, uniform(random) < chance ? 1 : 0});
  }
  // 8 bins of some 8,000 records: each differs by less than 5 / sqrt(4 8,000) but once in 10^6.
  EXPECT_LT(QualityOf(answers).calibration_error, 5 / std::sqrt(32'000.0));
}

}  // namespace
}  // namespace sordino
