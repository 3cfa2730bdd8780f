#include "sordino/gradients/internal/rounding/sum_sensitivity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

double Sensitivity(const std::vector<double>& bounds, Adjacency adjacency,
                   std::int64_t micro_batch = 1, double slack = 0) {
  return SumSensitivity(bounds, adjacency, micro_batch, slack).value();
}

TEST(SumSensitivity, IsTheBoundWhenOneVectorAppears) {
  EXPECT_EQ(Sensitivity({1.5}, Adjacency::kAddRemove), 1.5);
  EXPECT_EQ(Sensitivity({1.5}, Adjacency::kZeroOut), 1.5);
}

TEST(SumSensitivity, IsTwiceTheBoundWhenOneVectorIsReplaced) {
  EXPECT_EQ(Sensitivity({1.5}, Adjacency::kReplaceOne), 3);
  EXPECT_EQ(Sensitivity({1.5}, Adjacency::kZeroOut, 4), 3);
  EXPECT_EQ(Sensitivity({1.5}, Adjacency::kReplaceOne, 4), 3);
}

// Clipped averages of consecutive scalars.
double MicroBatchSum(const std::vector<double>& values, std::size_t size) {
  double sum = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += size) {
    double average = 0;
    for (std::size_t i = begin; i < std::min(values.size(), begin + size); ++i) {
      average += values[i] / static_cast<double>(size);
    }
    sum += std::min(1.0, std::max(-1.0, average));
  }
  return sum;
}

TEST(SumSensitivity, ARemovedRecordCanChangeEveryMicroBatch) {
  // Behind the first record, pairs (9, -1), (-1, 9) have the average 4 each; one place further
  // up they are (-1, -1), (9, 9), which average -1 and 9.
  std::vector<double> with = {0};
  for (int i = 0; i < 20; ++i) {
    with.insert(with.end(), {9, -1, -1, 9});
  }
  const std::vector<double> without(with.begin() + 1, with.end());
  EXPECT_GE(std::abs(MicroBatchSum(with, 2) - MicroBatchSum(without, 2)), 30);
  EXPECT_THROW(Sensitivity({1}, Adjacency::kAddRemove, 2), Error);
}

TEST(SumSensitivity, IsReachedByAMicroBatchThatTurnsRound) {
  EXPECT_EQ(MicroBatchSum({9, -3}, 2) - MicroBatchSum({0, -3}, 2),
            Sensitivity({1}, Adjacency::kZeroOut, 2));
}

TEST(SumSensitivity, AddsGroupsInQuadratureAndRoundsUp) {
  EXPECT_NEAR(Sensitivity({3, 4}, Adjacency::kAddRemove), 5, 1e-12);
  EXPECT_GE(Sensitivity({3, 4}, Adjacency::kAddRemove), 5);
  const std::vector<double> equal(1000, 1 / std::sqrt(1000.0));
  long double squared = 0;
  for (const double bound : equal) {
    squared += static_cast<long double>(bound) * static_cast<long double>(bound);
  }
  EXPECT_GE(static_cast<long double>(Sensitivity(equal, Adjacency::kAddRemove)),
            std::sqrt(squared));
  EXPECT_NEAR(Sensitivity(equal, Adjacency::kAddRemove), 1, 1e-11);
  EXPECT_NEAR(Sensitivity({1e-200, 1e-200}, Adjacency::kAddRemove) * 1e200, std::sqrt(2.0), 1e-12);
}

TEST(SumSensitivity, GrowsByTheSlack) {
  EXPECT_GE(Sensitivity({2}, Adjacency::kAddRemove, 1, 0.01), 2.02);
  EXPECT_NEAR(Sensitivity({2}, Adjacency::kAddRemove, 1, 0.01), 2.02, 1e-12);
}

TEST(SumSensitivity, RefusesMicroBatchesOfNothing) {
  EXPECT_THROW(Sensitivity({1}, Adjacency::kZeroOut, 0), Error);
  EXPECT_DEATH(Sensitivity({-1}, Adjacency::kZeroOut), "bound");
  EXPECT_DEATH(Sensitivity({1}, Adjacency::kZeroOut, 1, std::nan("")), "slack");
}

}  // namespace
}  // namespace sordino
