#include "sordino/accounting/tree.h"

#include <gtest/gtest.h>

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

TEST(TreeSensitivity, OneParticipationIsTheHeight) {
  EXPECT_EQ(TreeHeight(1), 1);
  EXPECT_EQ(TreeHeight(1600), 11);
  EXPECT_EQ(TreeHeight(2048), 12);
  for (const std::uint64_t steps : {1ULL, 5ULL, 1600ULL, 1000000ULL}) {
    EXPECT_EQ(TreeSensitivitySquared(1, 3, steps), static_cast<std::uint64_t>(TreeHeight(steps)));
  }
}

TEST(TreeSensitivity, RefusesWhatItCannotDo) {
  EXPECT_THROW(TreeSensitivitySquared(0, 1, 10), Error);
  EXPECT_THROW(TreeSensitivitySquared(1, 1, 0), Error);
  EXPECT_THROW(TreeSensitivitySquared(1000000, 0, 1000000000), Error);
}

}  // namespace
}  // namespace sordino
