#include "sordino/cli/ledger_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sordino/accounting/accountant.h"
#include "sordino/accounting/failures.h"
#include "sordino/base/shown_text.h"
#include "sordino/cli/interval_text.h"
#include "sordino/cli/report_json.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestWords = 56;

std::string IsoTime(std::int64_t milliseconds) {
  std::string text = TimeText(milliseconds);
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos || !text.ends_with(" UTC")) return text;
  text[blank] = 'T';
  text.resize(text.size() - 4);
  return text + "Z";
}

// For a column. Nothing is cut inside a character of UTF-8.
std::string Shortened(const std::string& text) {
  if (text.size() <= kLongestWords) return text;
  std::size_t end = kLongestWords - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

// The event for a column: the adjacency is the ledger's, and a long schedule is cut.
std::string ShortEvent(const Event& event) {
  if (event.IsNone()) return "nothing";
  std::string text = event.ToString();
  text.erase(0, text.find(": ") + 2);
  return Shortened(text);
}

std::string Bar(double share) {
  constexpr double kWidth = 40;
  const double filled = std::clamp(std::isfinite(share) ? share : 1.0, 0.0, 1.0) * kWidth;
  const auto marks = static_cast<std::size_t>(std::ceil(filled - 1e-9));
  return fmt::format("[{:-<{}}]", std::string(marks, '#'), static_cast<int>(kWidth));
}

std::string VerdictText(const LedgerReport& report) {
  if (!IsLimited(report.budget)) return "nothing is limited: charges are recorded, never refused";
  std::string by = "nothing was charged";
  if (report.rule == "whole") {
    by = "the first run counts whole: its plan was fixed in advance and takes the budget";
  } else if (report.rule == "pure") {
    by = "by the sum of pure epsilons";
  } else if (report.rule == "gaussian") {
    by = "by the Gaussian filter";
  } else if (report.rule == "renyi") {
    by = fmt::format("by the Renyi filter at order {:.4g}", report.order);
  }
  return fmt::format("{} {}, {}", Bar(report.used), UsedText(report.used), by);
}

std::string RunsTable(const LedgerReport& report) {
  const auto any_returned = std::any_of(report.runs.begin(), report.runs.end(),
                                        [](const LedgerRun& run) { return run.returned > 0; });
  std::vector<std::vector<std::string>> rows = {{"when", "releases", "charges"}};
  if (any_returned) rows[0].emplace_back("returned");
  rows[0].insert(rows[0].end(), {"epsilon alone", "who", "what", "event", "note"});
  for (const LedgerRun& run : report.runs) {
    std::vector<std::string> row = {TimeText(run.time), fmt::format("{}", run.charged.TotalCount()),
                                    fmt::format("{}", run.charges)};
    if (any_returned) row.push_back(fmt::format("{}", run.returned));
    std::string note = run.detail.terms.whole ? "counts whole" : "";
    if (!run.detail.is_private) note += note.empty() ? "NOT PRIVATE" : ", NOT PRIVATE";
    row.insert(row.end(), {UpperText(run.epsilon.upper), OneLine(run.detail.who),
                           Shortened(OneLine(run.detail.what)), ShortEvent(run.charged), note});
    rows.push_back(std::move(row));
  }
  return AlignedTable(rows, any_returned ? 5 : 4);
}

std::string PrivacyWarning(const LedgerReport& report) {
  if (report.seeded_runs == 0) return "";
  return fmt::format("NOT PRIVATE: the noise of {} of {} runs came from a typed seed.",
                     report.seeded_runs, report.all_runs);
}

std::string ComposedText(const LedgerReport& report) {
  if (report.composed) {
    return fmt::format(
        "epsilon [{}, {}] at delta {:g}: exact if all runs had been fixed in advance",
        LowerText(report.composed->lower), UpperText(report.composed->upper),
        report.budget.delta.value());
  }
  return fmt::format(
      "at most epsilon {} at delta {:g}, by the filter; the ledger has too many "
      "different releases to compose them in a second, --exact does",
      UpperText(report.ComposedUpper()), report.budget.delta.value());
}

std::string SummaryText(const LedgerReport& report) {
  std::vector<std::vector<std::string>> rows = {{"kind", "releases", "different", "epsilon alone"}};
  for (const LedgerKind& kind : report.kinds) {
    rows.push_back({kind.name, fmt::format("{}", kind.releases), fmt::format("{}", kind.different),
                    kind.epsilon ? UpperText(kind.epsilon->upper) : "not computed"});
  }
  return '\n' + AlignedTable(rows, 4) +
         fmt::format("\nthe last {} of {} runs ({} charges, {} returns); --all shows every one\n",
                     report.runs.size(), report.all_runs, report.all_charges, report.all_returns);
}

Json KindJson(const LedgerKind& kind) {
  return {{"kind", kind.name},
          {"releases", kind.releases},
          {"different", kind.different},
          {"epsilon", kind.epsilon ? IntervalJson(*kind.epsilon) : Json(nullptr)}};
}

Json EntryJson(const Entry& entry, const std::map<std::string, const LedgerRun*>& runs) {
  const LedgerRun& run = *runs.at(entry.run);
  return {{"number", entry.number},   {"time", IsoTime(entry.time)},
          {"run", entry.run},         {"what", run.detail.what},
          {"who", run.detail.who},    {"event", entry.event},
          {"failure", entry.failure}, {"words", ParseTextJson(entry.detail)}};
}

Json RunReportJson(const LedgerRun& run) {
  return {{"id", run.id},
          {"time", IsoTime(run.time)},
          {"who", run.detail.who},
          {"what", run.detail.what},
          {"plan", run.plan},
          {"event", run.charged.ToString()},
          {"counted", run.counted.ToString()},
          {"failure", run.failure},
          {"releases", run.charged.TotalCount()},
          {"charges", run.charges},
          {"returned", run.returned},
          {"epsilon", IntervalJson(run.epsilon)},
          {"whole", run.detail.terms.whole},
          {"private", run.detail.is_private}};
}

}  // namespace

