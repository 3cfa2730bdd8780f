#include "sordino/ledger/entry.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/sha256.h"
#include "sordino/base/shallow_json.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 5> kKinds = {"budget", "run", "charge", "return",
                                                    "note"};  // by kind
constexpr const char* kSums = "sums";
// Of the format of entries; a ledger of another version is not read.
constexpr int kVersion = 1;

Json Parse(std::string_view text) {
  Json json = Json::parse(text, kShallowJson, false);
  if (!json.is_object()) throw Error("the detail of an entry is not a JSON object");
  return json;
}

// The value of a key, of the type that is asked for.
template <typename Value>
Value Get(const Json& json, const char* key) {
  try {
    return json.at(key).get<Value>();
  } catch (const Json::exception&) {
    throw Error(fmt::format("the detail of an entry has no proper '{}'", key));
  }
}

std::string Dump(const Json& json) {
  // A name may hold any bytes; what is not UTF-8 is replaced rather than refused.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string_view EntryKindName(EntryKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

EntryKind ParseEntryKind(std::string_view name) {
  return static_cast<EntryKind>(IndexOfName("the kind of the entry", name, kKinds));
}

std::string EntryHash(const Entry& entry) {
  // Every field with its length: no two entries have the same text.
  std::string text;
  const auto add = [&text](std::string_view field) {
    text += std::to_string(field.size());
    text += ':';
    text += field;
    text += ';';
  };
  add(std::to_string(entry.number));
  add(EntryKindName(entry.kind));
  add(std::to_string(entry.time));
  add(entry.run);
  add(entry.event);
  add(fmt::format("{}", entry.failure));
  add(entry.detail);
  add(entry.previous);
  return Sha256Hex(text);
}

std::string TimeText(std::int64_t milliseconds) {
  const auto seconds = static_cast<std::time_t>(milliseconds >= 0 ? milliseconds / 1000
                                                                  : -((999 - milliseconds) / 1000));
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return fmt::format("{} ms", milliseconds);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string BudgetJson(const BudgetDetail& detail) {
  const Budget& budget = detail.budget;
  Json json;
  json["version"] = kVersion;
  json["ledger"] = detail.ledger;
  // JSON has no infinity.
  const double epsilon = budget.epsilon.value();
  json["epsilon"] = std::isfinite(epsilon) ? Json(epsilon) : Json("infinite");
  json["delta"] = budget.delta.value();
  json["adjacency"] = AdjacencyName(budget.adjacency);
  json["unit"] = ProtectedUnitName(budget.unit);
  json["filter"] = FilterName(budget.filter);
  if (budget.order) json["order"] = budget.order->value();
  if (budget.loss_share > 0) json["losses"] = budget.loss_share;
  return Dump(json);
}

BudgetDetail ParseBudgetJson(std::string_view text) {
  const Json json = Parse(text);
  const int version = Get<int>(json, "version");
  if (version != kVersion) {
    throw Error(fmt::format("the ledger is of version {}, and this program reads version {}",
                            version, kVersion));
  }
  BudgetDetail detail;
  detail.ledger = Get<std::string>(json, "ledger");
  const bool infinite = json.contains("epsilon") && json["epsilon"] == "infinite";
  detail.budget.epsilon = Epsilon(infinite ? kInfinity : Get<double>(json, "epsilon"));
  detail.budget.delta = Delta(Get<double>(json, "delta"));
  detail.budget.adjacency = ParseAdjacency(Get<std::string>(json, "adjacency"));
  detail.budget.unit = ParseProtectedUnit(Get<std::string>(json, "unit"));
  detail.budget.filter = ParseFilter(Get<std::string>(json, "filter"));
  if (json.contains("order")) detail.budget.order = RenyiOrder(Get<double>(json, "order"));
  detail.budget.loss_share = json.contains("losses") ? Get<double>(json, "losses") : 0;
  CheckBudget(detail.budget);
  return detail;
}

std::string RunJson(const RunDetail& detail) {
  Json json;
  json["what"] = detail.what;
  json["who"] = detail.who;
  if (!detail.is_private) json["private"] = false;
  json["whole"] = detail.terms.whole;
  json["order"] = detail.terms.order;
  return Dump(json);
}

RunDetail ParseRunJson(std::string_view text) {
  const Json json = Parse(text);
  RunDetail detail;
  detail.what = Get<std::string>(json, "what");
  detail.who = Get<std::string>(json, "who");
  detail.is_private = !json.contains("private") || Get<bool>(json, "private");
  detail.terms.whole = Get<bool>(json, "whole");
  detail.terms.order = Get<double>(json, "order");
  if (detail.terms.order != 0 && !(detail.terms.order > 1 && std::isfinite(detail.terms.order))) {
    throw Error("the detail of an entry has no proper 'order'");
  }
  return detail;
}

std::string TextJson(std::string_view text) {
  Json json;
  json["text"] = text;
  return Dump(json);
}

std::string ParseTextJson(std::string_view json) { return Get<std::string>(Parse(json), "text"); }

std::string WithSums(std::string_view json, const BudgetSums& sums) {
  Json detail = Parse(json);
  detail[kSums] = Json::parse(BudgetSumsJson(sums));
  return Dump(detail);
}

std::optional<BudgetSums> SumsOf(const Entry& entry) {
  const bool may_have = entry.kind == EntryKind::kCharge || entry.kind == EntryKind::kReturn ||
                        entry.kind == EntryKind::kNote;
  if (!may_have || entry.detail.find(kSums) == std::string::npos) return std::nullopt;
  const Json detail = Parse(entry.detail);
  if (!detail.contains(kSums)) return std::nullopt;
  try {
    return ParseBudgetSumsJson(detail[kSums].dump());
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace sordino
