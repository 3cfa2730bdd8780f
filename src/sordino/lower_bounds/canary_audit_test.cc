#include "sordino/lower_bounds/canary_audit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "sordino/accounting/gaussian.h"
#include "sordino/base/error.h"

namespace sordino {
namespace {

ScoredCanaries Gaussian(std::mt19937_64& random, int count, double mu) {
  std::normal_distribution<double> normal;
  ScoredCanaries canaries;
  for (int i = 0; i < count; ++i) {
    canaries.is_in.push_back(static_cast<char>(random() & 1));
    canaries.scores.push_back(normal(random) + (canaries.is_in.back() != 0 ? mu / 2 : -mu / 2));
  }
  return canaries;
}

TEST(CanaryAudit, CountsRightGuesses) {
  ScoredCanaries canaries;
  for (int i = 0; i < 400; ++i) {
    canaries.is_in.push_back(static_cast<char>(i % 2));
    canaries.scores.push_back(i % 2 == 1 ? 1 + i : -i);
  }
  const CanaryAudit audit = AuditCanaries(canaries, Delta(1e-5), 0.05);
  EXPECT_EQ(audit.outcome.canaries, 400);
  EXPECT_EQ(audit.outcome.guesses, 90);  // 2.5 times 400 to the power 0.6, made even
  EXPECT_EQ(audit.outcome.correct, 90);
  EXPECT_DOUBLE_EQ(audit.epsilon, OneRunEpsilon({400, 90, 90}, Delta(1e-5), 0.05));
  // Turned round, every guess is wrong.
  for (double& score : canaries.scores) score = -score;
  const CanaryAudit wrong = AuditCanaries(canaries, Delta(1e-5), 0.05);
  EXPECT_EQ(wrong.outcome.correct, 0);
  EXPECT_EQ(wrong.epsilon, 0);
  EXPECT_EQ(wrong.gaussian.mu, 0);
}

TEST(CanaryAudit, IsSeldomAboveTheTruth) {
  std::mt19937_64 random(4);
  const double mu = 1;
  const double truth = GaussianEpsilon(mu, std::log(1e-3));
  const int audits = 400;
  int above = 0;
  int gaussian_above = 0;
  int signs_above = 0;
  for (int i = 0; i < audits; ++i) {
    const CanaryAudit audit = AuditCanaries(Gaussian(random, 200, mu), Delta(1e-3), 0.05);
    above += audit.epsilon > truth ? 1 : 0;
    gaussian_above += audit.gaussian.mu > mu ? 1 : 0;
    signs_above += audit.signs.mu > mu ? 1 : 0;
  }
  const double limit = audits * 0.05 + 3 * std::sqrt(audits * 0.05 * 0.95);
  EXPECT_LE(above, limit);
  EXPECT_LE(gaussian_above, limit);
  EXPECT_LE(signs_above, limit);
}

TEST(CanaryAudit, EqualScoresShowNothing) {
  std::mt19937_64 random(5);
  ScoredCanaries canaries = Gaussian(random, 300, 0);
  canaries.scores.assign(300, 1.0);
  EXPECT_LT(AuditCanaries(canaries, Delta(0), 0.001).epsilon, 0.3);
  EXPECT_EQ(AuditCanaries(canaries, Delta(0), 0.001).signs.mu, 0);
}

TEST(CanaryAudit, RefusesFewCanariesAndScoresThatAreNoNumbers) {
  std::mt19937_64 random(6);
  EXPECT_THROW(AuditCanaries(Gaussian(random, 15, 0), Delta(0), 0.05), Error);
  ScoredCanaries canaries = Gaussian(random, 16, 0);
  EXPECT_NO_THROW(AuditCanaries(canaries, Delta(0), 0.05));
  canaries.scores[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(AuditCanaries(canaries, Delta(0), 0.05), Error);
}

}  // namespace
}  // namespace sordino
