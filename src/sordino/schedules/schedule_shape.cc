#include "sordino/schedules/schedule_shape.h"

namespace sordino {

#define SORDINO_COMPONENT(function, file) const ScheduleShape& function();
#include "sordino/schedules/schedule_list.inc"
#undef SORDINO_COMPONENT

const Registry<ScheduleShape>& ScheduleShapes() {
  static const Registry<ScheduleShape> list("schedule", {
#define SORDINO_COMPONENT(function, file) &function(),
#include "sordino/schedules/schedule_list.inc"
#undef SORDINO_COMPONENT
                                                        });
  return list;
}

std::string ScheduleShape::Usage() const {
  const std::string own(name());
  return Arguments().empty() ? own : own + ":" + std::string(Arguments());
}

}  // namespace sordino
