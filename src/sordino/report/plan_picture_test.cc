#include "sordino/report/plan_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sordino {
namespace {

using testing::HasSubstr;
using testing::Not;

PlanPicture Example() {
  PlanPicture plan;
  for (int steps = 0; steps <= 100; ++steps) {
    const double t = steps;
    plan.bounds.push_back({t, std::exp(-0.1 * t) + 1e-3 * t, std::exp(-0.1 * t) + 4e-3});
  }
  plan.uniform_steps = 46;
  plan.dynamic_steps = 100;
  plan.noise = {4, 3, 2, 1};
  plan.schedule_steps = 100;
  plan.uniform_noise = 2.5;
  plan.caption = "kappa 10 & alpha 1e-4";
  return plan;
}

TEST(PlanPicture, ShowsBothBoundsAndTheSchedule) {
  const std::string svg = PlanSvg(Example());
  EXPECT_THAT(svg, HasSubstr("bound on the excess risk"));
  EXPECT_THAT(svg, HasSubstr("noise multiplier of a step"));
  EXPECT_THAT(svg, HasSubstr("kappa 10 &amp; alpha"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(PlanPicture, LeavesOutAScheduleThatIsTooLong) {
  PlanPicture plan = Example();
  plan.noise.clear();
  EXPECT_THAT(PlanSvg(plan), Not(HasSubstr("noise multiplier")));
}

TEST(PlanPicture, DrawsASingleStep) {
  PlanPicture plan = Example();
  plan.bounds.resize(2);
  plan.noise = {1.5};
  plan.schedule_steps = 1;
  const std::string svg = PlanSvg(plan);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

}  // namespace
}  // namespace sordino
