// Fields of a deployment record that are shown to people.
#ifndef SORDINO_REPORT_INTERNAL_RECORD_TABLE_H_
#define SORDINO_REPORT_INTERNAL_RECORD_TABLE_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace sordino::internal {

// Names and values of the fields that are known; whatever else the object holds is left out.
std::vector<std::pair<std::string, std::string>> RecordTable(const nlohmann::ordered_json& record);

// The object in an object; an empty one where there is none.
const nlohmann::ordered_json& ObjectAt(const nlohmann::ordered_json& object, const char* key);

}  // namespace sordino::internal

#endif  // SORDINO_REPORT_INTERNAL_RECORD_TABLE_H_
