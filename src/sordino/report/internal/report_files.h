// Files that a report reads: of a bounded size, regular, and JSON that may hold anything.
#ifndef SORDINO_REPORT_INTERNAL_REPORT_FILES_H_
#define SORDINO_REPORT_INTERNAL_REPORT_FILES_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sordino::internal {

// The whole file; absent where there is none. Throws Error where it is larger, not a regular file,
// or cannot be read.
std::optional<std::string> ReadReportFile(const std::filesystem::path& file, std::uintmax_t most);

// The object in the file; absent where there is none. Throws Error where it holds something else.
std::optional<nlohmann::ordered_json> ReadReportObject(const std::filesystem::path& file,
                                                       std::uintmax_t most);

// Finite numbers, whole numbers, short texts and booleans of an object; absent where the key is
// missing or holds something else. Texts are cut to `kMaxReportText` bytes.
inline constexpr std::size_t kMaxReportText = 1000;
std::optional<double> NumberAt(const nlohmann::ordered_json& object, const char* key);
std::optional<std::int64_t> WholeAt(const nlohmann::ordered_json& object, const char* key);
std::optional<std::string> TextAt(const nlohmann::ordered_json& object, const char* key);
std::optional<bool> FlagAt(const nlohmann::ordered_json& object, const char* key);

// Pairs of false and true positive rates; empty where the list is missing, too long or holds
// something else.
std::vector<std::pair<double, double>> CurveAt(const nlohmann::ordered_json& object,
                                               const char* key);

// The first bytes of a text, cut before a character of UTF-8 that does not fit.
std::string ShortText(const std::string& text, std::size_t most = kMaxReportText);

}  // namespace sordino::internal

#endif  // SORDINO_REPORT_INTERNAL_REPORT_FILES_H_
