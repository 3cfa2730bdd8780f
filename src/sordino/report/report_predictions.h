// What a model said about the public test set of its run: predictions.json.
#ifndef SORDINO_REPORT_REPORT_PREDICTIONS_H_
#define SORDINO_REPORT_REPORT_PREDICTIONS_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sordino/report/class_quality.h"

namespace sordino {

// Grey or red, green, blue values from 0 to 255, row by row, in base64.
struct ReportImage {
  std::int64_t width = 0;
  std::int64_t height = 0;
  std::int64_t channels = 0;  // 1 or 3
  std::string pixels;
};
inline constexpr std::int64_t kMaxImageSide = 64;

struct ReportExample {
  std::int64_t record = 0;  // its place in the test set, from 1
  std::int64_t truth = 0;
  // The most likely classes and their probabilities, the first of them predicted.
  std::vector<std::pair<std::int64_t, double>> predictions;
  std::optional<ReportImage> image;
};

struct ReportPredictions {
  std::vector<std::string> classes;
  std::vector<std::vector<std::int64_t>> confusion;    // true by predicted class
  std::vector<ReportExample> examples;                 // empty where records may not be shown
  std::optional<ClassQuality> quality = std::nullopt;  // of the probabilities
};
inline constexpr std::int64_t kMaxConfusionClasses = 50;

// Absent where the folder has no such file. Throws Error where the file is not what its name says.
std::optional<ReportPredictions> ReadReportPredictions(const std::filesystem::path& folder);

// The file. Probabilities are rounded to six digits.
std::string PredictionsJson(const ReportPredictions& predictions);

std::string Base64(const std::string& bytes);

}  // namespace sordino

#endif  // SORDINO_REPORT_REPORT_PREDICTIONS_H_
