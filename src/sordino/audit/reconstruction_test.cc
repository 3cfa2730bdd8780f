#include "sordino/audit/reconstruction.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "sordino/accounting/tradeoff.h"
#include "sordino/base/error.h"
#include "sordino/lower_bounds/binomial.h"

namespace sordino {
namespace {

Event FullSteps(double noise, std::int64_t steps) {
  return Event::Repeat(Event::Gaussian(NoiseMultiplier(noise), Adjacency::kZeroOut), steps);
}

// The blow-up function of Gaussians has the closed form Phi(Phi^-1(kappa) + mu).
TEST(ReconstructionBound, IsTheBlowUpFunctionOfTheGaussian) {
  for (const double noise : {0.5, 1.0, 4.0}) {
    for (const std::int64_t steps : {1, 9}) {
      const double mu = std::sqrt(static_cast<double>(steps)) / noise;
      for (const double kappa : {0.5, 0.1, 0.01, 1e-4}) {
        const double exact = GaussianTruePositiveRate(mu, kappa);
        const double bound = ReconstructionBound(FullSteps(noise, steps), kappa);
        EXPECT_GE(bound, exact * (1 - 1e-9)) << noise << " " << kappa;
        EXPECT_LE(bound, exact * 1.02 + 1e-6) << noise << " " << kappa;
        const auto renyi = RenyiReconstructionBound(FullSteps(noise, steps), kappa);
        ASSERT_TRUE(renyi);
        EXPECT_GE(*renyi, exact * (1 - 1e-9));
      }
    }
  }
}

// Balle, Cherubin and Hayes: (kappa e^R)^((alpha - 1) / alpha) with R = alpha mu^2 / 2 is least at
// alpha = sqrt(2 log(1 / kappa)) / mu, where its logarithm is -(sqrt(log(1 / kappa)) - mu /
// sqrt(2))^2.
TEST(ReconstructionBound, ByRenyiDivergencesIsThePublishedOne) {
  for (const double mu : {0.1, 0.5, 1.0}) {
    for (const double kappa : {0.01, 1e-5}) {
      const double root = std::sqrt(std::log(1 / kappa)) - mu / std::sqrt(2.0);
      EXPECT_NEAR(*RenyiReconstructionBound(FullSteps(1 / mu, 1), kappa), std::exp(-root * root),
                  1e-3 * std::exp(-root * root));
    }
  }
}

TEST(ReconstructionBound, HoldsForPureGuaranteesAndForFailures) {
  const Event pure = Event::Pure(Epsilon(1), Adjacency::kAddRemove);
  EXPECT_NEAR(ReconstructionBound(pure, 0.01), 0.01 * std::exp(1.0), 1e-9);
  EXPECT_NEAR(ReconstructionBound(pure, 0.01, 0.25), 0.01 * std::exp(1.0) + 0.25, 1e-9);
  EXPECT_EQ(ReconstructionBound(pure, 1), 1);
  EXPECT_EQ(RenyiReconstructionBound(Event::Approximate(Epsilon(1), Delta(1e-3)), 0.01),
            std::nullopt);
  EXPECT_THROW(ReconstructionBound(pure, 0), Error);
}

Dataset PublicImages(std::int64_t records, std::int64_t side) {
  at::manual_seed(3);
  Dataset data;
  data.declaration.name = "made up";
  data.declaration.shape = {1, side, side};
  data.declaration.classes = 3;
  data.declaration.normalisation = {.mean = {0.3}, .deviation = {0.2}, .source = "declared"};
  data.inputs = at::randint(0, 256, {records, 1, side, side}, at::kByte);
  data.labels = at::arange(records, at::kLong) % 3;
  return data;
}

TEST(Reconstruction, RebuildsTheTargetWithoutNoiseAndNotWithIt) {
  const Dataset data = PublicImages(60, 8);
  for (const std::int64_t records : {std::int64_t{1}, std::int64_t{20}}) {
    for (const std::int64_t steps : {1, 3}) {
      const Reconstruction result = Reconstruct(
          data, {1.0},
          {.records = records, .candidates = 30, .trials = 6, .steps = steps, .insecure_seed = 4});
      ASSERT_EQ(result.levels.size(), 2U);
      EXPECT_EQ(result.levels[0].right, 6);
      EXPECT_LT(result.levels[0].rebuilt_error, 1e-3);
      EXPECT_EQ(result.targets.sizes(), at::IntArrayRef({6, 1, 8, 8}));
      EXPECT_LT((result.targets - result.levels[0].rebuilt).abs().max().item<double>(), 5e-3);
      EXPECT_LT((result.targets - result.levels[0].guessed).abs().max().item<double>(), 1e-6);
      // A picture of noise is further from the target than the mean of the candidates.
      EXPECT_GT(result.levels[1].rebuilt_error, result.blind_error);
      EXPECT_GT(result.blind_error, 0.2);
    }
  }
}

// Guesses are right less often than the bound says, and so often that the attack has teeth: its
// interval reaches half of the bound. The bound is that of the worst case, which candidates whose
// gradients are far apart come close to.
TEST(Reconstruction, GuessesComeCloseToTheBoundAndNotAboveIt) {
  const Dataset data = PublicImages(60, 8);
  constexpr std::int64_t kTrials = 150;
  const Reconstruction result = Reconstruct(
      data, {8.0, 2.0}, {.records = 2, .candidates = 16, .trials = kTrials, .insecure_seed = 5});
  for (std::size_t k = 1; k < result.levels.size(); ++k) {
    const ReconstructionLevel& level = result.levels[k];
    EXPECT_LE(ClopperPearsonLower(kTrials, level.right, 1e-4), level.bound);
    EXPECT_GE(ClopperPearsonUpper(kTrials, level.right, 1e-4), level.bound / 2);
    EXPECT_GE(*level.renyi_bound, level.bound);
  }
  EXPECT_GT(result.levels[1].right, result.levels[2].right);
  EXPECT_GT(ClopperPearsonLower(kTrials, result.levels[1].right, 1e-4), 1.0 / 16);
}

TEST(Reconstruction, RefusesWhatItCannotDo) {
  const Dataset data = PublicImages(20, 4);
  EXPECT_THROW(Reconstruct(data, {}, {.records = 12, .candidates = 10}), Error);
  EXPECT_THROW(Reconstruct(data, {}, {.records = 0, .candidates = 10}), Error);
  EXPECT_THROW(Reconstruct(data, {}, {.records = 2, .candidates = 1}), Error);
  EXPECT_THROW(Reconstruct(data, {}, {.records = 2, .candidates = 4, .clip = 0}), Error);
  Dataset tokens = data;
  tokens.declaration.kind = InputKind::kTokens;
  EXPECT_THROW(Reconstruct(tokens, {}, {.records = 2, .candidates = 4}), Error);
}

}  // namespace
}  // namespace sordino
