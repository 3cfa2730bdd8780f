#include "sordino/report/report_coefficients.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "sordino/base/error.h"
#include "sordino/report/internal/report_files.h"
#include "sordino/tables/csv_reader.h"

namespace sordino {
namespace {

constexpr std::uintmax_t kMaxCoefficientFile = 64U << 20U;
constexpr std::array<std::string_view, 6> kCoefficientColumns = {"feature", "class", "coefficient",
                                                                 "noise",   "lower", "upper"};

std::optional<double> FiniteNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::vector<ReportCoefficient> ReadReportCoefficients(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "coefficients.csv";
  const std::optional<std::string> text = internal::ReadReportFile(file, kMaxCoefficientFile);
  std::vector<ReportCoefficient> list;
  if (!text) return list;
  CsvReader table(FromText(*text), ',', file.string());
  bool fits = table.Next() && std::equal(table.fields().begin(), table.fields().end(),
                                         kCoefficientColumns.begin(), kCoefficientColumns.end());
  while (fits && list.size() < kMaxReportCoefficients && table.Next()) {
    const auto& fields = table.fields();
    fits = table.broken().empty() && fields.size() == kCoefficientColumns.size();
    const std::optional<double> value = fits ? FiniteNumber(fields[2]) : std::nullopt;
    fits = value.has_value();
    if (!fits) break;
    list.push_back({.feature = internal::ShortText(std::string(fields[0])),
                    .score = internal::ShortText(std::string(fields[1])),
                    .value = *value,
                    .deviation = FiniteNumber(fields[3]),
                    .lower = FiniteNumber(fields[4]),
                    .upper = FiniteNumber(fields[5])});
  }
  if (!fits) {
    throw Error(fmt::format(
        "the file '{}' cannot be shown: it is not a table of coefficients of 'sordino fit'.",
        file.string()));
  }
  return list;
}

}  // namespace sordino
