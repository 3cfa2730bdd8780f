// The audit of a run with canaries (training/canaries.h, training/internal/data_canaries.h): what
// an attacker learned about them, beside what was claimed.
#ifndef SORDINO_RUNS_RUN_AUDIT_H_
#define SORDINO_RUNS_RUN_AUDIT_H_

#include <cstdint>
#include <string>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"
#include "sordino/lower_bounds/canary_audit.h"
#include "sordino/training/canaries.h"

namespace sordino {

// Of the sentence that a claim does not hold: false once in ten thousand runs at most.
inline constexpr double kContradictionConfidence = 0.9999;

struct RunAudit {
  std::int64_t canaries = 0;
  std::string kind;  // of kCanaryKinds
  double delta = 0;
  double claim = 0;          // epsilon at delta, its upper end
  CanaryAudit every_update;  // at kAuditConfidence
  CanaryAudit last_model;
  // Whether right guesses about every update exclude the claim at kContradictionConfidence.
  bool contradicts = false;
};

RunAudit AuditRun(const CanaryScores& scores, const std::string& kind, Epsilon claim, Delta delta);

// The record of it, a JSON object for people and programs.
std::string AuditJson(const RunAudit& audit);
// The curves of both attackers within what the event allows.
std::string AuditSvg(const RunAudit& audit, const CanaryScores& scores, const Event& event);
// A paragraph for the statement of the run.
std::string AuditSentence(const RunAudit& audit);

}  // namespace sordino

#endif  // SORDINO_RUNS_RUN_AUDIT_H_
