// What `sordino report` was given, read into what a page shows: folders of runs and experiments,
// ledgers, and files of attacks and records.
#ifndef SORDINO_CLI_REPORT_SOURCES_H_
#define SORDINO_CLI_REPORT_SOURCES_H_

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sordino/report/page.h"

namespace sordino {

inline constexpr std::size_t kMaxReportSources = 64;

class ReportSources {
 public:
  // Throws Error where a name is none of these, or two are the same.
  explicit ReportSources(const std::vector<std::string>& names);

  // Reads all of them. A guarantee takes up to seconds and is kept for the next time.
  ReportContent Read();

  // Files that are read, which nothing may overwrite.
  std::vector<std::filesystem::path> Inputs() const;

 private:
  void AddGuarantee(ReportRun& run);

  std::vector<std::filesystem::path> runs_;
  std::vector<std::filesystem::path> experiments_;
  std::vector<std::filesystem::path> ledgers_;
  std::vector<std::filesystem::path> documents_;
  std::map<std::string, Guarantee> known_;
};

}  // namespace sordino

#endif  // SORDINO_CLI_REPORT_SOURCES_H_
