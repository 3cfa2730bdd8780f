// A schedule of a CSV file (schedules/schedule_table.h) as the steps that are accounted.
//
// What has no column comes from the flags. The clip is checked and otherwise without effect: the
// noise is relative to it, so it does not change what is spent.
#ifndef SORDINO_CLI_SCHEDULE_FILE_H_
#define SORDINO_CLI_SCHEDULE_FILE_H_

#include <string>
#include <string_view>

#include "sordino/cli/epsilon_curve.h"
#include "sordino/cli/event_options.h"

namespace sordino {

// `name` stands for the file in the sentences of Error, which also give the line.
StepSequence ParseSchedule(std::string_view text, const std::string& name,
                           const EventOptions& flags);
// "-" is standard input.
StepSequence ReadSchedule(const std::string& path, const EventOptions& flags);

}  // namespace sordino

#endif  // SORDINO_CLI_SCHEDULE_FILE_H_
