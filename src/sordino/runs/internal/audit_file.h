// The file of an audit in a run folder.
#ifndef SORDINO_RUNS_INTERNAL_AUDIT_FILE_H_
#define SORDINO_RUNS_INTERNAL_AUDIT_FILE_H_

#include <string>

#include "sordino/runs/run_audit.h"

namespace sordino::internal {

// AuditJson with the curves of both attackers, "roc": pairs of false and true positive rates,
// thinned to some hundred.
std::string AuditFile(const RunAudit& audit, const CanaryScores& scores);

}  // namespace sordino::internal

#endif  // SORDINO_RUNS_INTERNAL_AUDIT_FILE_H_
