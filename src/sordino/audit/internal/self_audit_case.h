// One mechanism of the self-audit: what it claims, and how an attacker scores it.
#ifndef SORDINO_AUDIT_INTERNAL_SELF_AUDIT_CASE_H_
#define SORDINO_AUDIT_INTERNAL_SELF_AUDIT_CASE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sordino/base/quantity.h"

namespace sordino::internal {

enum class World : std::uint8_t { kWithout, kWith };

// What the scores of a world are made with.
class AuditRuns {
 public:
  AuditRuns(std::optional<std::uint64_t> seed, std::function<void(double)> tell)
      : seed_(seed), tell_(std::move(tell)) {}

  // Of the next run; nothing for the randomness of the operating system.
  std::optional<std::uint64_t> NextSeed() {
    return seed_ ? std::optional<std::uint64_t>((*seed_)++) : std::nullopt;
  }
  // The share of the scores that is there.
  void Tell(double share) const {
    if (tell_) tell_(share);
  }

 private:
  std::optional<std::uint64_t> seed_;
  std::function<void(double)> tell_;
};

struct SelfAuditCase {
  std::string name;
  std::string what;
  // Certified epsilon at a delta: the upper end.
  std::function<double(Delta delta)> claim;
  std::vector<double> deltas;
  bool is_gaussian = false;       // the claim is mu-GDP with this event's mu
  std::int64_t quick_scores = 0;  // in each world
  // At least so many scores; larger ones are evidence that the record is there.
  std::function<std::vector<double>(World world, std::int64_t scores, AuditRuns& runs)> score;
};

std::vector<SelfAuditCase> TrainingCases();
std::vector<SelfAuditCase> FitCases();
std::vector<SelfAuditCase> ReleaseCases();

}  // namespace sordino::internal

#endif  // SORDINO_AUDIT_INTERNAL_SELF_AUDIT_CASE_H_
