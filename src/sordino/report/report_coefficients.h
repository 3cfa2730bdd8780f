// The coefficients that a private fit released: coefficients.csv of its folder.
#ifndef SORDINO_REPORT_REPORT_COEFFICIENTS_H_
#define SORDINO_REPORT_REPORT_COEFFICIENTS_H_

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sordino {

struct ReportCoefficient {
  std::string feature;
  std::string score;  // the class whose score it is part of; may be empty
  double value = 0;
  std::optional<double> deviation;  // of the noise on it
  std::optional<double> lower;      // of an interval
  std::optional<double> upper;
};
inline constexpr std::size_t kMaxReportCoefficients = 1000;  // the first of them

// Empty where the folder has no such file. Throws Error where the file is not what its name says.
std::vector<ReportCoefficient> ReadReportCoefficients(const std::filesystem::path& folder);

}  // namespace sordino

#endif  // SORDINO_REPORT_REPORT_COEFFICIENTS_H_
