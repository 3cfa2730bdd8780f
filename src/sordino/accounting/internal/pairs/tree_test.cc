#include "sordino/accounting/internal/pairs/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// All participation patterns of a short run.
std::uint64_t BruteForce(std::uint64_t most, std::uint64_t separation, unsigned steps) {
  std::uint64_t best = 0;
  for (std::uint64_t pattern = 1; pattern < (std::uint64_t{1} << steps); ++pattern) {
    std::vector<unsigned> places;
    for (unsigned i = 0; i < steps; ++i) {
      if ((pattern >> i & 1) != 0) places.push_back(i);
    }
    bool allowed = places.size() <= most;
    for (std::size_t i = 1; i < places.size() && allowed; ++i) {
      allowed = places[i] - places[i - 1] > separation;
    }
    if (!allowed) continue;
    std::uint64_t sum = 0;
    for (unsigned size = 1; size <= steps; size *= 2) {
      for (unsigned start = 0; start + size <= steps; start += size) {
        std::uint64_t inside = 0;
        for (const unsigned place : places) inside += place >= start && place < start + size;
        sum += inside * inside;
      }
    }
    best = std::max(best, sum);
  }
  return best;
}

TEST(TreeSensitivity, MatchesAllPatternsOfShortRuns) {
  for (unsigned steps = 1; steps <= 12; ++steps) {
    for (std::uint64_t most = 1; most <= 5; ++most) {
      for (std::uint64_t separation = 0; separation <= 4; ++separation) {
        ASSERT_EQ(TreeSensitivitySquared(most, separation, steps),
                  BruteForce(most, separation, steps))
            << steps << " " << most << " " << separation;
      }
    }
  }
}

// Nodes of the forest over `steps` leaves that lie above both leaves: a block of 2^h leaves that
// ends within the steps.
std::uint64_t Common(std::uint64_t a, std::uint64_t b, std::uint64_t steps) {
  std::uint64_t common = 0;
  for (unsigned h = 0; h < 63; ++h) {
    if (a >> h == b >> h && ((a >> h) + 1) << h <= steps) ++common;
  }
  return common;
}

// The sum of squares is the sum over all ordered pairs of participations of their common nodes.
// Longer runs than patterns can be enumerated for, with up to four participations.
TEST(TreeSensitivity, MatchesSumsOverPairsInLongerRuns) {
  for (const std::uint64_t steps : {31ULL, 32ULL, 45ULL, 70ULL}) {
    for (const std::uint64_t separation : {0ULL, 3ULL, 7ULL, 20ULL}) {
      std::uint64_t best[5] = {0, 0, 0, 0, 0};  // by the number of participations
      const std::function<void(std::vector<std::uint64_t>&, std::uint64_t, std::uint64_t)> extend =
          [&](std::vector<std::uint64_t>& places, std::uint64_t from, std::uint64_t sum) {
            best[places.size()] = std::max(best[places.size()], sum);
            if (places.size() == 4) return;
            for (std::uint64_t next = from; next < steps; ++next) {
              std::uint64_t more = Common(next, next, steps);
              for (const std::uint64_t place : places) more += 2 * Common(place, next, steps);
              places.push_back(next);
              extend(places, next + separation + 1, sum + more);
              places.pop_back();
            }
          };
      std::vector<std::uint64_t> places;
      extend(places, 0, 0);
      std::uint64_t largest = 0;
      for (std::uint64_t most = 1; most <= 4; ++most) {
        largest = std::max(largest, best[most]);
        ASSERT_EQ(TreeSensitivitySquared(most, separation, steps), largest)
            << steps << " " << separation << " " << most;
      }
    }
  }
}

TEST(TreeSensitivity, OneParticipationIsTheHeight) {
  EXPECT_EQ(TreeHeight(1), 1);
  EXPECT_EQ(TreeHeight(1600), 11);
  EXPECT_EQ(TreeHeight(2048), 12);
  for (const std::uint64_t steps : {1ULL, 5ULL, 1600ULL, 1000000ULL}) {
    for (const std::uint64_t separation : {0ULL, 3ULL, 1000ULL, 1000000000000ULL}) {
      EXPECT_EQ(TreeSensitivitySquared(1, separation, steps),
                static_cast<std::uint64_t>(TreeHeight(steps)));
    }
    // A separation that leaves room for one participation.
    EXPECT_EQ(TreeSensitivitySquared(5, steps, steps),
              static_cast<std::uint64_t>(TreeHeight(steps)));
  }
}

TEST(TreeSensitivity, RefusesWhatItCannotDo) {
  EXPECT_THROW(TreeSensitivitySquared(0, 1, 10), Error);
  EXPECT_THROW(TreeSensitivitySquared(1, 1, 0), Error);
  EXPECT_THROW(TreeSensitivitySquared(1000000, 0, 1000000000), Error);
}

}  // namespace
}  // namespace sordino
