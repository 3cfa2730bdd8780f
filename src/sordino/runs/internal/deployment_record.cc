#include "sordino/runs/internal/deployment_record.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

namespace sordino::internal {
namespace {

using Record = nlohmann::ordered_json;

constexpr int kRecordSchema = 1;

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

std::string UtcTime(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Record Hardware(const RecordFacts& more) {
  utsname machine{};
  const bool known = uname(&machine) == 0;
  return {{"device", more.device},
          {"processor", fmt::format("{}, {} threads", known ? machine.machine : "unknown",
                                    std::thread::hardware_concurrency())}};
}

// What statements of runs and fits both say.
struct CommonFacts {
  RunPrivacy privacy = RunPrivacy::kPrivate;
  bool counts_users = false;
  std::int64_t rows_per_user = 1;
  bool counts_whole = false;
  Adjacency adjacency = Adjacency::kAddRemove;
  double epsilon = 0;
  double delta = 0;
  std::string event;
  bool has_test = false;
};

Record Privacy(const CommonFacts& facts, const RecordFacts& more) {
  Record json = {{"private", facts.privacy == RunPrivacy::kPrivate}};
  if (facts.privacy != RunPrivacy::kPrivate) json["warning"] = NotPrivateWarning(facts.privacy);
  if (facts.privacy == RunPrivacy::kNonPrivate) return json;
  json["definition"] = facts.delta > 0 ? "approximate differential privacy (epsilon, delta)"
                                       : "pure differential privacy (epsilon)";
  json["trust_model"] = "central";
  json["unit"] = facts.counts_users ? "user" : "record";
  if (facts.counts_users) json["rows_per_user"] = facts.rows_per_user;
  json["adjacency"] = AdjacencyName(facts.adjacency);
  json["epsilon"] = std::isfinite(facts.epsilon) ? Record(facts.epsilon) : Record(nullptr);
  json["delta"] = facts.delta;
  json["failure"] = more.failure;
  json["counts_whole"] = facts.counts_whole;
  json["accounting"] = "privacy loss distribution of the event, upper end of a certified interval";
  json["event"] = facts.event;
  return json;
}

// The same exceptions as in the statement, in short.
Record NotProtected(const CommonFacts& facts) {
  if (facts.privacy == RunPrivacy::kNonPrivate) return {"everything"};
  Record list = {
      "other releases from the same data",
      "what is true of the population, whether or not somebody is in the data",
      "against whoever sees the data, the memory of the process, or how long steps took"};
  if (!facts.counts_users)
    list.push_back("persons with several records, beyond each of their records");
  if (facts.has_test) list.push_back("records of the public test set");
  return list;
}

std::string Whole(const Record& release, const CommonFacts& facts, const RecordFacts& more) {
  const Record json = {{"schema", kRecordSchema},
                       {"release", release},
                       {"privacy", Privacy(facts, more)},
                       {"implementation", {{"name", "sordino"}, {"version", SORDINO_VERSION}}},
                       {"hardware", Hardware(more)},
                       {"not_protected", NotProtected(facts)}};
  return json.dump(2, ' ', false, Record::error_handler_t::replace) + '\n';
}

}  // namespace

std::string DeploymentRecord(const StatementFacts& facts, const RecordFacts& more) {
  const Record release = {{"kind", "training"},
                          {"data", facts.data},
                          {"model", facts.model},
                          {"state", StateName(facts.state)},
                          {"steps", facts.state == RunState::kPlanned ? 0 : facts.steps},
                          {"planned_steps", facts.planned_steps},
                          {"time", UtcTime(more.time)}};
  const CommonFacts common = {.privacy = facts.privacy,
                              .counts_users = facts.rows_per_user > 0,
                              .rows_per_user = facts.rows_per_user,
                              .counts_whole = facts.counts_whole,
                              .adjacency = facts.adjacency,
                              .epsilon = facts.epsilon.upper,
                              .delta = facts.delta,
                              .event = facts.event,
                              .has_test = facts.has_test};
  return Whole(release, common, more);
}

std::string DeploymentRecord(const FitFacts& facts, const RecordFacts& more) {
  const Record release = {{"kind", "fit"},
                          {"data", facts.data},
                          {"model", facts.model},
                          {"method", facts.method},
                          {"state", StateName(facts.state)},
                          {"time", UtcTime(more.time)}};
  return Whole(release,
               {.privacy = facts.privacy,
                .counts_users = facts.counts_users,
                .adjacency = facts.adjacency,
                .epsilon = facts.epsilon.upper,
                .delta = facts.delta,
                .event = facts.event,
                .has_test = facts.has_test},
               more);
}

}  // namespace sordino::internal
