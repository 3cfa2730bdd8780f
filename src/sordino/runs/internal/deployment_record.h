// A record of a release for registries of deployments, read by programs: record.json in the folder
// of a run.
//
// Its fields follow what a registry of differential privacy asks for (arXiv 2509.13509): what is
// released, who is protected, which flavour of privacy with which parameters, how it was accounted
// for, by which implementation, and what is not protected. It holds public values only. Before the
// first step it says what is planned; at the end, what counts.
#ifndef SORDINO_RUNS_INTERNAL_DEPLOYMENT_RECORD_H_
#define SORDINO_RUNS_INTERNAL_DEPLOYMENT_RECORD_H_

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
std::string DeploymentRecord(const StatementFacts& facts, const RecordFacts& more);
std::string DeploymentRecord(const FitFacts& facts, const RecordFacts& more);

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_DEPLOYMENT_RECORD_H_
