#include "sordino/report/run_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "sordino/base/error.h"

namespace sordino {
namespace {

using CardJson = nlohmann::ordered_json;

constexpr int kCardSchema = 1;

// What the record of the run says under this name; null where it says nothing.
CardJson RecordValue(const CardJson& run, const char* name) {
  const CardJson& record = run["record"];
  const auto found =
      std::find_if(record.begin(), record.end(), [&](const auto& pair) { return pair[0] == name; });
  return found == record.end() ? CardJson(nullptr) : (*found)[1];
}

CardJson Unprotected(const CardJson& run) {
  CardJson list = CardJson::array();
  for (const CardJson& pair : run["record"]) {
    if (pair[0] == "not protected") list.push_back(pair[1]);
  }
  return list;
}

CardJson Fields(const CardJson& object, std::initializer_list<const char*> keys) {
  CardJson picked = CardJson::object();
  for (const char* key : keys) picked[key] = object[key];
  return picked;
}

// The last evaluation that has a value, for each value of the public test set.
CardJson TestResults(const CardJson& run) {
  CardJson results = CardJson::object();
  for (const CardJson& point : run["points"]) {
    for (const auto& [name, value] : point.items()) {
      if (name.starts_with("test_") && !value.is_null()) results[name] = value;
    }
  }
  if (!run["predictions"].is_null()) {
    results.update(Fields(run["predictions"], {"classes", "confusion"}));
    const auto quality = run["predictions"].find("quality");
    if (quality != run["predictions"].end()) {
      results.update(Fields(*quality, {"log_loss", "auroc", "calibration_error", "calibration"}));
    }
  }
  return results;
}

CardJson ModelCard(const CardJson& run) {
  CardJson card = Fields(run, {"name", "kind", "model", "data", "ended"});
  card["intended_use"] = RecordValue(run, "intended use");
  card["responsible"] = RecordValue(run, "curator");
  card["time"] = RecordValue(run, "time");
  card["public_test_set"] = TestResults(run);
  card["settings"] = CardJson::object();
  for (const CardJson& pair : run["settings"]) {
    card["settings"][pair[0].get<std::string>()] = pair[1];
  }
  card["sha256"] = CardJson::object();
  for (const CardJson& pair : run["hashes"]) card["sha256"][pair[0].get<std::string>()] = pair[1];
  return card;
}

CardJson DataProtection(const CardJson& data, const CardJson& run) {
  CardJson record = {{"controller", RecordValue(run, "curator")},
                     {"purpose", RecordValue(run, "intended use")},
                     {"data", run["data"]},
                     {"private", run["private"]},
                     {"protected_unit", RecordValue(run, "unit of privacy")},
                     {"rows_per_user", RecordValue(run, "rows of one user, at most")},
                     {"definition", RecordValue(run, "definition of privacy")},
                     {"trust_model", RecordValue(run, "trust model")},
                     {"adjacency", RecordValue(run, "adjacency")},
                     {"accounting", RecordValue(run, "accounting")},
                     {"failure", RecordValue(run, "probability of failures, paid out of delta")},
                     {"event", run["event"]}};
  // Null without privacy: nothing limits an attack.
  const CardJson& guarantee = run["guarantee"];
  record["at_most"] =
      guarantee.is_null()
          ? CardJson(nullptr)
          : Fields(guarantee, {"epsilon", "delta", "attack_accuracy", "recognised", "beliefs"});
  record["audit"] = run["audit"];
  if (!run["audit"].is_null()) {
    for (CardJson& attacker : record["audit"]["attackers"]) attacker.erase("curve");
  }
  record["not_protected"] = Unprotected(run);
  record["ledgers"] = CardJson::array();
  for (const CardJson& ledger : data["ledgers"]) {
    record["ledgers"].push_back(Fields(ledger, {"name", "budget", "used", "left"}));
  }
  record["statement"] = run["statement"];
  return record;
}

}  // namespace

std::string RunCard(const ReportContent& content) {
  if (content.runs.size() != 1) {
    throw Error(fmt::format("{} runs were given, and a card is that of one; give one run.",
                            content.runs.size()));
  }
  const CardJson data = CardJson::parse(ReportJson(content));
  const CardJson& run = data["runs"][0];
  return CardJson{{"card", kCardSchema},
                  {"made_by", {{"name", "sordino"}, {"version", data["version"]}}},
                  {"model_card", ModelCard(run)},
                  {"data_protection", DataProtection(data, run)}}
             .dump(2) +
         '\n';
}

}  // namespace sordino
