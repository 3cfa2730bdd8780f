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
#include "sordino/base/progress.h"
#include "sordino/base/shown_text.h"
#include "sordino/cli/event_options.h"
#include "sordino/cli/help_command.h"
#include "sordino/cli/program.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"
#include "sordino/experiments/catalog.h"
#include "sordino/experiments/experiment.h"
#include "sordino/experiments/grid.h"
#include "sordino/experiments/results.h"
#include "sordino/experiments/results_folder.h"
#include "sordino/experiments/runner.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

struct ExperimentFlags {
  std::string name;
  std::string out;
  std::string jobs = "1";
  std::string device;
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

std::string CommandLineOf(const ExperimentFlags& flags) {
  std::string line = "sordino experiment " + flags.name;
  if (flags.quick) line += " --quick";
  if (!flags.device.empty()) line += " --device " + flags.device;
  return line;
}

void PrintOutcome(const Experiment& experiment, const std::vector<CellResult>& results,
                  const std::filesystem::path& folder, const ExperimentFlags& flags,
                  std::size_t failed) {
  if (!flags.json) {
    std::cout << ShownLines(SummaryPage(experiment, results, CommandLineOf(flags)));
    std::cout << fmt::format("\nResults: {}\n", folder.string());
    return;
  }
  Json report = NewReport();
  report["experiment"] = experiment.name;
  report["folder"] = folder.string();
  report["cells"] = results.size();
  report["failed"] = failed;
  report["spending"] = SpendingSentence(experiment);
  Json pictures = Json::array();
  for (const Picture& picture : experiment.pictures) pictures.push_back(picture.name + ".svg");
  report["pictures"] = std::move(pictures);
  PrintReport(report);
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

void RunExperiment(const CLI::App& app, const ExperimentFlags& flags) {
  if (flags.name.empty()) {
    throw Error(
        "no experiment was given; give a name of 'sordino experiment list', or a TOML file of your "
        "own.");
  }
  const int jobs = JobsFrom(flags.jobs);
  const Experiment experiment = FindExperiment(flags.name, flags.quick);
  const FindCommand find = CommandsOf(app);
  const std::vector<Cell> cells = MakeCells(experiment, find, flags.device);
  if (flags.dry_run) {
    for (const Cell& cell : cells) {
      std::cout << "sordino";
      for (const std::string& word : cell.words) std::cout << ' ' << ShownText(word);
      std::cout << '\n';
    }
    return;
  }
  const std::filesystem::path out =
      !flags.out.empty() ? std::filesystem::path(flags.out)
                         : std::filesystem::path("experiments") /
                               (experiment.name + (experiment.quick ? "-quick" : ""));
  const ResultsFolder folder(out, experiment);
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const char* const data = std::getenv("SORDINO_DATA");
  const std::vector<CellResult> results = RunCells(experiment, cells, folder,
                                                   {.program = program,
                                                    .jobs = jobs,
                                                    .data = data == nullptr ? "" : data,
                                                    .progress = Progress::DetectStyle()});
  WriteResults(experiment, results, folder.path(), CommandLineOf(flags));
  WritePage(find, folder, program);
  std::size_t failed = 0;
  for (const CellResult& result : results) {
    if (result.failure.empty()) continue;
    if (failed++ == 0) {
      std::cerr << fmt::format("sordino: a cell failed with {}\n", ShownText(result.failure));
    }
  }
  PrintOutcome(experiment, results, folder.path(), flags, failed);
  if (failed > 0) throw EndWith{kFailure};
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
  show->add_option("experiment", *name, "Its name")->type_name("NAME")->required();
  show->footer("Example:\n  sordino experiment show composition > mine.toml");
  show->callback([name] { ShowExperiment(*name); });
}

}  // namespace

void AddExperimentCommand(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "experiment", "A command over a grid of settings, with tables and pictures of the results.");
  const auto flags = std::make_shared<ExperimentFlags>();
  command->add_option("experiment", flags->name, "A name of 'experiment list', or a TOML file")
      ->type_name("NAME|FILE");
  command
      ->add_option(
          "--out", flags->out,
          "The folder of the results; experiments/NAME if left out. Finished cells in it are kept")
      ->type_name("FOLDER");
  command->add_option("--jobs", flags->jobs, "Cells that run at the same time (1)")->type_name("N");
  command
      ->add_option("--device", flags->device,
                   "Given to commands that have one: cpu, cuda or cuda:N")
      ->type_name("NAME");
  command->add_flag("--quick", flags->quick, "The quick form: some minutes at most");
  command->add_flag("--dry-run", flags->dry_run, "Print the command of each cell; run nothing");
  command->add_flag("--json", flags->json, "One JSON object on standard output");
  command->footer(
      "Examples:\n  sordino experiment list\n  sordino experiment composition --quick --out "
      "composition");
  command->require_subcommand(0, 1);
  AddListing(*command);
  command->callback([&app, command, flags] {
    if (command->get_subcommands().empty()) RunExperiment(app, *flags);
  });
}

}  // namespace sordino
