// A plan of 'sordino plan' and how it is shown: as text, as JSON, as a picture and as a file.
#ifndef SORDINO_CLI_PLAN_REPORT_H_
#define SORDINO_CLI_PLAN_REPORT_H_

#include <string>

#include "sordino/report/plan_picture.h"
#include "sordino/theory/step_plan.h"

namespace sordino {

// One JSON object, or a text for people, with a line break at the end.
std::string PlanJson(const Plan& plan);
std::string PlanText(const Plan& plan);
PlanPicture PictureOf(const Plan& plan);
// The noise of every step (schedules/schedule_table.h). Throws Error where there are too many.
std::string ScheduleFileOf(const Plan& plan);

}  // namespace sordino

#endif  // SORDINO_CLI_PLAN_REPORT_H_
