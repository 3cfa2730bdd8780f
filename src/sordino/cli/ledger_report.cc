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

// A composed epsilon takes a fraction of a second; so many make a picture.
constexpr std::size_t kMaxEpsilons = 60;
constexpr std::size_t kLongestWords = 56;

bool IsLimited(const Budget& budget) { return std::isfinite(budget.epsilon.value()); }

// The sum of pure epsilons over the budget.
double PureShare(const Event& total, const Budget& budget) {
  double pure = 0;
  for (const auto& [release, count] : total.Flatten()) {
    pure += static_cast<double>(count) * CertifiedEpsilon(release, -kInfinity).value.upper;
  }
  return pure / budget.epsilon.value();
}

std::string RuleOf(BudgetFilter& filter) {
  const Budget& budget = filter.budget();
  if (filter.whole_run()) return "whole";
  const Event total = filter.Total();
  if (total.kind() == Event::Kind::kNone || !IsLimited(budget)) return "";
  // UsedShare is the least of the two, up to the order in which the epsilons are added.
  if (PureShare(total, budget) <= filter.UsedShare() * (1 + 1e-9)) return "pure";
  return std::string(FilterName(budget.filter));
}

std::vector<LedgerRun> RunsOf(Ledger& ledger) {
  std::vector<LedgerRun> runs;
  std::map<std::string, std::size_t> places;
  for (const Entry& entry : ledger.entries()) {
    if (entry.kind == EntryKind::kRun) {
      places[entry.run] = runs.size();
      LedgerRun run;
      run.id = entry.run;
      run.time = entry.time;
      run.detail = ParseRunJson(entry.detail);
      run.plan = entry.event;
      run.charged = ledger.filter().TotalOf(entry.run);
      run.counted = ledger.filter().CountedOf(entry.run);
      runs.push_back(std::move(run));
    } else if (entry.kind == EntryKind::kCharge) {
      LedgerRun& run = runs[places.at(entry.run)];
      ++run.charges;
      run.failure += entry.failure;
    } else if (entry.kind == EntryKind::kReturn) {
      LedgerRun& run = runs[places.at(entry.run)];
      run.returned += Event::Parse(entry.event).TotalCount();
      run.failure = std::max(0.0, run.failure - entry.failure);
    }
  }
  // Runs are often repeated, and an epsilon takes a while.
  std::map<std::pair<std::string, double>, Interval> known;
  for (LedgerRun& run : runs) {
    // A run that counts whole is the only one.
    if (run.detail.terms.whole) run.failure = ledger.filter().counted_failure();
    const auto key = std::make_pair(run.counted.ToString(), run.failure);
    auto found = known.find(key);
    if (found == known.end()) {
      const Interval epsilon = run.counted.kind() == Event::Kind::kNone
                                   ? Interval{0, 0}
                                   : SpentEpsilon(run.counted, ledger.budget().delta, run.failure);
      found = known.emplace(key, epsilon).first;
    }
    run.epsilon = found->second;
  }
  return runs;
}

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
  if (event.kind() == Event::Kind::kNone) return "nothing";
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
  const std::size_t count = report.RunsThatAreNotPrivate();
  if (count == 0) return "";
  return fmt::format("NOT PRIVATE: the noise of {} of {} runs came from a typed seed.", count,
                     report.runs.size());
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

std::size_t LedgerReport::RunsThatAreNotPrivate() const {
  return static_cast<std::size_t>(std::count_if(
      runs.begin(), runs.end(), [](const LedgerRun& run) { return !run.detail.is_private; }));
}

LedgerReport MakeLedgerReport(Ledger& ledger) {
  BudgetFilter& filter = ledger.filter();
  LedgerReport report;
  report.file = ledger.file().string();
  report.id = ledger.id();
  report.budget = ledger.budget();
  report.composed = ledger.ComposedEpsilon();
  report.rule = RuleOf(filter);
  report.order = filter.order();
  report.used = filter.UsedShare();
  report.left = filter.LeftEpsilon();
  report.left_pure = filter.LeftPureEpsilon();
  report.left_text = LeftText(filter);
  report.whole_run = filter.whole_run().value_or("");
  report.runs = RunsOf(ledger);
  report.entries = ledger.entries();
  return report;
}

