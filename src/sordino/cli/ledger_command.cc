#include "sordino/cli/ledger_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "sordino/base/error.h"
#include "sordino/base/output_file.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/ledger_forecast.h"
#include "sordino/cli/ledger_report.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/value_flag.h"
#include "sordino/ledger/ledger.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

struct LedgerFlags {
  std::string file;
  std::string epsilon;
  std::string delta;
  std::string adjacency = "add-remove";
  std::string unit = "record";
  std::string filter = "renyi";
  std::optional<std::string> order;
  std::optional<std::string> picture;
  std::string expect;
  std::string text;
  std::string event;
  bool force = false;
  bool all = false;
  bool exact = false;
  bool whole = false;
  bool dry_run = false;
  bool json = false;
};

void PrintJson(const Json& json) {
  Json report = NewReport();
  report.update(json);
  PrintReport(report);
}

Json HeadJson(const Ledger& ledger) {
  return {{"number", ledger.head().number}, {"hash", ledger.head().hash}};
}

void Init(const LedgerFlags& flags) {
  Budget budget;
  const double epsilon = ParseReal("--epsilon", flags.epsilon);
  CheckRange("--epsilon", epsilon, 0, true, kInfinity, true);
  budget.epsilon = Epsilon(epsilon);
  const double delta = ParseReal("--delta", flags.delta);
  CheckRange("--delta", delta, 0, false, 1, true);
  budget.delta = Delta(delta);
  budget.adjacency = ParseAdjacency(flags.adjacency);
  budget.unit = ParseProtectedUnit(flags.unit);
  budget.filter = ParseFilter(flags.filter);
  if (flags.order) budget.order = RenyiOrder(ParseReal("--order", *flags.order));
  const Ledger ledger = Ledger::Create(flags.file, budget);
  if (flags.json) {
    PrintJson({{"file", flags.file},
               {"ledger", ledger.id()},
               {"budget", BudgetReportJson(budget)},
               {"head", HeadJson(ledger)}});
    return;
  }
  std::cout << fmt::format("{}: {}.\n", flags.file, BudgetText(budget));
}

void Show(const LedgerFlags& flags) {
  std::optional<OutputFile> picture;
  if (flags.picture) {
    const std::array<std::filesystem::path, 1> inputs = {flags.file};
    picture.emplace(OutputRequest{"--picture", *flags.picture, kSvgPicture, flags.force}, inputs);
  }
  Ledger ledger = Ledger::Open(flags.file, {.read_only = true});
  const LedgerReport report = MakeLedgerReport(
      ledger, {.all = flags.all, .exact = flags.exact, .points = picture.has_value()});
  // Before anything is printed: a picture that cannot be written leaves standard output empty.
  if (picture) picture->Write(LedgerReportSvg(report));
  if (flags.json) {
    PrintJson(LedgerReportJson(report));
  } else {
    std::cout << LedgerReportText(report);
  }
}

