#include "sordino/cli/experiment_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sordino/base/error.h"
#include "sordino/base/known_name.h"
#include "sordino/base/output_file.h"
#include "sordino/base/progress.h"
#include "sordino/base/shown_text.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/help_command.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/cli/value_flag.h"
#include "sordino/experiments/catalog.h"
#include "sordino/experiments/experiment.h"
#include "sordino/experiments/grid.h"
#include "sordino/experiments/reproduction_page.h"
#include "sordino/experiments/results.h"
#include "sordino/experiments/results_folder.h"
#include "sordino/experiments/runner.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kAllExperiments = "all";

struct ExperimentFlags {
  std::string name;
  std::string out;
  std::string jobs = "1";
  std::string device;
  std::optional<std::string> report;
  bool force = false;
  bool quick = false;
  bool dry_run = false;
  bool json = false;
};

CommandFlags FlagsOf(const CommandNode& command) {
  CommandFlags flags;
  for (const OptionNode& option : command.options) {
    for (const std::string& name : option.names) {
      CommandFlag flag{
          .name = name, .is_switch = option.value.empty(), .is_place = option.is_place};
      if (option.is_place) {
        // "NAME|FILE" is a place for a file.
        flag.name = name.substr(name.find_last_of('|') + 1);
        std::transform(flag.name.begin(), flag.name.end(), flag.name.begin(), [](char c) {
          return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
      } else if (name.starts_with("--")) {
        flag.name = name.substr(2);
      } else {
        continue;
      }
      flags.flags.push_back(std::move(flag));
    }
  }
  return flags;
}

// Reads the description of all commands once, when the first is asked for.
FindCommand CommandsOf(const CLI::App& app) {
  const auto tree = std::make_shared<std::optional<CommandNode>>();
  return [&app, tree](const std::string& command) -> std::optional<CommandFlags> {
    if (!*tree) tree->emplace(WholeCommandTree(app));
    std::vector<std::string> words;
    std::istringstream in(command);
    for (std::string word; in >> word;) words.push_back(word);
    const CommandNode* node = &tree->value();
    for (const std::string& word : words) {
      const auto found = std::find_if(node->commands.begin(), node->commands.end(),
                                      [&](const CommandNode& child) { return child.name == word; });
      node = found == node->commands.end() ? nullptr : &*found;
      if (node == nullptr) break;
    }
    CommandFlags flags;
    if (node != nullptr) flags = FlagsOf(*node);
    // A program without the other one lists its commands with their names alone.
    if (IsTorchCommand(words) && flags.Find("json") == nullptr &&
        OutputOfTorchProgram({"help", "--json"}).empty()) {
      throw Error(
          fmt::format("'{}' needs libtorch, and this sordino was built without it; build with "
                      "-DSORDINO_TORCH=ON, which puts sordino-torch beside sordino.",
                      command));
    }
    if (node == nullptr) return std::nullopt;
    return flags;
  };
}

int JobsFrom(const std::string& text) {
  const std::uint64_t jobs = ParseWhole("--jobs", text);
  if (jobs < 1 || jobs > static_cast<std::uint64_t>(kMaxJobs)) {
    throw Error(fmt::format("--jobs is {}; give a number from 1 to {}.", jobs, kMaxJobs));
  }
  return static_cast<int>(jobs);
}

std::string CommandLineOf(const std::string& name, const ExperimentFlags& flags) {
  std::string line = "sordino experiment " + name;
  if (flags.quick) line += " --quick";
  if (!flags.device.empty()) line += " --device " + flags.device;
  return line;
}

std::size_t FailedOf(const std::vector<CellResult>& results) {
  return static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(),
                    [](const CellResult& result) { return !result.failure.empty(); }));
}

Json OutcomeJson(const ReproducedExperiment& done, const std::filesystem::path& folder) {
  Json json;
  json["experiment"] = done.experiment.name;
  json["folder"] = folder.string();
  json["cells"] = done.results.size();
  json["failed"] = FailedOf(done.results);
  json["spending"] = SpendingSentence(done.experiment);
  Json pictures = Json::array();
  for (const Picture& picture : done.experiment.pictures) pictures.push_back(picture.name + ".svg");
  json["pictures"] = std::move(pictures);
  if (!done.refusal.empty()) json["refusal"] = done.refusal;
  return json;
}

