#include "sordino/report/deployment_record.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "sordino/base/error.h"

namespace sordino {
namespace {

using Record = nlohmann::ordered_json;

constexpr int kRecordSchema = 1;

void CheckPurposeText(std::string_view flag, const std::string& text) {
  if (text.size() > kMaxPurposeText) {
    throw Error(fmt::format("{} has {} bytes; give one line of at most {}.", flag, text.size(),
                            kMaxPurposeText));
  }
  const bool is_line = std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  });
  // A dump refuses what is not UTF-8.
  const bool is_text = [&] {
    try {
      return !Record(text).dump().empty();
    } catch (const Record::exception&) {
      return false;
    }
  }();
  if (!is_line || !is_text) {
    throw Error(fmt::format(
        "{} holds a line break, a control character or bytes that are not UTF-8; give one line of "
        "text.",
        flag));
  }
}

std::string UtcTime(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Record AdaptiveNoiseObject(const AdaptiveNoiseRecord& record) {
  Record measurements = Record::array();
  for (const AdaptiveNoiseRecord::Measurement& one : record.measurements) {
    measurements.push_back(
        {{"step", one.step}, {"held_out_right", one.count}, {"noise_multiplier", one.noise}});
  }
  return {{"first_noise_multiplier", record.first_noise},
          {"count_noise", record.count_noise},
          {"measurements", measurements}};
}

Record ReleaseObject(const DeploymentFacts& facts) {
  Record json = Record::object();
  for (const auto& [key, value] : facts.release) {
    std::visit([&json, &name = key](const auto& held) { json[name] = held; }, value);
  }
  json["time"] = UtcTime(facts.time);
  if (facts.adaptive_noise) json["adaptive_noise"] = AdaptiveNoiseObject(*facts.adaptive_noise);
  return json;
}

Record HardwareObject(const DeploymentFacts& facts) {
  utsname machine{};
  const bool known = uname(&machine) == 0;
  return {{"device", facts.device},
          {"processor", fmt::format("{}, {} threads", known ? machine.machine : "unknown",
                                    std::thread::hardware_concurrency())}};
}

Record PrivacyObject(const DeploymentFacts& facts) {
  Record json = {{"private", facts.warning.empty()}};
  if (!facts.warning.empty()) json["warning"] = facts.warning;
  if (!facts.is_protected) return json;
  json["definition"] = facts.delta > 0 ? "approximate differential privacy (epsilon, delta)"
                                       : "pure differential privacy (epsilon)";
  json["trust_model"] = "central";
  json["unit"] = facts.counts_users ? "user" : "record";
  if (facts.counts_users) json["rows_per_user"] = facts.rows_per_user;
  json["adjacency"] = AdjacencyName(facts.adjacency);
  json["epsilon"] = std::isfinite(facts.epsilon) ? Record(facts.epsilon) : Record(nullptr);
  json["delta"] = facts.delta;
  json["failure"] = facts.failure;
  json["counts_whole"] = facts.counts_whole;
  json["accounting"] = facts.accounting;
  json["event"] = facts.event;
  return json;
}

// The same exceptions as in the statement, in short.
Record NotProtected(const DeploymentFacts& facts) {
  if (!facts.is_protected) return {"everything"};
  Record list = {
      "other releases from the same data",
      "what is true of the population, whether or not somebody is in the data",
      "against whoever sees the data, the memory of the process, or how long steps took"};
  if (!facts.counts_users)
    list.push_back("persons with several records, beyond each of their records");
  if (facts.has_test) list.push_back("records of the public test set");
  return list;
}

}  // namespace

void CheckPurpose(const ReleasePurpose& purpose) {
  CheckPurposeText("--curator", purpose.curator);
  CheckPurposeText("--use", purpose.use);
}

std::string PurposeSentence(const ReleasePurpose& purpose) {
  const auto ended = [](const std::string& text) {
    return text.ends_with('.') ? text : text + '.';
  };
  std::string sentence;
  if (!purpose.curator.empty()) sentence += "Curator: " + ended(purpose.curator);
  if (!purpose.use.empty()) {
    sentence += (sentence.empty() ? "" : " ") + ("Intended use: " + ended(purpose.use));
  }
  return sentence;
}

std::string DeploymentRecord(const DeploymentFacts& facts) {
  Record json = {{"schema", kRecordSchema}};
  if (!facts.purpose.curator.empty()) json["curator"] = facts.purpose.curator;
  if (!facts.purpose.use.empty()) json["use"] = facts.purpose.use;
  json["release"] = ReleaseObject(facts);
  json["privacy"] = PrivacyObject(facts);
  json["implementation"] = {{"name", "sordino"}, {"version", SORDINO_VERSION}};
  json["hardware"] = HardwareObject(facts);
  json["not_protected"] = NotProtected(facts);
  return json.dump(2, ' ', false, Record::error_handler_t::replace) + '\n';
}

}  // namespace sordino
