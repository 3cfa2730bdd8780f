// The shapes that come from theory, held against what theory computes for a whole schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/schedules/schedule.h"
#include "sordino/schedules/schedule_shape.h"
#include "sordino/theory/convergence.h"
#include "sordino/theory/momentum.h"
#include "sordino/theory/noise_schedule.h"

namespace sordino {
namespace {

using ::testing::HasSubstr;

// The factors of a schedule are the noise of theory up to one factor, and 1 at the last step.
void ExpectProportional(const Schedule& schedule, const std::vector<double>& noise) {
  const auto steps = static_cast<std::int64_t>(noise.size());
  for (std::int64_t step = 0; step < steps; ++step) {
    const double expected = noise[static_cast<std::size_t>(step)] / noise.back();
    EXPECT_NEAR(schedule.Factor(step, steps), expected, 1e-12 * expected) << step;
  }
}

std::string CompletedText(const std::string& text, const ScheduleTerms& terms) {
  bool used = false;
  return Schedule::Completed(text, terms, used);
}

std::string CompletionRefusal(const std::string& text, const ScheduleTerms& terms) {
  try {
    return "completed to " + CompletedText(text, terms);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(OptimalSchedule, IsTheNoiseOfLemma31) {
  for (const double kappa : {1.5, 10.0, 100.0}) {
    const ConvergenceProblem problem(kappa, 1e-3);
    const Schedule schedule =
        Schedule::Parse(CompletedText("optimal", ScheduleTerms{.kappa = kappa}));
    ExpectProportional(schedule, OptimalNoise(problem.Influence(63), 2));
  }
}

// references.md: q_t = .01 * .9^(5 - t), R = 2.
TEST(OptimalSchedule, ScaledToItsBudgetIsThePublishedSchedule) {
  const Schedule schedule = Schedule::Parse("optimal:0.9");
  double spent = 0;
  for (int step = 0; step < 5; ++step) spent += std::pow(schedule.Factor(step, 5), -2);
  const double scale = std::sqrt(spent / 2);
  const double expected[] = {1.66897956, 1.62559234, 1.58333303, 1.5421723, 1.5020816};
  for (int step = 0; step < 5; ++step) {
    EXPECT_NEAR(scale * schedule.Factor(step, 5), expected[step], 1e-7) << step;
  }
}

TEST(OptimalMomentumSchedule, IsTheNoiseOfTheorem34) {
  const ConvergenceProblem problem(20, 1e-4);
  const MomentumProblem momentum(problem, 0.9);
  const Schedule schedule = Schedule::Parse(
      CompletedText("optimal-momentum", ScheduleTerms{.kappa = 20, .momentum = 0.9}));
  ExpectProportional(schedule, OptimalNoise(momentum.Influence(200), 1));
}

// references.md: beta .5, gamma .9 is not monotone.
TEST(OptimalMomentumSchedule, FollowsWeightsThatAreNotMonotone) {
  const Schedule schedule = Schedule::Parse("optimal-momentum:0.5:0.9");
  const double influence[] = {.90694375, 1.003375, 1.0975, 1.15, 1};
  for (int step = 0; step < 5; ++step) {
    EXPECT_NEAR(schedule.Factor(step, 5), std::pow(influence[step], -0.25), 1e-12) << step;
  }
}

TEST(OptimalSchedule, IsCompletedFromTheRun) {
  const ScheduleTerms all{.kappa = std::nullopt, .decay = 0.75, .momentum = 0.5};
  EXPECT_EQ(CompletedText("optimal", all), "optimal:0.75");
  EXPECT_EQ(CompletedText("warmup:7,optimal", all), "warmup:7,optimal:0.75");
  EXPECT_EQ(CompletedText("optimal-momentum", all), "optimal-momentum:0.5:0.75");
  EXPECT_EQ(CompletedText("optimal", ScheduleTerms{.kappa = 4}), "optimal:0.75");
  // What is complete, and what Parse will refuse, stays.
  for (const char* text : {"optimal:0.5", "constant", "linear:2", "linear", "nonsense", ""}) {
    bool used = false;
    EXPECT_EQ(Schedule::Completed(text, all, used), text);
    EXPECT_FALSE(used) << text;
  }
}

TEST(OptimalSchedule, TermsThatAreMissingOrOutOfRangeAreRefused) {
  EXPECT_THAT(CompletionRefusal("optimal", {}), HasSubstr("--kappa"));
  EXPECT_THAT(CompletionRefusal("optimal", {.kappa = 0.5}), HasSubstr("--kappa"));
  EXPECT_THAT(CompletionRefusal("optimal", {.kappa = 1}), HasSubstr("--kappa"));
  EXPECT_THAT(CompletionRefusal("optimal", {.decay = 1}), HasSubstr("--decay"));
  EXPECT_THAT(CompletionRefusal("optimal", {.decay = -0.5}), HasSubstr("--decay"));
  EXPECT_THAT(CompletionRefusal("optimal-momentum", {.kappa = 4}), HasSubstr("debiased-momentum"));
  EXPECT_THAT(CompletionRefusal("optimal-momentum", {.momentum = 0.5}), HasSubstr("--kappa"));
}

TEST(OptimalSchedule, ArgumentsOutOfRangeAreRefused) {
  for (const char* text :
       {"optimal", "optimal:", "optimal:0", "optimal:1", "optimal:1.5", "optimal:-0.5",
        "optimal:nan", "optimal:x", "optimal-momentum", "optimal-momentum:0.5",
        "optimal-momentum:1:0.5", "optimal-momentum:0.5:1", "optimal-momentum:0:0.5", "file",
        "file:", "file:-"}) {
    EXPECT_THROW(Schedule::Parse(text), Error) << text;
  }
}

}  // namespace
}  // namespace sordino
