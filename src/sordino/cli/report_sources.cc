#include "sordino/cli/report_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <variant>

#include "sordino/base/error.h"
#include "sordino/base/output_file.h"
#include "sordino/cli/ledger_report.h"
#include "sordino/ledger/ledger.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxEventShown = 400;
constexpr std::size_t kMaxRunsShown = 100;  // of a long ledger

constexpr const char* kInputFiles[] = {
    "config.toml",      "metrics.jsonl", "event.txt",         "statement.txt", "audit.json",
    "record.json",      "ledger.db",     "model.safetensors", "results.json",  "results.csv",
    "predictions.json", "SHA256SUMS",    "coefficients.csv"};

ReportLedger ReadReportLedger(const fs::path& file) {
  Ledger ledger = Ledger::Open(file, {.read_only = true});
  LedgerReport report = MakeLedgerReport(ledger, {.last_runs = kMaxRunsShown, .points = true});
  ReportLedger shown;
  shown.name = OneLine(file.filename().string());
  shown.budget = BudgetText(report.budget);
  shown.epsilon = report.budget.epsilon.value();
  shown.delta = report.budget.delta.value();
  shown.used = report.used;
  shown.left = report.left_text;
  shown.composed = report.composed.value_or(Interval{0, report.ComposedUpper()});
  if (report.is_summary) {
    shown.name += fmt::format(" (the last {} of {} runs)", report.runs.size(), report.all_runs);
  }
  for (const LedgerRun& run : report.runs) {
    shown.runs.push_back({.time = TimeText(run.time),
                          .who = OneLine(run.detail.who),
                          .what = OneLine(run.detail.what),
                          .event = run.charged.ToString().substr(0, kMaxEventShown),
                          .epsilon = run.epsilon.upper,
                          .releases = run.charged.TotalCount(),
                          .returned = run.returned,
                          .counts_whole = run.detail.terms.whole,
                          .is_private = run.detail.is_private});
  }
  for (LedgerPoint& point : report.points) {
    shown.points.push_back({point.time, std::move(point.run), point.used, point.epsilon});
  }
  return shown;
}

}  // namespace

ReportSources::ReportSources(const std::vector<std::string>& names) {
  if (names.size() > kMaxReportSources) {
    throw Error(fmt::format("{} folders and ledgers were given; a page shows at most {}.",
                            names.size(), kMaxReportSources));
  }
  std::vector<fs::path> seen;
  for (const std::string& name : names) {
    const fs::path path = name;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
      throw Error(fmt::format(
          "'{}' {}; give the folder of a run or of an experiment, or a ledger.", name,
          error && status.type() != fs::file_type::not_found ? "cannot be read: " + error.message()
                                                             : "does not exist"));
    }
    const auto is_same = [&](const fs::path& other) { return SameFile(path, other); };
    if (std::any_of(seen.begin(), seen.end(), is_same)) {
      throw Error(fmt::format("'{}' was given twice; name each run once.", name));
    }
    seen.push_back(path);
    if (!fs::is_directory(status)) {
      (IsReportDocument(path) ? documents_ : ledgers_).push_back(path);
    } else if (IsExperimentFolder(path)) {
      experiments_.push_back(path);
    } else if (IsRunFolderToReport(path)) {
      runs_.push_back(path);
    } else {
      throw Error(fmt::format(
          "the folder '{}' holds neither a run (config.toml) nor an experiment (results.json); "
          "give the folder of a run of 'sordino train' or 'sordino fit'.",
          name));
    }
  }
}

void ReportSources::AddGuarantee(ReportRun& run) {
  if (run.event.empty() || !run.delta) return;
  const std::string key = fmt::format("{} {} {}", run.delta.value(), run.failure, run.event);
  auto found = known_.find(key);
  if (found == known_.end()) {
    found =
        known_.emplace(key, GuaranteeOf(Event::Parse(run.event), *run.delta, run.failure)).first;
  }
  run.guarantee = found->second;
}

ReportContent ReportSources::Read() {
  ReportContent content;
  for (const fs::path& folder : runs_) {
    ReportRun run = ReadReportRun(folder);
    AddGuarantee(run);
    content.runs.push_back(std::move(run));
  }
  for (const fs::path& folder : experiments_) {
    content.experiments.push_back(ReadReportExperiment(folder));
  }
  for (const fs::path& file : ledgers_) content.ledgers.push_back(ReadReportLedger(file));
  for (const fs::path& file : documents_) {
    ReportDocument document = ReadReportDocument(file);
    if (auto* membership = std::get_if<ReportMembership>(&document)) {
      content.memberships.push_back(std::move(*membership));
    } else {
      content.records.push_back(std::get<ReportRecord>(std::move(document)));
    }
  }
  return content;
}

std::vector<fs::path> ReportSources::Inputs() const {
  std::vector<fs::path> inputs = ledgers_;
  inputs.insert(inputs.end(), documents_.begin(), documents_.end());
  for (const auto* folders : {&runs_, &experiments_}) {
    for (const fs::path& folder : *folders) {
      for (const char* name : kInputFiles) inputs.push_back(folder / name);
    }
  }
  return inputs;
}

}  // namespace sordino
