#include "sordino/audit/membership.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "sordino/lower_bounds/two_worlds.h"

namespace sordino {
namespace {

using ::testing::ElementsAre;

TEST(ClassConfidences, AreLogOddsOfTheRightClass) {
  const at::Tensor logits =
      at::tensor({1.0, 2.0, 4.0, 0.0, 0.0, 0.0, 800.0, 0.0, 0.0}).view({3, 3});
  const at::Tensor confidences = ClassConfidences(logits, at::tensor({1, 0, 0}, at::kLong));
  const double odds = std::exp(2.0) / (std::exp(1.0) + std::exp(4.0));
  EXPECT_NEAR(confidences[0].item<double>(), std::log(odds), 1e-12);
  EXPECT_NEAR(confidences[1].item<double>(), std::log(0.5), 1e-12);
  EXPECT_NEAR(confidences[2].item<double>(), 800 - std::log(2.0), 1e-9);
}

// Records of different difficulty: what a model says of one tells little, beside what other models
// say of the same one it tells much.
struct MadeUpModels {
  explicit MadeUpModels(std::int64_t records, std::int64_t shadows, double shift) {
    std::mt19937_64 random(8);
    std::normal_distribution<double> normal;
    saw = at::zeros({shadows, records}, at::TensorOptions().dtype(at::kBool));
    confidences = at::zeros({shadows, records}, at::kDouble);
    target = at::zeros({records}, at::kDouble);
    is_member = at::zeros({records}, at::TensorOptions().dtype(at::kBool));
    for (std::int64_t i = 0; i < records; ++i) {
      const double difficulty = 5 * normal(random);
      const double spread = std::exp(0.3 * normal(random));
      is_member[i] = i < records / 2;
      target[i] = difficulty + spread * (normal(random) + (i < records / 2 ? shift : 0));
      for (std::int64_t k = 0; k < shadows; ++k) {
        const bool in = (k + i) % 2 == 0;
        saw[k][i] = in;
        confidences[k][i] = difficulty + spread * (normal(random) + (in ? shift : 0));
      }
    }
  }

  double AreaOf(const AttackScores& attack) const {
    std::vector<double> members;
    std::vector<double> others;
    for (std::size_t i = 0; i < attack.scores.size(); ++i) {
      (i < attack.scores.size() / 2 ? members : others).push_back(attack.scores[i]);
    }
    return TwoWorlds(members, others).Area(0.05).value;
  }

  at::Tensor target;
  at::Tensor confidences;
  at::Tensor saw;
  at::Tensor is_member;
};

TEST(MembershipScores, ShadowsTellWhatTheLossAloneDoesNot) {
  const MadeUpModels models(600, 32, 1.5);
  const auto attacks = MembershipScores(models.target, {models.confidences, models.saw},
                                        models.is_member.logical_not());
  std::vector<std::string> names;
  std::vector<double> areas;
  for (const AttackScores& attack : attacks) {
    names.push_back(attack.attack);
    areas.push_back(models.AreaOf(attack));
    EXPECT_EQ(attack.scores.size(), 600U);
  }
  EXPECT_THAT(names, ElementsAre("loss", "calibrated", "lira", "lira-fixed", "lira-offline",
                                 "bavaria", "rmia"));
  // The best of all tests of shift 1.5 has the area Phi(1.5 / sqrt 2) = 0.856.
  EXPECT_LT(areas[0], 0.65);
  for (std::size_t i = 1; i < 6; ++i) EXPECT_GT(areas[i], 0.8) << names[i];
  EXPECT_GT(areas[6], 0.65);
  for (const double area : areas) EXPECT_LT(area, 0.9);
}

TEST(MembershipScores, ShowNothingWhereNothingIsToBeSeen) {
  const MadeUpModels models(2000, 8, 0);
  for (const AttackScores& attack : MembershipScores(
           models.target, {models.confidences, models.saw}, models.is_member.logical_not())) {
    EXPECT_NEAR(models.AreaOf(attack), 0.5, 0.06) << attack.attack;  // five deviations of 0.013
  }
}

// Confidences 0, 2 of the shadows that saw it and 5, 7 of those that did not, for two records: both
// variances are 2, so the pooled one is too, and each predictive distribution is a t of 1 + 4
// degrees of freedom around the mean with the squared scale 2 (1 + 1 / 2).
TEST(MembershipScores, BayesianVariancesGiveStudentsRatio) {
  const at::Tensor confidences =
      at::tensor({0.0, 0.0, 2.0, 2.0, 5.0, 5.0, 7.0, 7.0}, at::kDouble).view({4, 2});
  const at::Tensor saw = at::tensor({1, 1, 1, 1, 0, 0, 0, 0}, at::kLong).view({4, 2}).to(at::kBool);
  const auto attacks = MembershipScores(at::tensor({1.0, 3.0}, at::kDouble), {confidences, saw},
                                        at::tensor({0, 1}, at::kLong).to(at::kBool));
  const auto& scores = attacks[5].scores;
  const auto log_density = [](double distance) {
    return -3 * std::log1p(distance * distance / (5 * 3));
  };
  EXPECT_NEAR(scores[0], log_density(0) - log_density(5), 1e-12);
  EXPECT_NEAR(scores[1], log_density(2) - log_density(3), 1e-12);
}

TEST(MembershipScores, WithoutShadowsAreLosses) {
  const auto attacks = MembershipScores(at::tensor({1.0, -2.0}, at::kDouble), {}, at::Tensor());
  ASSERT_EQ(attacks.size(), 1U);
  EXPECT_THAT(attacks[0].scores, ElementsAre(1.0, -2.0));
}

}  // namespace
}  // namespace sordino
