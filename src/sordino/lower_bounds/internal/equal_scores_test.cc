#include "sordino/lower_bounds/internal/equal_scores.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

namespace sordino::internal {
namespace {

// By all orders, one after the other: bit i of an order is set where the i-th from the top is one
// of the others.
std::int64_t ByAllOrders(int members, int others, int place, double share) {
  std::vector<int> reaching(static_cast<std::size_t>(members) + 1, 0);
  int orders = 0;
  for (unsigned order = 0; order < 1U << static_cast<unsigned>(members + others); ++order) {
    if (std::popcount(order) != others) continue;
    ++orders;
    int seen = 0;
    int above = 0;
    for (unsigned i = 0; seen < place; ++i) {
      if ((order >> i & 1U) != 0) {
        ++seen;
      } else {
        ++above;
      }
    }
    for (int k = 0; k <= above; ++k) ++reaching[static_cast<std::size_t>(k)];
  }
  std::int64_t most = 0;
  while (most < members && reaching[static_cast<std::size_t>(most) + 1] >= share * orders) ++most;
  return most;
}

TEST(EqualScores, AreThoseOfAllOrders) {
  for (int members = 1; members <= 7; ++members) {
    for (int others = 1; others <= 7; ++others) {
      for (int place = 1; place <= others; ++place) {
        // No share of orders is equal to one of these.
        for (const double share : {0.0871, 0.5013, 0.7537, 0.9003, 0.9901}) {
          EXPECT_EQ(AboveInMostOrders(members, others, place, share),
                    ByAllOrders(members, others, place, share))
              << members << ' ' << others << ' ' << place << ' ' << share;
        }
      }
    }
  }
}

// Far more scores than can be enumerated: near the mean and deviation of the normal limit.
TEST(EqualScores, AreNearTheNormalLimitForManyScores) {
  const std::int64_t count = 1'000'000;
  for (const double rate : {0.01, 0.5, 0.99}) {
    const auto place = static_cast<std::int64_t>(rate * static_cast<double>(count));
    const double deviation = std::sqrt(2 * static_cast<double>(count) * rate * (1 - rate));
    const double expected = static_cast<double>(place) - 1.2815515655446004 * deviation;
    EXPECT_NEAR(static_cast<double>(AboveInMostOrders(count, count, place, 0.9)), expected,
                0.05 * deviation);
  }
  // One of the others at the top of all: nine tenths of the orders have at least as many above it
  // as a geometric variable of 1/2 exceeds, which is none.
  EXPECT_EQ(AboveInMostOrders(count, count, 1, 0.9), 0);
  EXPECT_EQ(AboveInMostOrders(count, 1, 1, 0.9), 100'000);
}

}  // namespace
}  // namespace sordino::internal
