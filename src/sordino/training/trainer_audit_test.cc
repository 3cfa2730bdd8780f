// What an attacker sees of the trainer's updates, held against what the plan says was spent.
//
// The gradient of the one record that differs is the clipping norm in a direction that the attacker
// knows, and a step's update is all that is released. Over many steps the attacker guesses by a
// threshold whether the record is in the data. True and false positive rates p and f of an
// (epsilon, delta)-DP step have p <= e^epsilon f + delta, so log((p - delta) / f) is a lower bound
// on epsilon; with confidence limits on both rates it is one that fails with the probability below.
// A trainer that clips too little, adds too little noise or draws more records than its plan says
// comes out above the plan's epsilon. A floor shows that the attack has teeth.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <cmath>
#include <vector>

#include "sordino/training/testing/trainer_cases.h"
#include "sordino/training/trainer.h"

namespace sordino {
namespace {

constexpr std::int64_t kSteps = 20'000;
constexpr double kFalseAlarm = 1e-4;  // of a seed; the seeds are fixed

// What the attacker knows of an event: the noised sum of its step. Of the t steps of an allocation,
// s^2 log mean e^(y / s^2), which grows with the likelihood ratio; for one step it is the sum.
double Statistic(const double* sums, std::int64_t steps, double noise) {
  double mean = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    mean += std::exp(sums[i] / (noise * noise)) / static_cast<double>(steps);
  }
  return noise * noise * std::log(mean);
}

// That of all events, sorted; the loss is linear, so that steps do not depend on each other.
std::vector<double> Observed(PlanOptions options, double noise, bool with_record,
                             std::uint64_t seed) {
  options.steps = kSteps;
  Dataset data = RandomFeatures(1, 1, 1);
  data.inputs.fill_(5);  // clipped to 1
  if (!with_record) {
    data.inputs = data.inputs.narrow(0, 0, 0);
    data.labels = data.labels.narrow(0, 0, 0);
  }
  const PrivacyPlan plan(options, NoiseMultiplier(noise), Delta(0.05));
  Weights weights(1);
  TrainerOptions trainer_options;
  trainer_options.gradients = {.physical_batch = 1, .probe = false, .checked_examples = 0};
  trainer_options.insecure_seed = seed;
  Trainer trainer(plan, weights.Named(), weights.Linear(), data, {.learning_rate = 1},
                  trainer_options);
  std::vector<double> sums;
  double last = 0;
  trainer.Run([&](std::int64_t) {
    const auto now = static_cast<double>(weights.value.item<float>());
    sums.push_back((last - now) * plan.options().batch);
    last = now;
    return true;
  });
  const std::int64_t together = plan.StepsPerEvent();
  std::vector<double> statistics;
  for (std::int64_t i = 0; i + together <= kSteps; i += together) {
    statistics.push_back(Statistic(sums.data() + i, together, noise));
  }
  std::sort(statistics.begin(), statistics.end());
  return statistics;
}

double Above(const std::vector<double>& sorted, double threshold) {
  return static_cast<double>(sorted.end() -
                             std::upper_bound(sorted.begin(), sorted.end(), threshold));
}

// Clopper and Pearson's limits for `hits` of `trials`.
double LowestRate(double hits, double trials) {
  if (hits == 0) return 0;
  return boost::math::quantile(boost::math::beta_distribution<>(hits, trials - hits + 1),
                               kFalseAlarm / 2);
}
double HighestRate(double hits, double trials) {
  if (hits == trials) return 1;
  return boost::math::quantile(boost::math::complement(
      boost::math::beta_distribution<>(hits + 1, trials - hits), kFalseAlarm / 2));
}

double AuditedEpsilon(const PlanOptions& options, double noise, double threshold, double delta) {
  const std::vector<double> with = Observed(options, noise, true, 1);
  const std::vector<double> without = Observed(options, noise, false, 2);
  const auto trials = static_cast<double>(with.size());
  const double p = LowestRate(Above(with, threshold), trials);
  const double f = HighestRate(Above(without, threshold), trials);
  return p > delta ? std::log((p - delta) / f) : 0;
}

TEST(TrainerAudit, FullBatchesGiveAwayNearlyWhatThePlanSaysAndNoMore) {
  PlanOptions options = FullBatch(1, 1);
  const double claimed = PrivacyPlan(options, NoiseMultiplier(1), Delta(0.05)).Epsilon(1).upper;
  // The threshold that leaves the most after the confidence limits, found on paper: 1.28 of 1.57.
  const double audited = AuditedEpsilon(options, 1, 1.9, 0.05);
  EXPECT_LT(audited, claimed);
  EXPECT_GT(audited, 0.7 * claimed);
}

TEST(TrainerAudit, PoissonBatchesGiveAwayNearlyWhatThePlanSaysAndNoMore) {
  PlanOptions options = FullBatch(1, 1);
  options.sampling = "poisson";
  options.batch = 0.5;
  const double claimed = PrivacyPlan(options, NoiseMultiplier(0.7), Delta(0.05)).Epsilon(1).upper;
  const double audited = AuditedEpsilon(options, 0.7, 1.44, 0.05);  // 1.21 of 1.56 on paper
  EXPECT_LT(audited, claimed);
  EXPECT_GT(audited, 0.7 * claimed);
}

TEST(TrainerAudit, AllocatedBatchesGiveAwayNearlyWhatThePlanSaysOfAnEpochAndNoMore) {
  PlanOptions options = FullBatch(1, 2);
  options.sampling = "allocation";
  options.batch = 0.5;  // two batches an epoch
  const double claimed = PrivacyPlan(options, NoiseMultiplier(0.7), Delta(0.05)).Epsilon(2).upper;
  const double audited = AuditedEpsilon(options, 0.7, 1.34, 0.05);  // 1.60 of 2.10 on paper
  EXPECT_LT(audited, claimed);
  EXPECT_GT(audited, 0.7 * claimed);
}

// With b = 2 the record of gradient 5 becomes 2.5, is clipped to 1 and comes back as 2.
TEST(TrainerAudit, AdaClipGivesAwayNearlyWhatThePlanSaysAndNoMore) {
  PlanOptions options = FullBatch(1, 1);
  options.clipping = {"adaclip",
                      {{"clip-mean-decay", 1.0},
                       {"clip-variance-decay", 1.0},
                       {"clip-variance-min", 4.0},
                       {"clip-variance-max", 4.0}}};
  const double claimed = PrivacyPlan(options, NoiseMultiplier(1), Delta(0.05)).Epsilon(1).upper;
  const double audited = AuditedEpsilon(options, 1, 2 * 1.9, 0.05);
  EXPECT_LT(audited, claimed);
  EXPECT_GT(audited, 0.7 * claimed);
}

}  // namespace
}  // namespace sordino
