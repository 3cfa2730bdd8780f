#include "sordino/report/internal/report_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/shallow_json.h"

namespace sordino::internal {
namespace {

namespace fs = std::filesystem;
using ReportJson = nlohmann::ordered_json;

constexpr std::size_t kMaxCurve = 4000;

[[noreturn]] void FailToReadFile(const fs::path& file, const std::string& why) {
  throw Error(fmt::format("the file '{}' cannot be shown: {}.", file.string(), why));
}

}  // namespace

std::optional<std::string> ReadReportFile(const fs::path& file, std::uintmax_t most) {
  std::error_code error;
  const fs::file_status status = fs::status(file, error);
  if (status.type() == fs::file_type::not_found) return std::nullopt;
  if (error) FailToReadFile(file, error.message());
  if (status.type() != fs::file_type::regular) FailToReadFile(file, "it is not a regular file");
  if (fs::file_size(file, error) > most) {
    FailToReadFile(file, fmt::format("it is larger than {} kB, which no run writes", most / 1000));
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) FailToReadFile(file, std::strerror(errno));
  std::string text;
  // The file may grow while it is read.
  char block[1 << 16];
  while (text.size() <= most && (in.read(block, sizeof block), in.gcount() > 0)) {
    text.append(block, static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad()) FailToReadFile(file, "reading it failed");
  text.resize(std::min<std::size_t>(text.size(), most));
  return text;
}

std::optional<ReportJson> ReadReportObject(const fs::path& file, std::uintmax_t most) {
  const std::optional<std::string> text = ReadReportFile(file, most);
  if (!text) return std::nullopt;
  ReportJson json = ReportJson::parse(*text, kShallowJson, /*allow_exceptions=*/false);
  if (!json.is_object()) FailToReadFile(file, "it does not hold one whole JSON object");
  return json;
}

std::optional<double> NumberAt(const ReportJson& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto value = object.find(key);
  if (value == object.end() || !value->is_number()) return std::nullopt;
  const auto number = value->get<double>();
  return std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
}

std::optional<std::int64_t> WholeAt(const ReportJson& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto value = object.find(key);
  if (value == object.end() || !value->is_number_integer()) return std::nullopt;
  return value->get<std::int64_t>();
}

std::optional<std::string> TextAt(const ReportJson& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto value = object.find(key);
  if (value == object.end() || !value->is_string()) return std::nullopt;
  return ShortText(value->get<std::string>());
}

std::optional<bool> FlagAt(const ReportJson& object, const char* key) {
  if (!object.is_object()) return std::nullopt;
  const auto value = object.find(key);
  if (value == object.end() || !value->is_boolean()) return std::nullopt;
  return value->get<bool>();
}

std::vector<std::pair<double, double>> CurveAt(const ReportJson& object, const char* key) {
  std::vector<std::pair<double, double>> curve;
  if (!object.is_object()) return curve;
  const auto points = object.find(key);
  if (points == object.end() || !points->is_array() || points->size() > kMaxCurve) return curve;
  for (const ReportJson& point : *points) {
    if (!point.is_array() || point.size() != 2 || !point[0].is_number() || !point[1].is_number()) {
      return {};
    }
    curve.emplace_back(std::clamp(point[0].get<double>(), 0.0, 1.0),
                       std::clamp(point[1].get<double>(), 0.0, 1.0));
  }
  return curve;
}

std::string ShortText(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

}  // namespace sordino::internal
