// Reads a schedule: the parameters of each step, or of each run of equal steps, from a CSV file.
//
//   rate,noise,steps
//   0.01,4,5000      # a comment
//   0.01,2,5000
//
// The first line names the columns, any of rate, noise, steps (how often the line is repeated;
// count is another name for it) and clip, in any order. What has no column comes from the flags.
// The clip is checked and otherwise without effect: the noise is relative to it, so it does not
// change what is spent. Blank lines and everything behind a # are skipped.
#ifndef SORDINO_CLI_SCHEDULE_FILE_H_
#define SORDINO_CLI_SCHEDULE_FILE_H_

#include <string>
#include <string_view>

#include "sordino/cli/epsilon_curve.h"
#include "sordino/cli/event_options.h"

namespace sordino {

// The whole text of a file, or of standard input for "-"; `advice` says what to do where it is
// larger than 64 MiB.
std::string ReadTextFile(const std::string& path, std::string_view advice);

// `name` stands for the file in the sentences of Error, which also give the line.
StepSequence ParseSchedule(std::string_view text, const std::string& name,
                           const EventOptions& flags);
// "-" is standard input; files over 64 MiB are refused.
StepSequence ReadSchedule(const std::string& path, const EventOptions& flags);

}  // namespace sordino

#endif  // SORDINO_CLI_SCHEDULE_FILE_H_
