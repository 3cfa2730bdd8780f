// What a page, a table or an event file may show of the folder of a run.
//
// Folders hold public values only, but a reader of files cannot know who wrote them. So nothing is
// copied as it lies there: every value that is shown has its name in report_run.cc, and whatever
// else a file holds is left out (the test ReportRun.ShowsNothingThatHasNoName plants values in
// every file of a folder and looks for them on the page).
#ifndef SORDINO_REPORT_REPORT_RUN_H_
#define SORDINO_REPORT_REPORT_RUN_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sordino/report/guarantee.h"
#include "sordino/report/report_coefficients.h"
#include "sordino/report/report_predictions.h"

namespace sordino {

// One evaluation on the public test set: a line of metrics.jsonl.
struct ReportPoint {
  std::int64_t step = 0;
  std::optional<double> epsilon;  // upper bound
  std::optional<double> test_accuracy;
  std::optional<double> test_loss;
  std::optional<double> mean_squared_error;   // of predicted numbers
  std::optional<double> mean_absolute_error;  // likewise
  std::optional<double> seconds;              // since training began
};

// A value of a ReportPoint and its name in files and tables.
struct ReportMeasure {
  std::string_view name;
  std::optional<double> ReportPoint::*field;
};
std::span<const ReportMeasure> ReportMeasures();

struct ReportAttacker {
  std::string name;
  std::vector<std::pair<std::string, double>> epsilon_lower;  // by method
  std::int64_t guesses = 0;
  std::int64_t correct = 0;
  std::vector<std::pair<double, double>> curve;  // false and true positive rates; may be empty
};

struct ReportAudit {
  std::int64_t canaries = 0;
  double delta = 0;
  double confidence = 0;
  double epsilon_claimed = 0;
  bool contradiction = false;
  std::vector<ReportAttacker> attackers;
};

enum class ReportKind : std::uint8_t { kTraining, kFit };

struct ReportRun {
  std::string name;  // of the folder
  ReportKind kind = ReportKind::kTraining;
  bool is_private = true;
  bool without_privacy =
      false;               // neither clipped nor noised: what private runs are measured against
  bool has_ended = false;  // a model is there
  std::string data;
  std::string model;
  std::optional<double> target_epsilon;
  std::optional<double> delta;
  std::vector<std::pair<std::string, std::string>> settings;  // "privacy.clip" and its value
  std::vector<ReportPoint> points;
  std::string statement;                                    // statement.txt
  std::string event;                                        // event.txt, without its warning
  std::vector<std::pair<std::string, std::string>> record;  // of record.json, for people
  // SHA-256 of weights, statement, configuration, scripts and vocabularies, by the name of the
  // file.
  std::vector<std::pair<std::string, std::string>> hashes;
  double failure = 0;  // probability of what is not in the event (accounting/failures.h)
  std::optional<ReportAudit> audit;
  std::optional<ReportPredictions> predictions;
  std::vector<ReportCoefficient> coefficients;  // of a private fit
  std::optional<Guarantee> guarantee;           // of the event; filled by whoever wants it
};

// Whether the folder is one of a run: it has a config.toml.
bool IsRunFolderToReport(const std::filesystem::path& folder);

// Without its guarantee. Throws Error where a file is too large, cannot be read or is not what its
// name says. Files that are not there yet are left out; a line of metrics that is not whole too.
ReportRun ReadReportRun(const std::filesystem::path& folder);

// Settings of config.toml, "section.key", that are shown; and those that are left out on purpose.
std::span<const std::string_view> ShownSettings();
std::span<const std::string_view> HiddenSettings();

}  // namespace sordino

#endif  // SORDINO_REPORT_REPORT_RUN_H_
