// Bounds on the excess risk against the number of steps, and the noise schedule beside them.
#ifndef SORDINO_REPORT_PLAN_PICTURE_H_
#define SORDINO_REPORT_PLAN_PICTURE_H_

#include <string>
#include <vector>

namespace sordino {

struct PlanCurvePoint {
  double steps = 0;
  double uniform = 0;
  double dynamic = 0;
};

struct PlanPicture {
  std::vector<PlanCurvePoint> bounds;  // in rising steps, at least two
  double uniform_steps = 0;            // where the bounds are least
  double dynamic_steps = 0;
  std::vector<double> noise;  // the schedule, at evenly spaced steps
  double schedule_steps = 0;  // how many steps it has
  double uniform_noise = 0;   // the same noise in all steps, for the same budget
  std::string caption;
};

std::string PlanSvg(const PlanPicture& plan);

}  // namespace sordino

#endif  // SORDINO_REPORT_PLAN_PICTURE_H_
