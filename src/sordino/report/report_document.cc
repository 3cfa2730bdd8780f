#include "sordino/report/report_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "sordino/base/error.h"
#include "sordino/report/internal/record_table.h"
#include "sordino/report/internal/report_files.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using internal::NumberAt;
using internal::ObjectAt;
using internal::TextAt;
using internal::WholeAt;
using DocumentJson = nlohmann::ordered_json;

constexpr std::uintmax_t kMaxDocument = 4U << 20U;
constexpr std::size_t kMaxAttacks = 16;
constexpr std::size_t kMaxRates = 16;
constexpr std::size_t kMaxClassAreas = 200;

double ShareAt(const DocumentJson& json, const char* key) {
  return std::clamp(NumberAt(json, key).value_or(0), 0.0, 1.0);
}

ReportEstimate EstimateOf(const DocumentJson& json) {
  return {ShareAt(json, "value"), ShareAt(json, "lower"), ShareAt(json, "upper")};
}

// Keys are false positive rates, such as "0.001".
std::optional<double> RateOf(const std::string& key) {
  double rate = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), rate);
  if (error != std::errc() || end != key.data() + key.size() || !(rate >= 0 && rate <= 1)) {
    return std::nullopt;
  }
  return rate;
}

ReportAttack AttackOf(const std::string& name, const DocumentJson& json) {
  ReportAttack attack;
  attack.name = internal::ShortText(name);
  attack.area = EstimateOf(ObjectAt(json, "auc"));
  for (const auto& [key, value] : ObjectAt(json, "tpr").items()) {
    const std::optional<double> rate = RateOf(key);
    if (rate && attack.rates.size() < kMaxRates) {
      attack.rates.emplace_back(*rate, EstimateOf(value));
    }
  }
  attack.curve = internal::CurveAt(json, "roc");
  return attack;
}

ReportMembership MembershipOf(const DocumentJson& json) {
  ReportMembership read;
  read.run = fs::path(TextAt(json, "run").value_or("")).lexically_normal().filename().string();
  read.members = WholeAt(json, "members").value_or(0);
  read.others = WholeAt(json, "others").value_or(0);
  read.shadows = WholeAt(json, "shadows").value_or(0);
  read.confidence = ShareAt(json, "confidence");
  read.best = TextAt(json, "best").value_or("");
  for (const auto& [name, attack] : ObjectAt(json, "attacks").items()) {
    if (read.attacks.size() < kMaxAttacks) read.attacks.push_back(AttackOf(name, attack));
  }
  for (const auto& [key, value] : ObjectAt(json, "limit").items()) {
    const std::optional<double> rate = RateOf(key);
    if (rate && value.is_number() && read.limits.size() < kMaxRates) {
      read.limits.emplace_back(*rate, std::clamp(value.get<double>(), 0.0, 1.0));
    }
  }
  read.limit_curve = internal::CurveAt(json, "limit_roc");
  for (const auto& [name, area] : ObjectAt(json, "classes").items()) {
    if (area.is_number() && read.classes.size() < kMaxClassAreas) {
      read.classes.emplace_back(internal::ShortText(name),
                                std::clamp(area.get<double>(), 0.0, 1.0));
    }
  }
  return read;
}

}  // namespace

bool IsReportDocument(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  char first = '\0';
  return in >> first && first == '{';
}

ReportDocument ReadReportDocument(const fs::path& file) {
  const DocumentJson json =
      internal::ReadReportObject(file, kMaxDocument).value_or(DocumentJson::object());
  const std::string name = internal::ShortText(file.filename().string());
  if (!ObjectAt(json, "attacks").empty()) {
    ReportMembership membership = MembershipOf(json);
    membership.name = name;
    return membership;
  }
  if (!ObjectAt(json, "release").empty() && !ObjectAt(json, "privacy").empty()) {
    return ReportRecord{
        .name = name,
        .is_private = internal::FlagAt(ObjectAt(json, "privacy"), "private").value_or(false),
        .fields = internal::RecordTable(json)};
  }
  throw Error(fmt::format(
      "the file '{}' holds neither an attack ('sordino audit membership --json') nor the record of "
      "a release ('sordino release --record').",
      file.string()));
}

}  // namespace sordino
