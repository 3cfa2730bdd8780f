// The record of a run or a fit, record.json (report/deployment_record.h): before the first step it
// says what is planned; at the end, what counts.
#ifndef SORDINO_RUNS_INTERNAL_RUN_RECORD_H_
#define SORDINO_RUNS_INTERNAL_RUN_RECORD_H_

#include <cstdint>
#include <string>

#include "sordino/runs/fit_statement.h"
#include "sordino/runs/statement.h"

namespace sordino::internal {

// What neither statement holds.
struct RecordFacts {
  std::string device = "cpu";
  double failure = 0;     // probability of what is not in the event (accounting/failures.h)
  std::int64_t time = 0;  // seconds since 1970
};

// JSON objects, ending in a line break.
std::string RunRecord(const StatementFacts& facts, const RecordFacts& more);
std::string FitRecord(const FitFacts& facts, const RecordFacts& more);

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_RUN_RECORD_H_