std::string OneLine(const std::string& text) { return ShownText(text); }

Json BudgetReportJson(const Budget& budget) {
  Json json = {{"epsilon", NumberJson(budget.epsilon.value())},
               {"delta", budget.delta.value()},
               {"adjacency", AdjacencyName(budget.adjacency)},
               {"unit", ProtectedUnitName(budget.unit)},
               {"filter", FilterName(budget.filter)}};
  if (budget.order) json["order"] = budget.order->value();
  if (!IsLimited(budget)) json["reason"] = "nothing is limited; charges are recorded only";
  return json;
}

Json LedgerReportJson(const LedgerReport& report) {
  Json json;
  json["budget"] = BudgetReportJson(report.budget);
  json["epsilon"] = IntervalJson(report.composed.value_or(Interval{0, report.ComposedUpper()}));
  json["verdict"] = {
      {"rule", report.rule.empty() ? Json(nullptr) : Json(report.rule)},
      {"order", report.order > 0 ? Json(report.order) : Json(nullptr)},
      {"used", NumberJson(report.used)},
      {"whole_run", report.whole_run.empty() ? Json(nullptr) : Json(report.whole_run)}};
  json["left"] = {
      {"gaussian", {{"epsilon", NumberJson(report.left)}, {"delta", report.budget.delta.value()}}},
      {"pure", {{"epsilon", NumberJson(report.left_pure)}}}};
  json["private"] = report.seeded_runs == 0;
  json["ledger"] = report.id;
  json["head"] = {{"number", report.head.number}, {"hash", report.head.hash}};
  json["runs"] = Json::array();
  std::map<std::string, const LedgerRun*> runs;
  for (const LedgerRun& run : report.runs) {
    json["runs"].push_back(RunReportJson(run));
    runs[run.id] = &run;
  }
  json["notes"] = Json::array();
  for (const Entry& entry : report.notes) {
    json["notes"].push_back({{"number", entry.number},
                             {"time", IsoTime(entry.time)},
                             {"words", ParseTextJson(entry.detail)}});
  }
  if (report.is_summary) {
    json["summary"] = {{"runs", report.all_runs},
                       {"charges", report.all_charges},
                       {"returns", report.all_returns},
                       {"notes", report.all_notes},
                       {"composed", report.composed.has_value()},
                       {"kinds", Json::array()}};
    for (const LedgerKind& kind : report.kinds) json["summary"]["kinds"].push_back(KindJson(kind));
    return json;
  }
  json["charges"] = Json::array();
  json["returns"] = Json::array();
  for (const Entry& entry : report.moves) {
    json[entry.kind == EntryKind::kCharge ? "charges" : "returns"].push_back(
        EntryJson(entry, runs));
  }
  return json;
}

std::string LedgerReportText(const LedgerReport& report) {
  std::string text;
  if (const std::string warning = PrivacyWarning(report); !warning.empty()) text += warning + '\n';
  text += fmt::format("budget    {}\n", BudgetText(report.budget));
  text += fmt::format("used      {}\n", VerdictText(report));
  text += fmt::format("left      {}\n", report.left_text);
  text += fmt::format("composed  {}\n", ComposedText(report));
  text += fmt::format("head      entry {}, {}\n", report.head.number, report.head.hash);
  if (report.is_summary) text += SummaryText(report);
  if (!report.runs.empty()) text += '\n' + RunsTable(report);
  std::vector<std::vector<std::string>> notes;
  for (const Entry& entry : report.notes) {
    notes.push_back({TimeText(entry.time), OneLine(ParseTextJson(entry.detail))});
  }
  if (notes.empty()) return text;
  text += notes.size() < report.all_notes
              ? fmt::format("\nthe last {} of {} notes\n", notes.size(), report.all_notes)
              : "\nnotes\n";
  text += AlignedTable(notes, 1);
  return text;
}

std::string LedgerReportSvg(const LedgerReport& report) {
  const std::string title = report.file.substr(report.file.find_last_of('/') + 1);
  const Budget& budget = report.budget;
  const std::string limit = IsLimited(budget)
                                ? fmt::format("budget epsilon {:g}", budget.epsilon.value())
                                : std::string("no limit");
  return LedgerSvg(
      report.points,
      {.title = OneLine(title),
       .caption = fmt::format("{} at delta {:g}, {}, one {}; composed epsilon {}", limit,
                              budget.delta.value(), AdjacencyName(budget.adjacency),
                              ProtectedUnitName(budget.unit), UpperText(report.ComposedUpper())),
       .warning = PrivacyWarning(report),
       .epsilon = budget.epsilon.value()});
}

}  // namespace sordino
