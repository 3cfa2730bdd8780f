// What `sordino ledger show` says of a ledger: the verdict, what all runs cost together, what is
// left, and who spent what when.
#ifndef SORDINO_CLI_LEDGER_REPORT_H_
#define SORDINO_CLI_LEDGER_REPORT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sordino/accounting/event.h"
#include "sordino/base/quantity.h"
#include "sordino/ledger/ledger.h"
#include "sordino/ledger/ledger_text.h"  // IWYU pragma: export
#include "sordino/report/ledger_picture.h"

namespace sordino {

struct LedgerRun {
  std::string id;
  std::int64_t time = 0;  // milliseconds since 1970, UTC
  RunDetail detail;
  std::string plan;
  Event charged = Event::None();  // and not returned
  Event counted = Event::None();  // what it counts as: the plan, where it counts whole
  double failure = 0;             // of what is counted
  std::int64_t charges = 0;
  std::uint64_t returned = 0;  // releases that were charged and handed back
  Interval epsilon;            // of what this run alone counts as, at the budget's delta
};

// All releases of one kind of mechanism.
struct LedgerKind {
  std::string name;                      // "gaussian", "poisson", ...
  std::uint64_t releases = 0;            // charged and not returned
  std::uint64_t different = 0;           // of them
  std::optional<Interval> epsilon = {};  // of this kind alone; none: it would take too long
};

struct LedgerReport {
  std::string file;
  std::string id;
  Budget budget;
  // Exact if all runs had been fixed in advance; none: it would take too long.
  std::optional<Interval> composed;
  // The rule of ledger/budget_filter.h that has used the least: "pure", "renyi", "gaussian",
  // "whole"; empty where nothing was charged or nothing is limited.
  std::string rule;
  double order = 0;  // 0: none is fixed
  double used = 0;
  double left = 0;       // BudgetFilter::LeftEpsilon
  double left_pure = 0;  // BudgetFilter::LeftPureEpsilon
  std::string left_text;
  std::string whole_run;
  Entry head;
  std::uint64_t all_runs = 0;
  std::uint64_t seeded_runs = 0;  // those that are not private
  std::uint64_t all_charges = 0;
  std::uint64_t all_returns = 0;
  std::uint64_t all_notes = 0;
  // Of a long ledger, only the last of these, and the kinds of its releases instead.
  bool is_summary = false;
  std::vector<LedgerRun> runs;
  std::vector<Entry> moves;  // charges and returns; none in a summary
  std::vector<Entry> notes;
  std::vector<LedgerKind> kinds;
  std::vector<LedgerPoint> points;  // the used part charge by charge; of a long ledger, some

  double ComposedUpper() const;  // or what the filter guarantees
};

struct LedgerReportOptions {
  bool all = false;            // every run and charge, however many there are
  bool exact = false;          // the composed epsilon, however long it takes
  std::size_t last_runs = 20;  // of a summary
  bool points = false;         // they take time
};

// Ledgers up to kLongLedger entries are shown whole.
LedgerReport MakeLedgerReport(Ledger& ledger, const LedgerReportOptions& options = {});

nlohmann::ordered_json BudgetReportJson(const Budget& budget);
nlohmann::ordered_json LedgerReportJson(const LedgerReport& report);
std::string LedgerReportText(const LedgerReport& report);
// The used part charge by charge.
std::string LedgerReportSvg(const LedgerReport& report);

// One line, whatever is in it (shown_text.h): what others typed must not control a terminal.
std::string OneLine(const std::string& text);

}  // namespace sordino

#endif  // SORDINO_CLI_LEDGER_REPORT_H_