// The page of 'sordino report', where the program has that command. Results are whole without it.
void WritePage(const FindCommand& find, const ResultsFolder& folder,
               const std::filesystem::path& program) {
  const std::optional<CommandFlags> report = find("report");
  if (!report || report->Find("out") == nullptr) return;
  const int code = RunCommandIn(
      folder, program,
      {"report", folder.path().string(), "--out", (folder.path() / "page.html").string()}, "page");
  if (code != kOk) {
    std::cerr << fmt::format("sordino: the page could not be made; '{}' says why.\n",
                             (folder.path() / "page.err").string());
    return;
  }
  std::filesystem::remove(folder.path() / "page.out");
  std::filesystem::remove(folder.path() / "page.err");
}

std::filesystem::path FolderOf(const Experiment& experiment, const ExperimentFlags& flags) {
  const bool is_all = flags.name == kAllExperiments;
  const std::filesystem::path base = flags.out.empty() ? "experiments" : flags.out;
  if (!flags.out.empty() && !is_all) return base;
  return base / (experiment.name + (experiment.quick ? "-quick" : ""));
}

void PrintCells(const std::vector<Cell>& cells) {
  for (const Cell& cell : cells) {
    if (cell.reads) continue;  // runs nothing
    std::cout << "sordino";
    for (const std::string& word : cell.words) std::cout << ' ' << ShownText(word);
    std::cout << '\n';
  }
}

// Runs what has not finished yet and writes its folder.
ReproducedExperiment RunOne(const std::string& name, const FindCommand& find, int jobs,
                            const ExperimentFlags& flags) {
  ReproducedExperiment done{.experiment = FindExperiment(name, flags.quick),
                            .results = {},
                            .command = CommandLineOf(name, flags),
                            .refusal = ""};
  const std::vector<Cell> cells = MakeCells(done.experiment, find, flags.device);
  if (flags.dry_run) {
    PrintCells(cells);
    return done;
  }
  const ResultsFolder folder(FolderOf(done.experiment, flags), done.experiment);
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const char* const data = std::getenv("SORDINO_DATA");
  done.results = RunCells(done.experiment, cells, folder,
                          {.program = program,
                           .jobs = jobs,
                           .data = data == nullptr ? "" : data,
                           .progress = Progress::DetectStyle()});
  WriteResults(done.experiment, done.results, folder.path(), done.command);
  WritePage(find, folder, program);
  const auto failed =
      std::find_if(done.results.begin(), done.results.end(),
                   [](const CellResult& result) { return !result.failure.empty(); });
  if (failed != done.results.end()) {
    std::cerr << fmt::format("sordino: a cell failed with {}\n", ShownText(failed->failure));
  }
  return done;
}

// All that come with the program, in the order of the documents. One that cannot run here is told,
// and the others run.
std::vector<ReproducedExperiment> RunAll(const FindCommand& find, int jobs,
                                         const ExperimentFlags& flags) {
  std::vector<ReproducedExperiment> all;
  for (const CatalogEntry& entry : ExperimentCatalog()) {
    const std::string name(entry.name);
    try {
      all.push_back(RunOne(name, find, jobs, flags));
    } catch (const Error& error) {
      std::cerr << fmt::format("sordino: '{}' did not run: {}\n", name, ShownText(error.what()));
      all.push_back({.experiment = FindExperiment(name, flags.quick),
                     .results = {},
                     .command = CommandLineOf(name, flags),
                     .refusal = error.what()});
    }
  }
  return all;
}

void PrintAll(const std::vector<ReproducedExperiment>& all, const ExperimentFlags& flags) {
  if (flags.json) {
    Json report = NewReport();
    report["experiments"] = Json::array();
    for (const ReproducedExperiment& done : all) {
      report["experiments"].push_back(OutcomeJson(done, FolderOf(done.experiment, flags)));
    }
    PrintReport(report);
    return;
  }
  for (const ReproducedExperiment& done : all) {
    std::cout << fmt::format(
        "{}: {}\n", done.experiment.name,
        !done.refusal.empty()
            ? "did not run: " + ShownText(done.refusal)
            : fmt::format("{} cells, {} failed, in {}", done.results.size(), FailedOf(done.results),
                          FolderOf(done.experiment, flags).string()));
  }
}

void PrintOne(const ReproducedExperiment& done, const ExperimentFlags& flags) {
  const std::filesystem::path folder = FolderOf(done.experiment, flags);
  if (flags.json) {
    Json report = NewReport();
    report.update(OutcomeJson(done, folder));
    PrintReport(report);
    return;
  }
  std::cout << ShownLines(SummaryPage(done.experiment, done.results, done.command));
  std::cout << fmt::format("\nResults: {}\n", folder.string());
}

