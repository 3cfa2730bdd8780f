// One pass over the entries of a ledger.
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "sordino/accounting/failures.h"
#include "sordino/cli/ledger_report.h"
#include "sordino/ledger/budget_sums.h"
#include "sordino/ledger/release_tally.h"

namespace sordino {
namespace {

// A composed epsilon takes a fraction of a second; so many make a picture.
constexpr std::size_t kMaxEpsilons = 60;
// And so many points the picture of a long ledger.
constexpr std::int64_t kMaxPoints = 400;
constexpr std::size_t kLastNotes = 20;

std::string RuleOf(BudgetFilter& filter) {
  const Budget& budget = filter.budget();
  if (filter.whole_run()) return "whole";
  if (filter.sums().releases == 0 || !std::isfinite(budget.epsilon.value())) return "";
  // UsedShare is the least of the two.
  const double pure = filter.sums().pure.Value() / budget.epsilon.value();
  if (pure <= filter.UsedShare() * (1 + 1e-9)) return "pure";
  return std::string(FilterName(budget.filter));
}

// "gaussian" of "add-remove: gaussian(2)".
std::string KindOf(const std::string& release) {
  const std::size_t begin = release.find(": ") + 2;
  return release.substr(begin, release.find('(', begin) - begin);
}

bool IsMove(const Entry& entry) {
  return entry.kind == EntryKind::kCharge || entry.kind == EntryKind::kReturn;
}

class ReportMaker {
 public:
  ReportMaker(Ledger& ledger, const LedgerReportOptions& options)
      : ledger_(ledger),
        options_(options),
        is_long_(ledger.size() > kLongLedger),
        replayed_(ledger.budget()) {
    report_.is_summary = is_long_ && !options.all;
  }

  LedgerReport Make() {
    Describe();
    if (options_.points && !is_long_)
      ledger_.Visit([this](const Entry& entry) { moves_ += IsMove(entry) ? 1 : 0; });
    ledger_.Visit([this](const Entry& entry) { Look(entry); });
    for (const std::string& run : shown_) report_.runs.push_back(Finished(open_.at(run)));
    Compose();
    if (!is_long_ && !report_.points.empty())
      report_.points.back().epsilon = report_.ComposedUpper();
    return std::move(report_);
  }

 private:
  // How often an event was charged and returned.
  struct Times {
    std::uint64_t charged = 0;
    std::uint64_t returned = 0;
  };
  // Texts are parsed for the runs that are shown.
  struct OpenRun {
    Entry begin;
    std::unordered_map<std::string, Times> times;  // by the text of an event
    std::int64_t charges = 0;
    double failure = 0;
  };

  void Describe() {
    BudgetFilter& filter = ledger_.filter();
    report_.file = ledger_.file().string();
    report_.id = ledger_.id();
    report_.budget = ledger_.budget();
    report_.head = ledger_.head();
    report_.rule = RuleOf(filter);
    report_.order = filter.order();
    report_.used = filter.UsedShare();
    report_.left = filter.LeftEpsilon();
    report_.left_pure = filter.LeftPureEpsilon();
    report_.left_text = LeftText(filter);
    report_.whole_run = filter.whole_run().value_or("");
  }

  void Look(const Entry& entry) {
    switch (entry.kind) {
      case EntryKind::kBudget:
        return;
      case EntryKind::kRun:
        Begin(entry);
        return;
      case EntryKind::kNote:
        ++report_.all_notes;
        report_.notes.push_back(entry);
        if (report_.is_summary && report_.notes.size() > kLastNotes) {
          report_.notes.erase(report_.notes.begin());
        }
        return;
      case EntryKind::kCharge:
      case EntryKind::kReturn:
        Move(entry);
        return;
    }
  }

  void Begin(const Entry& entry) {
    ++report_.all_runs;
    // Most runs are private, and a detail takes a while to parse.
    const bool may_be_seeded = entry.detail.find("\"private\"") != std::string::npos;
    if (may_be_seeded && !ParseRunJson(entry.detail).is_private) ++report_.seeded_runs;
    if (options_.points) {
      const RunDetail detail = ParseRunJson(entry.detail);
      names_[entry.run] = OneLine(detail.what);
      if (!is_long_) {
        replayed_.BeginRun(entry.run, Event::Parse(entry.event), detail.terms, entry.failure);
      }
    }
    open_[entry.run].begin = entry;
    shown_.push_back(entry.run);
    if (!report_.is_summary || shown_.size() <= options_.last_runs) return;
    open_.erase(shown_.front());
    shown_.pop_front();
  }

  void Move(const Entry& entry) {
    const bool is_charge = entry.kind == EntryKind::kCharge;
    ++(is_charge ? report_.all_charges : report_.all_returns);
    Times& times = times_[entry.event];
    ++(is_charge ? times.charged : times.returned);
    if (const auto found = open_.find(entry.run); found != open_.end()) {
      OpenRun& run = found->second;
      Times& of_run = run.times[entry.event];
      ++(is_charge ? of_run.charged : of_run.returned);
      if (is_charge) ++run.charges;
      run.failure = std::max(0.0, run.failure + (is_charge ? entry.failure : -entry.failure));
    }
    if (options_.points) AddPoint(entry);
    if (!report_.is_summary) report_.moves.push_back(entry);
  }

