// A page for people who look at runs in a browser: one HTML file with everything in it.
//
// The page holds its data as JSON, and scripts that draw it. It can load nothing: its content
// security policy admits no source but the hashes of its own script and style. Names and texts from
// files are put into the page as text, never as markup.
#ifndef SORDINO_REPORT_PAGE_H_
#define SORDINO_REPORT_PAGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sordino/base/quantity.h"
#include "sordino/report/report_document.h"
#include "sordino/report/report_experiment.h"
#include "sordino/report/report_run.h"

namespace sordino {

// One run in a ledger.
struct ReportCharge {
  std::string time;  // "2026-01-31 12:00 UTC"
  std::string who;
  std::string what;
  std::string event;
  double epsilon = 0;  // of it alone
  std::uint64_t releases = 0;
  std::uint64_t returned = 0;
  bool counts_whole = false;
  bool is_private = true;
};

// What `sordino ledger show` says.
struct ReportLedger {
  std::string name;
  std::string budget;  // in words
  double epsilon = 0;  // of the budget; infinite: no limit
  double delta = 0;
  double used = 0;  // share
  std::string left;
  Interval composed;
  std::vector<ReportCharge> runs;
  struct Point {
    std::int64_t time = 0;  // milliseconds since 1970
    std::string run;
    double used = 0;
    std::optional<double> epsilon;
  };
  std::vector<Point> points;
};

struct ReportContent {
  std::string version;  // of the program
  std::vector<ReportRun> runs;
  std::vector<ReportExperiment> experiments;
  std::vector<ReportLedger> ledgers;
  std::vector<ReportMembership> memberships;
  std::vector<ReportRecord> records;
  bool is_watched = false;  // asks its own address for a newer page every few seconds
};

// The data of the page, as one JSON object: what `sordino report --json` prints.
std::string ReportJson(const ReportContent& content);

std::string ReportPage(const ReportContent& content);

}  // namespace sordino

#endif  // SORDINO_REPORT_PAGE_H_