// 64 hex digits, as a statement or `show` prints them.
std::string ParseHash(const std::string& text) {
  constexpr std::size_t kHashDigits = 64;
  std::string hash = text;
  std::transform(hash.begin(), hash.end(), hash.begin(), [](char c) {
    return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (hash.size() != kHashDigits ||
      hash.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw Error(fmt::format(
        "--expect '{}' is not the hash of an entry; give its 64 hex digits, as 'sordino "
        "ledger show' prints them.",
        text.substr(0, 80)));
  }
  return hash;
}

void Verify(const LedgerFlags& flags) {
  const std::string expected = flags.expect.empty() ? "" : ParseHash(flags.expect);
  const std::int64_t entries = VerifyLedger(flags.file);
  const Ledger ledger = Ledger::Open(flags.file, {.read_only = true});
  if (!expected.empty() && !ledger.Contains(expected)) {
    throw Error(fmt::format(
        "the ledger '{}' is whole and does not hold the entry {}: it is an older copy, or another "
        "ledger; put back the newest copy.",
        flags.file, expected));
  }
  if (flags.json) {
    Json json = {{"whole", true}, {"entries", entries}, {"head", HeadJson(ledger)}};
    if (!expected.empty()) json["holds"] = expected;
    PrintJson(json);
    return;
  }
  std::cout << fmt::format("whole: {} {}, head {}\n", entries, entries == 1 ? "entry" : "entries",
                           ledger.head().hash);
}

void Note(const LedgerFlags& flags) {
  if (flags.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error("the note is empty; give the words that are to be kept, in quotes.");
  }
  Ledger ledger = Ledger::Open(flags.file);
  ledger.Note(flags.text);
  if (flags.json) {
    PrintJson({{"head", HeadJson(ledger)}});
    return;
  }
  std::cout << fmt::format("noted as entry {}, head {}\n", ledger.head().number,
                           ledger.head().hash);
}

// What another program released. How well its noise was drawn is not known here.
void Charge(const LedgerFlags& flags) {
  if (flags.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error("--note is empty; give words that say what was released, in quotes.");
  }
  const Event event = Event::Parse(flags.event);
  if (event.IsNone()) {
    throw Error(
        "--event is of nothing; give what was released, such as 'add-remove: gaussian(4)'.");
  }
  Ledger ledger = Ledger::Open(flags.file);
  const RunDeclaration run = {.what = flags.text,
                              .plan = event,
                              .unit = ledger.budget().unit,
                              .may_count_whole = flags.whole};
  const Begun begun = flags.dry_run
                          ? ledger.Preview(run)
                          : ledger.BeginRun(run, {.event = event, .words = "charged by hand"});
  if (!begun.verdict.admitted) {
    throw Error(
        fmt::format("nothing was charged: {}{}; if it was released already, the budget is "
                    "exceeded, and 'sordino "
                    "ledger note' keeps that.",
                    RefusalText(ledger, run, begun.verdict), WholeHint(begun.verdict)));
  }
  if (flags.dry_run) {
    const BudgetFilter after = ledger.filter().After(event, run.failure, begun.terms);
    if (flags.json) {
      Json json = ForecastJson(after);
      json["dry_run"] = true;
      json["event"] = event.ToString();
      PrintJson(json);
      return;
    }
    std::cout << ForecastText(after) << "\nnothing was charged\n";
    return;
  }
  if (flags.json) {
    PrintJson({{"run", begun.id},
               {"event", event.ToString()},
               {"whole", begun.terms.whole},
               {"used", ledger.filter().UsedShare()},
               {"epsilon", IntervalJson(ledger.ComposedEpsilon())},
               {"head", HeadJson(ledger)}});
    return;
  }
  std::cout << ChargedText(ledger) << '\n';
}

CLI::App* AddAction(CLI::App& ledger, const std::string& name, const std::string& help,
                    LedgerFlags& flags, const std::string& example) {
  CLI::App* action = ledger.add_subcommand(name, help);
  AddValue(*action, "file", flags.file, "FILE", "The ledger")->required();
  action->add_flag("--json", flags.json, "One JSON object on standard output");
  action->footer("Example:\n  sordino ledger " + example);
  return action;
}

void AddInit(CLI::App& ledger) {
  const auto flags = std::make_shared<LedgerFlags>();
  CLI::App* init = AddAction(ledger, "init", "Makes a ledger with a budget.", *flags,
                             "init visits-ledger.db --epsilon 8 --delta 1e-5");
  AddValue(*init, "--epsilon", flags->epsilon, "NUMBER", "What all releases together may cost")
      ->required();
  AddValue(*init, "--delta", flags->delta, "0..1",
           "The probability with which the guarantee may fail, well below one over the "
           "number of records; 0 admits pure mechanisms only")
      ->required();
  AddValue(*init, "--adjacency", flags->adjacency, "NAME", "add-remove, replace-one or zero-out")
      ->capture_default_str();
  AddValue(*init, "--unit", flags->unit, "NAME", "What is protected: a record or a user")
      ->capture_default_str();
  AddValue(*init, "--filter", flags->filter, "NAME",
           "How runs that are chosen one after the other add up: renyi or gaussian")
      ->capture_default_str();
  AddValue(*init, "--order", flags->order, "NUMBER",
           "Order of the Renyi filter; left out, the first run's plan decides");
  init->callback([flags] { Init(*flags); });
}

}  // namespace

void AddLedgerCommand(CLI::App& app) {
  CLI::App* ledger = app.add_subcommand(
      "ledger", "A dataset's budget, what was spent of it, and whether the record is whole.");
  ledger->require_subcommand(1);
  ledger->footer("Example:\n  sordino ledger init visits-ledger.db --epsilon 8 --delta 1e-5");
  AddInit(*ledger);

  auto flags = std::make_shared<LedgerFlags>();
  CLI::App* show = AddAction(*ledger, "show", "What was spent, what is left, by whom and when.",
                             *flags, "show visits-ledger.db --picture visits-ledger.svg");
  AddValue(*show, "--picture", flags->picture, "FILE", "Write the used part to this SVG file");
  AddForceFlag(*show, flags->force);
  show->add_flag(
      "--all", flags->all,
      fmt::format("Every run and charge, also of a ledger of more than {} entries", kLongLedger));
  show->add_flag("--exact", flags->exact,
                 "The composed epsilon of such a ledger, however long it takes");
  show->callback([flags] { Show(*flags); });

  flags = std::make_shared<LedgerFlags>();
  CLI::App* verify = AddAction(*ledger, "verify", "Whether the record is whole.", *flags,
                               "verify visits-ledger.db");
  AddValue(*verify, "--expect", flags->expect, "HASH",
           "Hash of an entry that must be in it, from a statement that was kept");
  verify->callback([flags] { Verify(*flags); });

  flags = std::make_shared<LedgerFlags>();
  CLI::App* charge = AddAction(
      *ledger, "charge", "Charges what another program released.", *flags,
      "charge visits-ledger.db --event 'add-remove: gaussian(4)' --note 'survey of 2025'");
  AddValue(*charge, "--event", flags->event, "EVENT",
           "What was released, in the notation of 'sordino account --event'; its unit is "
           "that of the ledger")
      ->required();
  AddValue(*charge, "--note", flags->text, "TEXT", "What it was, in quotes")->required();
  charge->add_flag("--whole", flags->whole,
                   "Let it take all of the budget where nothing else admits it");
  charge->add_flag("--dry-run", flags->dry_run,
                   "Say what the ledger would count and what would be left; charge nothing");
  charge->callback([flags] { Charge(*flags); });

  flags = std::make_shared<LedgerFlags>();
  CLI::App* note = AddAction(*ledger, "note", "Keeps somebody's words, with the time.", *flags,
                             "note visits-ledger.db 'budget agreed on by the review board'");
  AddValue(*note, "text", flags->text, "TEXT", "The words, in quotes")->required();
  note->callback([flags] { Note(*flags); });
}

}  // namespace sordino
