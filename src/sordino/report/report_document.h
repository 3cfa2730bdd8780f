// A JSON file that is shown by itself: an attack on a model (`sordino audit membership --json`), or
// the record of a release (`sordino release --record`).
//
// As of a run, every value that is shown has its name in the code; the rest is left out. An attack
// is computed from records without noise: whoever gives its file to a page puts it there, and the
// page says what it is.
#ifndef SORDINO_REPORT_REPORT_DOCUMENT_H_
#define SORDINO_REPORT_REPORT_DOCUMENT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sordino {

struct ReportEstimate {
  double value = 0;
  double lower = 0;
  double upper = 0;
};

struct ReportAttack {
  std::string name;
  ReportEstimate area;
  std::vector<std::pair<double, ReportEstimate>> rates;  // true positive at false positive rates
  std::vector<std::pair<double, double>> curve;          // false and true positive rates
};

struct ReportMembership {
  std::string name;  // of the file
  std::string run;   // of the folder of the run
  std::int64_t members = 0;
  std::int64_t others = 0;
  std::int64_t shadows = 0;
  double confidence = 0;
  std::string best;
  std::vector<ReportAttack> attacks;
  std::vector<std::pair<double, double>> limits;        // of the claim, at the same rates; or empty
  std::vector<std::pair<double, double>> limit_curve;   // likewise
  std::vector<std::pair<std::string, double>> classes;  // areas of the best attack
};

// Fields of the record and their values.
struct ReportRecord {
  std::string name;  // of the file
  bool is_private = true;
  std::vector<std::pair<std::string, std::string>> fields;
};

using ReportDocument = std::variant<ReportMembership, ReportRecord>;

// Whether the file begins as a JSON object does.
bool IsReportDocument(const std::filesystem::path& file);

// Throws Error where it is neither of them, too large, or cannot be read.
ReportDocument ReadReportDocument(const std::filesystem::path& file);

}  // namespace sordino

#endif  // SORDINO_REPORT_REPORT_DOCUMENT_H_