  LedgerRun Finished(const OpenRun& open) {
    const Budget& budget = report_.budget;
    LedgerRun run;
    run.id = open.begin.run;
    run.time = open.begin.time;
    run.detail = ParseRunJson(open.begin.detail);
    run.plan = open.begin.event;
    run.charges = open.charges;
    run.failure = open.failure;
    ReleaseTally charged;
    for (const auto& [text, times] : open.times) {
      if (times.charged > 0) charged.Add(Event::Parse(text), times.charged);
    }
    for (const auto& [text, times] : open.times) {
      if (times.returned == 0) continue;
      const Event event = Event::Parse(text);
      charged.Subtract(event, times.returned);
      run.returned += times.returned * event.TotalCount();
    }
    run.charged = charged.Total(budget.adjacency);
    run.counted = run.charged;
    if (run.detail.terms.whole) {
      // The only run there is, and as its filter has it: sorted.
      ReleaseTally plan;
      plan.Add(Event::Parse(run.plan));
      run.counted = plan.Total(budget.adjacency);
      run.failure = ledger_.filter().counted_failure();
    }
    // Runs are often repeated, and an epsilon takes a while.
    const auto key = std::make_pair(run.counted.ToString(), run.failure);
    auto found = epsilons_.find(key);
    if (found == epsilons_.end()) {
      const Interval epsilon = run.counted.IsNone()
                                   ? Interval{0, 0}
                                   : SpentEpsilon(run.counted, budget.delta, run.failure);
      found = epsilons_.emplace(key, epsilon).first;
    }
    run.epsilon = found->second;
    return run;
  }

  void Compose() {
    const Budget& budget = report_.budget;
    const bool exact = options_.exact || !is_long_;
    const double failure = ledger_.filter().counted_failure();
    ReleaseTally total;
    if (!report_.whole_run.empty()) {
      total.Add(report_.runs.front().counted);
    } else {
      for (const auto& [text, times] : times_) {
        if (times.charged > 0) total.Add(Event::Parse(text), times.charged);
      }
      for (const auto& [text, times] : times_) {
        if (times.returned > 0) total.Subtract(Event::Parse(text), times.returned);
      }
    }
    report_.composed = total.ComposedEpsilon(budget.adjacency, budget.delta, failure, exact);
    if (!report_.is_summary) return;
    std::map<std::string, LedgerKind> kinds;
    for (const auto& [text, count] : total.counts()) {
      LedgerKind& kind = kinds[KindOf(text)];
      kind.releases = SaturatingSum(kind.releases, count);
      ++kind.different;
    }
    std::map<std::string, ReleaseTally> tallies;
    for (const auto& [text, count] : total.counts()) {
      if (kinds.size() == 1) break;
      tallies[KindOf(text)].Add(Event::Parse(text), count);
    }
    for (auto& [name, kind] : kinds) {
      kind.name = name;
      kind.epsilon = kinds.size() == 1
                         ? report_.composed
                         : tallies[name].ComposedEpsilon(budget.adjacency, budget.delta, 0, exact);
      report_.kinds.push_back(std::move(kind));
    }
  }

  // Of a long ledger: the sums that entries hold, at some of them.
  void AddPoint(const Entry& entry) {
    LedgerPoint point{entry.time, names_.at(entry.run), 0, std::nullopt};
    if (is_long_) {
      const std::int64_t stride = ledger_.size() / kMaxPoints + 1;
      if (entry.number < next_point_ && entry.number + 1 < ledger_.size()) return;
      const std::optional<BudgetSums> sums = SumsOf(entry);
      if (!sums) return;
      next_point_ = entry.number + stride;
      point.used = BudgetFilter(report_.budget, *sums).UsedShare();
      report_.points.push_back(std::move(point));
      return;
    }
    const Event event = Event::Parse(entry.event);
    if (entry.kind == EntryKind::kCharge) {
      replayed_.Charge(entry.run, event, entry.failure);
    } else {
      replayed_.Return(entry.run, event, entry.failure);
    }
    point.used = replayed_.UsedShare();
    const std::size_t stride = (moves_ + kMaxEpsilons - 1) / kMaxEpsilons;
    if (report_.points.size() % stride == 0 && replayed_.sums().releases > 0) {
      point.epsilon =
          SpentEpsilon(replayed_.Counted(), report_.budget.delta, replayed_.counted_failure())
              .upper;
    }
    report_.points.push_back(std::move(point));
  }

  Ledger& ledger_;
  LedgerReportOptions options_;
  bool is_long_;
  LedgerReport report_;
  std::deque<std::string> shown_;
  std::unordered_map<std::string, OpenRun> open_;
  std::unordered_map<std::string, Times> times_;
  std::map<std::pair<std::string, double>, Interval> epsilons_;
  // Of the points.
  BudgetFilter replayed_;
  std::unordered_map<std::string, std::string> names_;
  std::int64_t next_point_ = 0;
  std::size_t moves_ = 0;
};

}  // namespace

double LedgerReport::ComposedUpper() const {
  return composed ? composed->upper : budget.epsilon.value();
}

LedgerReport MakeLedgerReport(Ledger& ledger, const LedgerReportOptions& options) {
  return ReportMaker(ledger, options).Make();
}

}  // namespace sordino
