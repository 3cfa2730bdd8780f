#include "sordino/distributed/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sordino {
namespace {

const StepJob kJob = {.parameters = 1e6,
                      .flops_per_example = 1e8,
                      .batch = 1024,
                      .records = 5e4,
                      .bytes_per_record = 3072,
                      .ranks = 1};
const RankSpeed kSpeed = {
    .flops = 1e10, .bandwidth = 1e9, .latency = 1e-4, .draw_seconds = 2e-9, .noise_seconds = 1e-8};

StepJob OnRanks(double ranks) {
  StepJob job = kJob;
  job.ranks = ranks;
  return job;
}

TEST(CostModel, OneRankSendsNothing) {
  const RankStepCost cost = CostOfStep(kJob, kSpeed);
  EXPECT_EQ(cost.sum + cost.gather + cost.words, 0);
  EXPECT_DOUBLE_EQ(cost.gradients, 1024 * 1e8 / 1e10);
  EXPECT_DOUBLE_EQ(cost.draw, 1e-4);
  EXPECT_DOUBLE_EQ(cost.noise, 1e-2);
  EXPECT_EQ(BytesSentPerStep(kJob), 0);
}

TEST(CostModel, FourRanksByHand) {
  const RankStepCost cost = CostOfStep(OnRanks(4), kSpeed);
  EXPECT_DOUBLE_EQ(cost.gradients, 256 * 1e8 / 1e10);
  EXPECT_DOUBLE_EQ(cost.sum, 8e6 * 0.75 / 1e9 + 3e-4);
  EXPECT_DOUBLE_EQ(cost.gather, 4e6 * 0.75 / 1e9 + 3e-4);
  EXPECT_DOUBLE_EQ(cost.words, 4 * 2 * 1e-4);
  EXPECT_DOUBLE_EQ(cost.noise, 2.5e-3);
  EXPECT_EQ(cost.LargestPart(), "gradients");
  double total = 0;
  for (const auto& [name, seconds] : cost.Parts()) total += seconds;
  EXPECT_DOUBLE_EQ(total, cost.Total());
}

TEST(CostModel, VolumeIsBelowTwiceTheParametersAsIntegers) {
  for (const double ranks : {2.0, 3.0, 16.0, 1000.0, 65536.0}) {
    EXPECT_LT(BytesSentPerStep(OnRanks(ranks)), 2 * kJob.parameters * 8) << ranks;
  }
}

// A batch that is smaller than the ranks leaves some of them without work, and others with one.
TEST(CostModel, ARankComputesAtLeastOneExample) {
  StepJob job = OnRanks(5000);
  EXPECT_DOUBLE_EQ(CostOfStep(job, kSpeed).gradients, 1e8 / 1e10);
}

TEST(CostModel, DrawingTheWholeBatchOnEveryRankDoesNotShrinkWithRanks) {
  StepJob job = OnRanks(1000);
  job.records = 1e9;
  EXPECT_DOUBLE_EQ(CostOfStep(job, kSpeed).draw, 2);
  EXPECT_EQ(CostOfStep(job, kSpeed).LargestPart(), "draw");
  job.draw_shards = 1000;
  EXPECT_DOUBLE_EQ(CostOfStep(job, kSpeed).draw, 2e-3);
}

TEST(CostModel, MemoryCountsRecordsSumsAndShards) {
  EXPECT_DOUBLE_EQ(BytesHeld(OnRanks(4)), 5e4 * 3072 + 1e6 * 12 + 1e6 / 4 * 16);
}

}  // namespace
}  // namespace sordino
