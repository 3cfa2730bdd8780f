#include "sordino/schedules/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "sordino/base/error.h"

namespace sordino {
namespace {

// Numbers as people write them and numbers with all their digits.
double RandomFactor(std::mt19937_64& random) {
  const double factor = std::exp(std::uniform_real_distribution<double>(-12, 4)(random));
  return random() % 2 == 0 ? factor : std::round(factor * 1000) / 1000 + 0.001;
}

std::string RandomText(std::mt19937_64& random) {
  std::string text;
  if (random() % 2 == 0) text = "warmup:" + std::to_string(1 + random() % 500) + ",";
  const std::string factor = std::to_string(RandomFactor(random));
  switch (random() % 5) {
    case 0:
      return text + "constant";
    case 1:
      return text + "linear:" + factor;
    case 2:
      return text + "cosine:" + factor;
    case 3:
      return text + "exponential:" + std::to_string(RandomFactor(random) + 1e-5);
    default:
      return text + "step:" + std::to_string(1 + random() % 300) + ":" +
             std::to_string(RandomFactor(random) + 1e-5);
  }
}

TEST(Schedule, IsConstantByDefault) {
  const Schedule schedule;
  EXPECT_TRUE(schedule.IsConstant());
  EXPECT_EQ(schedule.ToString(), "constant");
  EXPECT_EQ(schedule, Schedule::Parse("constant"));
  for (int step = 0; step < 10; ++step) EXPECT_EQ(schedule.Factor(step, 10), 1);
}

TEST(Schedule, PrintsWhatItParses) {
  for (const char* text :
       {"constant", "linear:0", "linear:0.25", "cosine:0", "exponential:0.001", "step:30:0.1",
        "block:3:9:2.5", "warmup:100,cosine:0", "warmup:5,constant",
        "warmup:1,step:9223372036854775807:2", "linear:1e-300"}) {
    EXPECT_EQ(Schedule::Parse(text).ToString(), text);
  }
}

TEST(Schedule, ComesBackFromItsText) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    const std::string text = RandomText(random);
    const Schedule schedule = Schedule::Parse(text);
    const Schedule again = Schedule::Parse(schedule.ToString());
    ASSERT_EQ(schedule, again) << text;
    const std::int64_t steps = 1 + static_cast<std::int64_t>(random() % 1000);
    const auto step = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(steps));
    ASSERT_EQ(schedule.Factor(step, steps), again.Factor(step, steps)) << text;
  }
}

TEST(Schedule, KeepsEveryDigitOfItsNumbers) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) {
    char digits[40];
    const double end = RandomFactor(random);
    std::snprintf(digits, sizeof(digits), "%.17g", end);
    const Schedule schedule = Schedule::Parse(std::string("linear:") + digits);
    ASSERT_EQ(Schedule::Parse(schedule.ToString()).Factor(9, 10), end);
  }
}

TEST(Schedule, FollowsTheFormulaOfItsShape) {
  constexpr std::int64_t kSteps = 101;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    const double t = static_cast<double>(step) / 100;
    EXPECT_NEAR(Schedule::Parse("linear:0.2").Factor(step, kSteps), 1 - 0.8 * t, 1e-15);
    EXPECT_NEAR(Schedule::Parse("linear:3").Factor(step, kSteps), 1 + 2 * t, 1e-15);
    EXPECT_NEAR(Schedule::Parse("cosine:0.1").Factor(step, kSteps),
                0.1 + 0.9 * (1 + std::cos(std::numbers::pi * t)) / 2, 1e-15);
    EXPECT_NEAR(Schedule::Parse("exponential:0.01").Factor(step, kSteps),
                std::exp(std::log(0.01) * t), 1e-15);
    double times = 1;
    for (std::int64_t i = 30; i <= step; i += 30) times *= 0.5;
    EXPECT_EQ(Schedule::Parse("step:30:0.5").Factor(step, kSteps), times);
    EXPECT_EQ(Schedule::Parse("block:3:9:2.5").Factor(step, kSteps),
              step >= 2 && step <= 8 ? 2.5 : 1);
    EXPECT_NEAR(Schedule::Parse("warmup:10,linear:0.2").Factor(step, kSteps),
                (1 - 0.8 * t) * std::min(1.0, static_cast<double>(step + 1) / 10), 1e-15);
  }
}

