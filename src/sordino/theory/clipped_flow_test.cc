// The table of the slides on DP-SGD (types of clipping and convergence), from flows: every "no" by
// flows that are found, every "yes" by many flows that keep to it.
#include "sordino/theory/clipped_flow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

const std::vector<double> kTimes = {0, 1, 2, 5, 10, 20, 50, 100, 200, 500};

// One example, one weight: d f / dt = -h l without clipping, so l = l_0 exp(-h t). With local
// clipping |g| = |l| sqrt(h) falls on a line of slope h C / sqrt(h) until it is C.
TEST(ClippedFlow, FollowsTheClosedFormOfOneExample) {
  const auto problem = FixedKernelProblem({{2}}, {0}, {-3});  // h = 4, l_0 = 3
  const std::vector<double> times = {0, 0.1, 0.5, 1, 2};
  const FlowOutcome none = FollowFlow(*problem, {.name = "none"}, times);
  const FlowOutcome local = FollowFlow(*problem, {.name = "local-flat", .clip = 2}, times);
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_NEAR(none.losses[i], std::exp(-8 * times[i]), 1e-8);
    const double line = 3 - 2 * 2 * times[i];  // reaches C / sqrt(h) = 1 at 1/2
    const double l = times[i] <= 0.5 ? line : std::exp(-4 * (times[i] - 0.5));
    EXPECT_NEAR(local.losses[i], l * l / 9, 1e-8) << times[i];
  }
}

// Two examples, two layers of one weight: the clipped gradients of a layer are +C_r and -C_r and
// cancel, at a loss that no other clipping leaves as it is.
TEST(ClippedFlow, LocalLayerwiseClippingStopsAboveZero) {
  const auto problem = FixedKernelProblem({{1, 1}, {-2, -1}}, {0, 1}, {-5, -5});
  for (const std::string_view name : FlowClippings()) {
    const FlowOutcome outcome =
        FollowFlow(*problem, {.name = name, .clip = 0.5, .threshold = 100}, kTimes);
    if (name == "local-layerwise") {
      EXPECT_EQ(outcome.losses.back(), 1);
      EXPECT_TRUE(outcome.Stops());
      EXPECT_EQ(outcome.end_speed, 0);
    } else {
      EXPECT_LT(outcome.losses.back(), 0.999) << name;
      EXPECT_FALSE(outcome.Stops()) << name;
    }
  }
}

// What a private run can have in the place of global clipping: an example above the threshold is
// dropped, and its loss stays.
TEST(ClippedFlow, DeclaredThresholdLeavesTheLossOfWhatItDrops) {
  const auto problem = FixedKernelProblem({{1, 0}, {0, 1}}, {0, 0}, {-3, -20});
  const FlowOutcome dropped =
      FollowFlow(*problem, {.name = "global-declared", .clip = 0.5, .threshold = 5}, kTimes);
  EXPECT_NEAR(dropped.losses.back(), 400.0 / 409, 1e-9);
  EXPECT_TRUE(dropped.Stops());
  const FlowOutcome kept =
      FollowFlow(*problem, {.name = "global-declared", .clip = 0.5, .threshold = 20}, kTimes);
  // As without clipping, in a time that is Z / C = 40 times as long.
  EXPECT_NEAR(kept.losses.back(), std::exp(-500.0 / 40), 1e-9);
}

struct FlowCounts {
  int asymmetric = 0;
  int negative = 0;
  int rising = 0;
  int zero = 0;
  int stopped = 0;
};

FlowCounts Count(std::string_view problems, std::string_view clipping, int count) {
  FlowCounts counts;
  std::mt19937_64 random(1);
  for (int i = 0; i < count; ++i) {
    const auto problem = DrawFlowProblem(problems, 3, random);
    const FlowOutcome outcome = FollowFlow(*problem, {.name = clipping}, kTimes);
    counts.asymmetric += outcome.IsSymmetric() ? 0 : 1;
    counts.negative += outcome.HasPositiveForm() ? 0 : 1;
    counts.rising += outcome.rises ? 1 : 0;
    counts.zero += outcome.ReachesZero() ? 1 : 0;
    counts.stopped += outcome.Stops() ? 1 : 0;
    EXPECT_TRUE(outcome.rises || outcome.largest_rise < 1e-7) << clipping << " " << i;
  }
  return counts;
}

TEST(ClippedFlow, TableOfTheDocumentHoldsForFixedKernels) {
  constexpr int kProblems = 100;
  for (const char* name : {"none", "global-flat", "global-layerwise"}) {
    const FlowCounts counts = Count("fixed-kernel", name, kProblems);
    EXPECT_EQ(counts.asymmetric, 0) << name;
    EXPECT_EQ(counts.negative, 0) << name;
    EXPECT_EQ(counts.rising, 0) << name;
    EXPECT_EQ(counts.zero, kProblems) << name;
  }
  const FlowCounts flat = Count("fixed-kernel", "local-flat", kProblems);
  EXPECT_GT(flat.asymmetric, 0);
  EXPECT_GT(flat.negative, 0);
  EXPECT_GT(flat.rising, 0);
  EXPECT_EQ(flat.zero, kProblems);
  const FlowCounts layerwise = Count("fixed-kernel", "local-layerwise", kProblems);
  EXPECT_GT(layerwise.asymmetric, 0);
  EXPECT_GT(layerwise.negative, 0);
  EXPECT_GT(layerwise.rising, flat.rising);
  EXPECT_GT(layerwise.stopped, 0);
  const FlowCounts declared = Count("fixed-kernel", "global-declared", kProblems);
  EXPECT_GT(declared.stopped, 0);
}

TEST(ClippedFlow, RefusesWhatHasNoFlow) {
  const auto problem = FixedKernelProblem({{1}}, {0}, {1});
  EXPECT_THROW(FollowFlow(*problem, {.name = "local"}, kTimes), Error);
  EXPECT_THROW(FollowFlow(*problem, {.name = "none", .clip = 0}, kTimes), Error);
  EXPECT_THROW(FollowFlow(*problem, {.name = "none", .clip = 2, .threshold = 1}, kTimes), Error);
  EXPECT_THROW(FollowFlow(*problem, {.name = "none"}, {}), Error);
  EXPECT_THROW(FixedKernelProblem({{1}}, {0, 1}, {1}), Error);
  EXPECT_THROW(FollowFlow(*FixedKernelProblem({{1}}, {0}, {0}), {.name = "none"}, kTimes), Error);
  std::mt19937_64 random(1);
  EXPECT_THROW(DrawFlowProblem("networks", 3, random), Error);
  EXPECT_THROW(DrawFlowProblem("network", 0, random), Error);
}

}  // namespace
}  // namespace sordino
