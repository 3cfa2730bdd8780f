#include "sordino/report/internal/record_table.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sordino/report/internal/report_files.h"

namespace sordino::internal {
namespace {

using RecordJson = nlohmann::ordered_json;

struct RecordField {
  const char* section;  // the object that it is in; empty: the record itself
  const char* key;
  std::string_view name;
};
constexpr std::array<RecordField, 25> kRecordFields = {{
    {"", "curator", "curator"},
    {"", "use", "intended use"},
    {"release", "kind", "kind of release"},
    {"release", "data", "data"},
    {"release", "what", "what is released"},
    {"release", "model", "model"},
    {"release", "method", "method"},
    {"release", "state", "state"},
    {"release", "steps", "steps"},
    {"release", "planned_steps", "planned steps"},
    {"release", "time", "time"},
    {"privacy", "definition", "definition of privacy"},
    {"privacy", "trust_model", "trust model"},
    {"privacy", "unit", "unit of privacy"},
    {"privacy", "rows_per_user", "rows of one user, at most"},
    {"privacy", "adjacency", "adjacency"},
    {"privacy", "epsilon", "epsilon"},
    {"privacy", "delta", "delta"},
    {"privacy", "counts_whole", "the whole plan counts"},
    {"privacy", "accounting", "accounting"},
    {"privacy", "failure", "probability of failures, paid out of delta"},
    {"implementation", "name", "implementation"},
    {"implementation", "version", "version"},
    {"hardware", "device", "device"},
    {"hardware", "processor", "processor"},
}};

std::string RecordText(const RecordJson& value) {
  if (value.is_string()) return ShortText(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.is_number() ? value.dump() : "";
}

}  // namespace

const RecordJson& ObjectAt(const RecordJson& object, const char* key) {
  static const RecordJson kNothing = RecordJson::object();
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found != object.end() && found->is_object() ? *found : kNothing;
}

std::vector<std::pair<std::string, std::string>> RecordTable(const RecordJson& record) {
  std::vector<std::pair<std::string, std::string>> table;
  for (const RecordField& field : kRecordFields) {
    const std::string_view section = field.section;
    const RecordJson& object = section.empty() ? record : ObjectAt(record, field.section);
    const auto value = object.find(field.key);
    const std::string text = value == object.end() ? "" : RecordText(*value);
    if (!text.empty()) table.emplace_back(field.name, text);
  }
  const auto exceptions = record.find("not_protected");
  if (exceptions == record.end() || !exceptions->is_array()) return table;
  for (const RecordJson& entry : *exceptions) {
    if (table.size() > 2 * kRecordFields.size()) break;
    if (entry.is_string()) table.emplace_back("not protected", RecordText(entry));
  }
  return table;
}

}  // namespace sordino::internal
