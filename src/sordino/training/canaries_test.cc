#include "sordino/training/canaries.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/gradients/norm_clipping.h"
#include "sordino/lower_bounds/canary_audit.h"
#include "sordino/random/random_source.h"
#include "sordino/training/testing/resumed_canaries.h"
#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

std::vector<NamedParameter> TwoLayers() {
  return {{"a.weight", at::zeros({6, 5}).set_requires_grad(true)},
          {"b.weight", at::zeros({10}).set_requires_grad(true)}};
}

Canaries Made(std::int64_t count, std::vector<NamedParameter> parameters,
              Adjacency adjacency = Adjacency::kAddRemove, std::uint64_t seed = 1) {
  RandomSource random(seed);
  return {count, std::move(parameters), adjacency,
          *random.Stream({.step = 0, .rank = 0, .tensor = kCanaryStream})};
}

std::vector<std::int64_t> All(std::int64_t count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

TEST(Canaries, AreTakenOutOfABatch) {
  std::vector<std::uint64_t> batch = {0, 3, 10, 4, 12};
  EXPECT_EQ(Canaries::TakeFrom(batch, 10), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(batch, (std::vector<std::uint64_t>{0, 3, 4}));
}

TEST(Canaries, HaveCoordinatesOfTheirOwnAndFairCoins) {
  for (const std::int64_t count : {std::int64_t{400}, std::int64_t{900}, std::int64_t{1000}}) {
    const Canaries canaries =
        Made(count, {{"w", at::zeros({1000}).set_requires_grad(true)}}, Adjacency::kReplaceOne);
    std::set<std::int64_t> coordinates;
    std::int64_t in = 0;
    for (const Dirac& dirac : canaries.Gradients(All(count), FlatClipping(ClipNorm(2)))) {
      coordinates.insert(dirac.coordinate);
      EXPECT_EQ(std::abs(dirac.value), 2);
      in += dirac.value > 0 ? 1 : 0;
    }
    EXPECT_EQ(static_cast<std::int64_t>(coordinates.size()), count);
    EXPECT_GE(*coordinates.begin(), 0);
    EXPECT_LT(*coordinates.rbegin(), 1000);
    // Five standard deviations.
    EXPECT_NEAR(static_cast<double>(in), static_cast<double>(count) / 2,
                2.5 * std::sqrt(static_cast<double>(count)));
  }
}

TEST(Canaries, WithoutACoordinateForEachAreRefused) {
  EXPECT_NO_THROW(Made(40, TwoLayers()));
  EXPECT_THROW(Made(41, TwoLayers()), Error);
}

TEST(Canaries, AreAsLargeAsTheBoundOfTheirClippingGroup) {
  const Canaries canaries = Made(40, TwoLayers());
  const NormClipping policy(ClippingGroups::ByLayer(TwoLayers()), {ClipNorm(3), ClipNorm(0.5)});
  std::int64_t in = 0;
  for (const Dirac& dirac : canaries.Gradients(All(40), policy)) {
    EXPECT_EQ(dirac.value, dirac.coordinate < 30 ? 3 : 0.5);
    ++in;
  }
  const CanaryScores scores = canaries.Scores();
  EXPECT_EQ(in, std::count(scores.is_in.begin(), scores.is_in.end(), 1));
  EXPECT_GT(in, 0);
  EXPECT_LT(in, 40);
}

// A run on few records with a gradient of 0, so that all that is released are noise and canaries.
struct AuditedRun {
  std::int64_t canaries = 5000;
  std::uint64_t seed = 3;
  std::function<void(PlanOptions&)> change = {};
  double claim = 8;
  double too_little = 1;  // the noise that is added over the noise that is claimed

  CanaryAudit every_update = {};
  CanaryAudit last_model = {};
  double claimed = 0;

  void Run(std::int64_t steps) {
    PlanOptions options = FullBatch(4, steps);
    if (change) change(options);
    const PrivacyPlan plan = *PrivacyPlan::ForBudget(options, Epsilon(claim), Delta(1e-5));
    claimed = plan.Epsilon(steps).upper;
    const PrivacyPlan used(options, NoiseMultiplier(plan.noise().value() * too_little),
                           Delta(1e-5));
    Weights weights(canaries);
    TrainerOptions trainer_options;
    trainer_options.gradients = {.probe = false, .checked_examples = 0};
    trainer_options.insecure_seed = seed;
    trainer_options.canaries = canaries;
    Trainer trainer(used, weights.Named(), weights.NoGradient(), RandomFeatures(4, canaries, 1),
                    {.learning_rate = 0.1}, trainer_options);
    trainer.Run();
    const CanaryScores scores = trainer.canary_scores();
    every_update = AuditCanaries({scores.is_in, scores.every_update}, Delta(1e-5), 0.05);
    last_model = AuditCanaries({scores.is_in, scores.last_model}, Delta(1e-5), 0.05);
  }
};

TEST(CanaryRun, ShowsMuchOfEpsilonEightInOneRunAndNeverMore) {
  AuditedRun run;
  run.Run(100);
  EXPECT_GT(run.every_update.epsilon, 3.0);
  EXPECT_GT(run.every_update.gaussian.epsilon, 5.0);
  EXPECT_GT(run.every_update.signs.epsilon, 6.5);
  EXPECT_LT(run.every_update.epsilon, run.claimed);
  EXPECT_LT(run.every_update.gaussian.epsilon, run.claimed);
  EXPECT_LT(run.every_update.signs.epsilon, run.claimed);
  // With constant noise and plain descent, the last model tells what all updates tell.
  EXPECT_NEAR(run.last_model.gaussian.mu, run.every_update.gaussian.mu, 1e-3);
}

TEST(CanaryRun, ShowsHalfOfSmallerEpsilons) {
  for (const double claim : {1.0, 2.0, 4.0}) {
    AuditedRun run{.claim = claim};
    run.Run(100);
    EXPECT_GT(run.every_update.signs.epsilon, claim / 2) << claim;
    EXPECT_LT(run.every_update.signs.epsilon, run.claimed) << claim;
  }
}

TEST(CanaryRun, ContradictsAClaimOfFourFifthsOfTheNoise) {
  AuditedRun run{.too_little = 0.8};
  run.Run(100);
  EXPECT_GT(run.every_update.signs.epsilon, run.claimed);
}

TEST(CanaryRun, HoldsForPoissonBatchesAndReplacedRecords) {
  AuditedRun poisson{.change = [](PlanOptions& options) {
    options.sampling = "poisson";
    options.batch = 1;
  }};
  poisson.Run(60);
  EXPECT_LT(poisson.every_update.epsilon, poisson.claimed);
  EXPECT_LT(poisson.every_update.gaussian.epsilon, poisson.claimed);
  EXPECT_GT(poisson.every_update.epsilon, 2);
  AuditedRun replaced{
      .change = [](PlanOptions& options) { options.adjacency = Adjacency::kReplaceOne; }};
  replaced.Run(50);
  EXPECT_LT(replaced.every_update.signs.epsilon, replaced.claimed);
  EXPECT_GT(replaced.every_update.signs.epsilon, 6.5);
}

TEST(CanaryRun, IsResumedWithItsCoinsAndScores) {
  const PrivacyPlan plan(FullBatch(4, 6), NoiseMultiplier(2), Delta(1e-5));
  const Dataset data = RandomFeatures(4, 50, 1);
  ExpectCanariesAreResumed(50, [&](Weights& weights) {
    TrainerOptions options;
    options.gradients = {.probe = false, .checked_examples = 0};
    options.insecure_seed = 5;
    options.canaries = 50;
    return Trainer(plan, weights.Named(), weights.NoGradient(), data, {.learning_rate = 0.1},
                   options);
  });
}

}  // namespace
}  // namespace sordino