TEST(Schedule, StartsAtOneAndEndsAtItsEndExactly) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t steps = 2 + static_cast<std::int64_t>(random() % 10'000);
    const std::string end = std::to_string(RandomFactor(random) + 1e-5);
    for (const char* shape : {"linear:", "cosine:", "exponential:"}) {
      const Schedule schedule = Schedule::Parse(shape + end);
      ASSERT_EQ(schedule.Factor(0, steps), 1) << shape << end;
      ASSERT_EQ(schedule.Factor(steps - 1, steps), std::stod(end)) << shape << end;
    }
  }
  EXPECT_EQ(Schedule::Parse("cosine:0").Factor(99, 100), 0);
}

TEST(Schedule, OfOneStepIsOne) {
  for (const char* text : {"constant", "linear:0", "cosine:0", "exponential:0.1", "step:1:0.5"}) {
    EXPECT_EQ(Schedule::Parse(text).Factor(0, 1), 1) << text;
  }
  EXPECT_EQ(Schedule::Parse("warmup:4,constant").Factor(0, 1), 0.25);
}

TEST(Schedule, WarmupEndsAtItsLastStep) {
  const Schedule schedule = Schedule::Parse("warmup:4,constant");
  const std::vector<double> wanted = {0.25, 0.5, 0.75, 1, 1, 1};
  for (std::int64_t step = 0; step < 6; ++step) {
    EXPECT_EQ(schedule.Factor(step, 6), wanted[static_cast<std::size_t>(step)]);
  }
}

TEST(Schedule, MovesInOneDirectionWithoutWarmup) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 300; ++i) {
    const std::string end = std::to_string(RandomFactor(random) + 1e-5);
    for (const std::string& text :
         {"linear:" + end, "cosine:" + end, "exponential:" + end, "step:7:" + end}) {
      const Schedule schedule = Schedule::Parse(text);
      const std::int64_t steps = 2 + static_cast<std::int64_t>(random() % 200);
      const double direction = std::stod(end) < 1 ? -1 : 1;
      for (std::int64_t step = 1; step < steps; ++step) {
        ASSERT_GE(direction * (schedule.Factor(step, steps) - schedule.Factor(step - 1, steps)), 0)
            << text << " at " << step << " of " << steps;
      }
    }
  }
}

TEST(Schedule, IsFiniteAndNotNegativeEverywhere) {
  for (const char* text :
       {"step:1:10", "step:1:1e300", "step:1:0.001", "exponential:1e-320", "exponential:1e308",
        "linear:1e308", "linear:1.7976931348623157e308", "cosine:1.7976931348623157e308",
        "warmup:9223372036854775807,cosine:0"}) {
    const Schedule schedule = Schedule::Parse(text);
    constexpr std::int64_t kLast = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t steps : {std::int64_t{1}, std::int64_t{2}, std::int64_t{1000}, kLast}) {
      for (const std::int64_t step : {std::int64_t{0}, steps / 2, steps - 1}) {
        const double factor = schedule.Factor(step, steps);
        EXPECT_TRUE(std::isfinite(factor) && factor >= 0)
            << text << " at " << step << " of " << steps << " is " << factor;
      }
    }
  }
}

TEST(Schedule, SaysThatItIsConstantExactlyWhenItIsOneEverywhere) {
  for (const char* text : {"constant", "linear:1", "cosine:1", "exponential:1", "step:3:1",
                           "warmup:1,constant", "warmup:1,cosine:1"}) {
    const Schedule schedule = Schedule::Parse(text);
    EXPECT_TRUE(schedule.IsConstant()) << text;
    for (std::int64_t step = 0; step < 50; ++step) EXPECT_EQ(schedule.Factor(step, 50), 1) << text;
  }
  for (const char* text : {"linear:0.999", "cosine:0", "exponential:2", "step:3:0.5",
                           "warmup:2,constant", "warmup:2,linear:1"}) {
    EXPECT_FALSE(Schedule::Parse(text).IsConstant()) << text;
  }
}