std::string UsedText(double share) {
  if (!std::isfinite(share)) return "more than 100%";
  return fmt::format("{:.2f}%", std::ceil(share * 1e4 * (1 - 1e-12)) / 100);
}

std::string LeftText(BudgetFilter& filter) {
  const Budget& budget = filter.budget();
  if (!IsLimited(budget)) return "everything: there is no limit";
  if (filter.whole_run()) return "nothing for another run";
  const double gaussian = filter.LeftEpsilon();
  const double pure = filter.LeftPureEpsilon();
  std::string text;
  if (gaussian > 0) {
    text = fmt::format("one more Gaussian mechanism of epsilon {} at delta {:g}",
                       LowerText(gaussian), budget.delta.value());
  }
  if (pure > 0) {
    text += fmt::format("{}one more pure mechanism of epsilon {}", text.empty() ? "" : ", or ",
                        LowerText(pure));
  }
  return text.empty() ? "nothing" : text;
}

std::string RefusalText(Ledger& ledger, const RunDeclaration& run, const Verdict& verdict) {
  const Delta delta = ledger.budget().delta;
  return fmt::format(
      "the release costs epsilon {} at delta {:g} alone and the ledger '{}' refuses it, because "
      "{}; "
      "left is {}",
      UpperText(SpentEpsilon(run.plan, delta, run.failure).upper), delta.value(),
      ledger.file().string(), verdict.reason, LeftText(ledger.filter()));
}

std::string ChargedText(Ledger& ledger) {
  return fmt::format("charged to {}: {} of its budget is used, head {}", ledger.file().string(),
                     UsedText(ledger.filter().UsedShare()), ledger.head().hash);
}

std::string OneLine(const std::string& text) { return ShownText(text); }

std::string BudgetText(const Budget& budget) {
  const char* change = "adding or removing";
  if (budget.adjacency == Adjacency::kReplaceOne) change = "replacing";
  if (budget.adjacency == Adjacency::kZeroOut) change = "emptying";
  const std::string limit =
      IsLimited(budget) ? fmt::format("epsilon {:g} at delta {:g} for all releases together",
                                      budget.epsilon.value(), budget.delta.value())
                        : fmt::format("no limit, counted at delta {:g}", budget.delta.value());
  return fmt::format("{}, {} one {}", limit, change, ProtectedUnitName(budget.unit));
}

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
  json["epsilon"] = IntervalJson(report.composed);
  json["verdict"] = {
      {"rule", report.rule.empty() ? Json(nullptr) : Json(report.rule)},
      {"order", report.order > 0 ? Json(report.order) : Json(nullptr)},
      {"used", NumberJson(report.used)},
      {"whole_run", report.whole_run.empty() ? Json(nullptr) : Json(report.whole_run)}};
  json["left"] = {
      {"gaussian", {{"epsilon", NumberJson(report.left)}, {"delta", report.budget.delta.value()}}},
      {"pure", {{"epsilon", NumberJson(report.left_pure)}}}};
  json["private"] = report.RunsThatAreNotPrivate() == 0;
  json["ledger"] = report.id;
  json["head"] = {{"number", report.entries.back().number}, {"hash", report.entries.back().hash}};
  json["runs"] = Json::array();
  std::map<std::string, const LedgerRun*> runs;
  for (const LedgerRun& run : report.runs) {
    json["runs"].push_back(RunReportJson(run));
    runs[run.id] = &run;
  }
  json["charges"] = Json::array();
  json["returns"] = Json::array();
  json["notes"] = Json::array();
  for (const Entry& entry : report.entries) {
    if (entry.kind == EntryKind::kCharge) json["charges"].push_back(EntryJson(entry, runs));
    if (entry.kind == EntryKind::kReturn) json["returns"].push_back(EntryJson(entry, runs));
    if (entry.kind == EntryKind::kNote) {
      json["notes"].push_back({{"number", entry.number},
                               {"time", IsoTime(entry.time)},
                               {"words", ParseTextJson(entry.detail)}});
    }
  }
  return json;
}

