#include "sordino/runs/internal/run_record.h"

#include <fmt/format.h>

#include "sordino/report/deployment_record.h"

namespace sordino::internal {
namespace {

std::string StateName(RunState state) {
  switch (state) {
    case RunState::kPlanned:
      return "planned";
    case RunState::kFinished:
      return "finished";
    case RunState::kInterrupted:
      return "interrupted";
  }
  return "";
}

// What statements of runs and of fits both say.
template <typename Facts>
DeploymentFacts CommonFacts(const Facts& facts, const RecordFacts& more) {
  DeploymentFacts record;
  record.purpose = facts.purpose;
  record.warning = NotPrivateWarning(facts.privacy);
  record.is_protected = HasNoise(facts.privacy);
  record.adjacency = facts.adjacency;
  record.epsilon = facts.epsilon.upper;
  record.delta = facts.delta;
  record.failure = more.failure;
  record.event = facts.event;
  record.device = more.device;
  record.time = more.time;
  record.has_test = facts.has_test;
  return record;
}

}  // namespace

std::string RunRecord(const StatementFacts& facts, const RecordFacts& more) {
  DeploymentFacts record = CommonFacts(facts, more);
  record.release = {{"kind", "training"},
                    {"data", facts.data},
                    {"model", facts.model},
                    {"state", StateName(facts.state)},
                    {"steps", facts.state == RunState::kPlanned ? 0 : facts.steps},
                    {"planned_steps", facts.planned_steps}};
  record.counts_users = facts.rows_per_user > 0;
  record.rows_per_user = facts.rows_per_user;
  record.counts_whole = facts.counts_whole;
  if (facts.adaptive) {
    record.accounting =
        fmt::format("fully adaptive composition: budget of a {}", facts.adaptive->filter);
    record.adaptive_noise = AdaptiveNoiseRecord{.first_noise = facts.adaptive->first_noise,
                                                .count_noise = facts.adaptive->count_noise};
    for (const NoiseLevel& level : facts.adaptive->levels) {
      record.adaptive_noise->measurements.push_back({level.step, level.count, level.noise});
    }
  }
  return DeploymentRecord(record);
}

std::string FitRecord(const FitFacts& facts, const RecordFacts& more) {
  DeploymentFacts record = CommonFacts(facts, more);
  record.release = {{"kind", "fit"},
                    {"data", facts.data},
                    {"model", facts.model},
                    {"method", facts.method},
                    {"state", StateName(facts.state)}};
  record.counts_users = facts.counts_users;
  record.rows_per_user = facts.rows_per_user;
  return DeploymentRecord(record);
}

}  // namespace sordino::internal