TEST(Schedule, AdaptiveIsOfTheNoiseOnlyAndOneUntilATrainerLowersIt) {
  const Schedule adaptive = Schedule::Parse("adaptive", "noise");
  EXPECT_TRUE(adaptive.IsConstant());
  EXPECT_EQ(adaptive.Factor(7, 10), 1);
  EXPECT_EQ(adaptive.ToString(), "adaptive");
  for (const char* column : {"clip", "rate", "learning-rate"}) {
    EXPECT_THROW(Schedule::Parse("adaptive", column), Error) << column;
  }
}

TEST(Schedule, RefusesAWrongTextWithOneSentenceThatShowsTheGrammar) {
  for (const char* text : {"",
                           " ",
                           "Constant",
                           "constant ",
                           "constant:1",
                           "adaptive:0.5",
                           "linear",
                           "linear:",
                           "linear:-1",
                           "linear:-0",
                           "linear:nan",
                           "linear:inf",
                           "linear:1e999",
                           "linear:0x1p3",
                           "linear:+1",
                           "linear: 1",
                           "linear:1:2",
                           "linear:1,",
                           "cosine:abc",
                           "cosine:0.5x",
                           "exponential:0",
                           "exponential:-2",
                           "step",
                           "step:",
                           "step:1",
                           "step:1:",
                           "step:0:0.5",
                           "step:-3:0.5",
                           "step:1.5:0.5",
                           "step:10:0",
                           "step:10:-1",
                           "step:10:0.5:3",
                           "block:3:2:1",
                           "block:0:2:1",
                           "block:1:2",
                           "block:1:2:0",
                           "step:99999999999999999999:1",
                           "warmup",
                           "warmup:10",
                           "warmup:10,",
                           "warmup:0,constant",
                           "warmup:-1,constant",
                           "warmup:x,constant",
                           "warmup:10,warmup:10,constant",
                           "warmup:10:constant",
                           "linear:0;x",
                           "cosine:0,warmup:10",
                           "sine:1"}) {
    try {
      Schedule::Parse(text);
      ADD_FAILURE() << "accepted '" << text << "'";
    } catch (const Error& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("'" + std::string(text) + "'"), std::string::npos) << said;
      for (const char* part : {"constant", "linear:E", "cosine:E", "exponential:E", "step:N:F",
                               "block:A:B:F", "warmup:N,", "warmup:100,cosine:0"}) {
        EXPECT_NE(said.find(part), std::string::npos) << said;
      }
      EXPECT_EQ(said.back(), '.');
      EXPECT_EQ(said.find(". "), std::string::npos) << "one sentence: " << said;
    }
  }
}

// Random bytes, and right texts with a few characters changed: parsed or refused, and what is
// parsed keeps its promises.
TEST(Schedule, SurvivesAnyBytes) {
  std::mt19937_64 random(5);
  int parsed = 0;
  for (int i = 0; i < 100'000; ++i) {
    std::string text;
    if (i % 2 == 0) {
      text.resize(random() % 100);
      for (char& c : text) c = static_cast<char>(random());
    } else {
      text = RandomText(random);
      const std::string letters = ":,.0e-19xw";
      text[random() % text.size()] = letters[random() % letters.size()];
    }
    try {
      const Schedule schedule = Schedule::Parse(text);
      ++parsed;
      const double factor = schedule.Factor(7, 20);
      ASSERT_TRUE(std::isfinite(factor) && factor >= 0) << text;
      ASSERT_EQ(Schedule::Parse(schedule.ToString()), schedule) << text;
    } catch (const Error& error) {
      const std::string said = error.what();
      ASSERT_LT(said.size(), 600u);
      ASSERT_TRUE(
          std::all_of(said.begin(), said.end(), [](char c) { return c >= ' ' && c <= '~'; }));
    }
  }
  EXPECT_GT(parsed, 1000);
}

TEST(ScheduleDeathTest, StopsTheProgramForAStepOutsideTheRun) {
  EXPECT_DEATH(Schedule().Factor(10, 10), "outside the run");
  EXPECT_DEATH(Schedule().Factor(-1, 10), "outside the run");
  EXPECT_DEATH(Schedule().Factor(0, 0), "outside the run");
}

}  // namespace
}  // namespace sordino
