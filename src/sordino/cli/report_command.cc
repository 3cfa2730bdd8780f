#include "sordino/cli/report_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/output_file.h"
#include "sordino/base/stop.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/report_server.h"
#include "sordino/cli/report_sources.h"
#include "sordino/cli/value_flag.h"
#include "sordino/report/page.h"
#include "sordino/report/run_card.h"
#include "sordino/report/tensorboard.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;

constexpr OutputKind kPageFile = {"an HTML page", ".html", "<!DOCTYPE html>"};
constexpr OutputKind kMetricsTable = {"a table of metrics", ".csv", "run,step,"};
constexpr OutputKind kCardFile = {"the card of a run", ".json", "{\n  \"card\": 1,"};
constexpr OutputKind kEventFile = {"an event file", ".sordino", std::string_view("\x18\0\0\0", 4)};
constexpr int kMaxPort = 65535;

struct ReportFlags {
  std::vector<std::string> sources;
  std::optional<std::string> out;
  std::optional<std::string> csv;
  std::optional<std::string> card;
  std::optional<std::string> tensorboard;
  std::optional<std::string> port;
  bool watch = false;
  bool force = false;
  bool json = false;
};

// 0 stands for one that is free.
std::uint16_t PortOf(const ReportFlags& flags) {
  if (!flags.port) return 0;
  const std::uint64_t port = ParseWhole("--port", *flags.port);
  if (port > kMaxPort) {
    throw Error(fmt::format("--port is {}; it must be at most {}.", port, kMaxPort));
  }
  return static_cast<std::uint16_t>(port);
}

void CheckReportFlags(const ReportFlags& flags) {
  if (!flags.out && !flags.csv && !flags.card && !flags.tensorboard && !flags.watch &&
      !flags.json) {
    throw Error(
        "nothing is asked for; give --out page.html, --csv FILE, --card FILE, --watch, --json or "
        "--tensorboard FOLDER.");
  }
  if (flags.port && !flags.watch) throw Error("--port is that of --watch; give --watch too.");
  if (flags.watch && flags.json) {
    throw Error("--watch and --json were both given; leave out one of the two.");
  }
  PortOf(flags);  // before anything is written
}

// TensorBoard takes folders for runs, and files of this name in them for events.
std::vector<OutputFile> EventFiles(const ReportFlags& flags, const ReportContent& content,
                                   const std::vector<fs::path>& inputs) {
  std::vector<OutputFile> files;
  const fs::path folder = *flags.tensorboard;
  for (std::size_t i = 0; i < content.runs.size(); ++i) {
    // Two runs may have the same name.
    const std::string name = content.runs.size() == 1
                                 ? content.runs[i].name
                                 : fmt::format("{}-{}", i + 1, content.runs[i].name);
    std::error_code error;
    fs::create_directories(folder / name, error);
    if (error) {
      throw Error(fmt::format("--tensorboard is '{}', in which no folder can be made: {}.",
                              folder.string(), error.message()));
    }
    files.emplace_back(
        OutputRequest{"--tensorboard", folder / name / "events.out.tfevents.0.sordino", kEventFile,
                      flags.force},
        inputs);
  }
  return files;
}

void WriteEvents(const ReportFlags& flags, const ReportContent& content,
                 const std::vector<fs::path>& inputs) {
  if (content.runs.empty()) {
    throw Error("--tensorboard writes the metrics of runs, and none was given.");
  }
  const std::vector<OutputFile> files = EventFiles(flags, content, inputs);
  const auto now = static_cast<double>(std::time(nullptr));
  for (std::size_t i = 0; i < files.size(); ++i) {
    const ReportRun& run = content.runs[i];
    const double seconds = run.points.empty() ? 0 : run.points.back().seconds.value_or(0);
    files[i].Write(TensorboardEvents(run, now - seconds));
  }
  std::cerr << fmt::format(
      "sordino: the event files are in {}; 'tensorboard --logdir {}' shows "
      "them.\n",
      *flags.tensorboard, *flags.tensorboard);
}

// A page that is asked for again is made anew: the run may have gone on.
void Watch(const ReportFlags& flags, ReportSources& sources, const std::string& version) {
  const StopGuard guard;
  const ReportServer server(PortOf(flags));
  std::cout << server.address() << '\n' << std::flush;
  std::cerr << "sordino: open this address in a browser; Ctrl-C ends it.\n";
  server.Serve([&] {
    ReportContent content = sources.Read();
    content.version = version;
    content.is_watched = true;
    return ReportPage(content);
  });
  throw Stopped("the page is no longer served.");
}

void RunReport(const ReportFlags& flags, const std::string& version) {
  CheckReportFlags(flags);
  ReportSources sources(flags.sources);
  const std::vector<fs::path> inputs = sources.Inputs();
  std::optional<OutputFile> page;
  std::optional<OutputFile> table;
  std::optional<OutputFile> card;
  if (flags.out) page.emplace(OutputRequest{"--out", *flags.out, kPageFile, flags.force}, inputs);
  if (flags.csv) {
    table.emplace(OutputRequest{"--csv", *flags.csv, kMetricsTable, flags.force}, inputs);
  }
  if (flags.card) {
    card.emplace(OutputRequest{"--card", *flags.card, kCardFile, flags.force}, inputs);
  }
  ReportContent content = sources.Read();
  content.version = version;
  if (table && content.runs.empty()) {
    throw Error("--csv writes the metrics of runs, and none was given.");
  }
  const std::string card_text = card ? RunCard(content) : "";
  if (flags.tensorboard) WriteEvents(flags, content, inputs);
  if (page) page->Write(ReportPage(content));
  if (table) table->Write(MetricsCsv(content.runs));
  if (card) card->Write(card_text);
  if (flags.json) {
    nlohmann::ordered_json report = NewReport();
    report.update(nlohmann::ordered_json::parse(ReportJson(content)));
    PrintReport(report, /*one_line=*/true);
  }
  if (page) std::cerr << fmt::format("sordino: the page is {}.\n", *flags.out);
  if (flags.watch) Watch(flags, sources, version);
}

}  // namespace

void AddReportCommand(CLI::App& app, const std::string& version) {
  const auto flags = std::make_shared<ReportFlags>();
  CLI::App* command = app.add_subcommand(
      "report", "Runs, experiments, audits and ledgers as one page for a browser.");
  command
      ->add_option(
          "sources", flags->sources,
          "Folders of runs or experiments, ledgers, and files of 'audit membership --json' or "
          "'release --record'; several are shown side by side")
      ->type_name("FOLDER|LEDGER|FILE")
      ->required();
  AddValue(*command, "--out", flags->out, "FILE", "Write one self-contained HTML file");
  AddValue(*command, "--csv", flags->csv, "FILE", "Write the metrics of the runs to this file");
  AddValue(*command, "--card", flags->card, "FILE",
           "Write a model card and a record for data protection of one run, as JSON");
  AddValue(*command, "--tensorboard", flags->tensorboard, "FOLDER",
           "Write the metrics of the runs as event files that TensorBoard reads");
  command->add_flag(
      "--watch", flags->watch,
      "Serve the page on this machine only, and refresh it while a run is in progress");
  AddValue(*command, "--port", flags->port, "N", "Of --watch; one that is free if left out");
  AddForceFlag(*command, flags->force);
  command->add_flag("--json", flags->json, "What the page shows, as one JSON object");
  command->footer("Example:\n  sordino report runs/first runs/second --out page.html");
  command->callback([flags, version] { RunReport(*flags, version); });
}

}  // namespace sordino