void RunExperiment(const CLI::App& app, const ExperimentFlags& flags) {
  if (flags.name.empty()) {
    throw Error(
        "no experiment was given; give a name of 'sordino experiment list', 'all', or a TOML file "
        "of your own.");
  }
  const int jobs = JobsFrom(flags.jobs);
  const bool is_all = flags.name == kAllExperiments;
  std::optional<OutputFile> page;
  if (flags.report) {
    const std::vector<std::filesystem::path> inputs = {flags.name};
    page.emplace(OutputRequest{"--report", *flags.report, kReproductionFile, flags.force}, inputs);
  }
  const FindCommand find = CommandsOf(app);
  std::vector<ReproducedExperiment> done;
  if (is_all) {
    done = RunAll(find, jobs, flags);
  } else {
    done.push_back(RunOne(flags.name, find, jobs, flags));
  }
  if (flags.dry_run) return;
  if (page) page->Write(ReproductionPage(done));
  if (is_all) {
    PrintAll(done, flags);
  } else {
    PrintOne(done.front(), flags);
  }
  if (page && !flags.json) std::cout << fmt::format("Report: {}\n", *flags.report);
  const bool failed = std::any_of(done.begin(), done.end(), [](const ReproducedExperiment& one) {
    return !one.refusal.empty() || FailedOf(one.results) > 0;
  });
  if (failed) throw EndWith{kFailure};
}

void ListExperiments(bool json) {
  Json list = Json::array();
  for (const CatalogEntry& entry : ExperimentCatalog()) {
    const std::string name(entry.name);
    const Experiment full = ParseExperiment(entry.text, name, false);
    const Experiment quick = ParseExperiment(entry.text, name, true);
    if (!json) {
      std::cout << fmt::format(
          "{}: {}\n  {}\n  Source: {}.\n  {} on 2 cores ({} cells), with --quick {} ({} "
          "cells).\n\n",
          name, full.title, full.about, full.source, HumanDuration(60 * full.minutes),
          full.CellCount(), HumanDuration(60 * quick.minutes), quick.CellCount());
      continue;
    }
    list.push_back({{"name", name},
                    {"title", full.title},
                    {"about", full.about},
                    {"source", full.source},
                    {"minutes", full.minutes},
                    {"quick_minutes", quick.minutes},
                    {"cells", full.CellCount()},
                    {"quick_cells", quick.CellCount()}});
  }
  if (!json) return;
  Json report = NewReport();
  report["experiments"] = std::move(list);
  PrintReport(report);
}

void ShowExperiment(const std::string& name) { std::cout << FindExperiment(name, false).text; }

void AddListing(CLI::App& command) {
  CLI::App* list = command.add_subcommand(
      "list", "The experiments that come with the program: source, time, and what is to be seen.");
  const auto json = std::make_shared<bool>(false);
  list->add_flag("--json", *json, "One JSON object on standard output");
  list->footer("Example:\n  sordino experiment list");
  list->callback([json] { ListExperiments(*json); });

  CLI::App* show = command.add_subcommand(
      "show", "Prints the TOML file of an experiment, to copy and to change.");
  const auto name = std::make_shared<std::string>();
  AddValue(*show, "experiment", *name, "NAME", "Its name")->required();
  show->footer("Example:\n  sordino experiment show composition > mine.toml");
  show->callback([name] { ShowExperiment(*name); });
}

}  // namespace

void AddExperimentCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "experiment", "A command over a grid of settings, with tables and pictures of the results.");
  const auto flags = std::make_shared<ExperimentFlags>();
  AddValue(*command, "experiment", flags->name, "NAME|FILE",
           "A name of 'experiment list', all of them, or a TOML file");
  AddValue(
      *command, "--out", flags->out, "FOLDER",
      "The folder of the results; experiments/NAME if left out. Finished cells in it are kept");
  AddValue(*command, "--jobs", flags->jobs, "N", "Cells that run at the same time (1)");
  AddValue(*command, "--device", flags->device, "NAME",
           "Given to commands that have one: cpu, cuda or cuda:N");
  AddValue(*command, "--report", flags->report, "FILE",
           "One HTML page: what the document says, what was measured, why they differ");
  AddForceFlag(*command, flags->force);
  command->add_flag("--quick", flags->quick, "The quick form: some minutes at most");
  command->add_flag("--dry-run", flags->dry_run, "Print the command of each cell; run nothing");
  command->add_flag("--json", flags->json, "One JSON object on standard output");
  command->footer(
      "Examples:\n  sordino experiment list\n  sordino experiment composition --quick --out "
      "composition\n  sordino experiment all --quick --report documents.html");
  command->require_subcommand(0, 1);
  AddListing(*command);
  command->callback([&app, command, flags] {
    if (command->get_subcommands().empty()) RunExperiment(app, *flags);
  });
}

}  // namespace sordino