std::string LedgerReportText(const LedgerReport& report) {
  std::string text;
  if (const std::string warning = PrivacyWarning(report); !warning.empty()) text += warning + '\n';
  text += fmt::format("budget    {}\n", BudgetText(report.budget));
  text += fmt::format("used      {}\n", VerdictText(report));
  text += fmt::format("left      {}\n", report.left_text);
  text += fmt::format(
      "composed  epsilon [{}, {}] at delta {:g}: exact if all runs had been fixed in advance\n",
      LowerText(report.composed.lower), UpperText(report.composed.upper),
      report.budget.delta.value());
  const Entry& head = report.entries.back();
  text += fmt::format("head      entry {}, {}\n", head.number, head.hash);
  if (!report.runs.empty()) text += '\n' + RunsTable(report);
  std::vector<std::vector<std::string>> notes;
  for (const Entry& entry : report.entries) {
    if (entry.kind != EntryKind::kNote) continue;
    notes.push_back({TimeText(entry.time), OneLine(ParseTextJson(entry.detail))});
  }
  if (!notes.empty()) text += "\nnotes\n" + AlignedTable(notes, 1);
  return text;
}

std::vector<LedgerPoint> LedgerPoints(const LedgerReport& report) {
  const auto moves = [](const Entry& entry) {
    return entry.kind == EntryKind::kCharge || entry.kind == EntryKind::kReturn;
  };
  const auto total =
      static_cast<std::size_t>(std::count_if(report.entries.begin(), report.entries.end(), moves));
  const std::size_t stride = (total + kMaxEpsilons - 1) / kMaxEpsilons;
  BudgetFilter filter(report.budget);
  std::map<std::string, std::string> names;
  std::vector<LedgerPoint> points;
  for (const Entry& entry : report.entries) {
    if (entry.kind == EntryKind::kRun) {
      const RunDetail detail = ParseRunJson(entry.detail);
      filter.BeginRun(entry.run, Event::Parse(entry.event), detail.terms, entry.failure);
      names[entry.run] = OneLine(detail.what);
    }
    if (!moves(entry)) continue;
    const Event event = Event::Parse(entry.event);
    if (entry.kind == EntryKind::kCharge) {
      filter.Charge(entry.run, event, entry.failure);
    } else {
      filter.Return(entry.run, event, entry.failure);
    }
    LedgerPoint point{entry.time, names.at(entry.run), filter.UsedShare(), std::nullopt};
    if (points.size() + 1 == total) {
      point.epsilon = report.composed.upper;
    } else if (points.size() % stride == 0 && filter.Counted().kind() != Event::Kind::kNone) {
      point.epsilon =
          SpentEpsilon(filter.Counted(), report.budget.delta, filter.counted_failure()).upper;
    }
    points.push_back(std::move(point));
  }
  return points;
}

std::string LedgerReportSvg(const LedgerReport& report) {
  const std::string title = report.file.substr(report.file.find_last_of('/') + 1);
  const Budget& budget = report.budget;
  const std::string limit = IsLimited(budget)
                                ? fmt::format("budget epsilon {:g}", budget.epsilon.value())
                                : std::string("no limit");
  return LedgerSvg(
      LedgerPoints(report),
      {.title = OneLine(title),
       .caption = fmt::format("{} at delta {:g}, {}, one {}; composed epsilon {}", limit,
                              budget.delta.value(), AdjacencyName(budget.adjacency),
                              ProtectedUnitName(budget.unit), UpperText(report.composed.upper)),
       .warning = PrivacyWarning(report),
       .epsilon = budget.epsilon.value()});
}

}  // namespace sordino
