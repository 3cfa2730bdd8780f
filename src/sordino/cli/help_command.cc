#include "sordino/cli/help_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "sordino/base/known_name.h"
#include "sordino/cli/command_tree.h"
#include "sordino/cli/completion.h"
#include "sordino/cli/manual.h"
#include "sordino/cli/report_json.h"
#include "sordino/cli/torch_program.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 3> kShells = {"bash", "zsh", "fish"};

void PrintCompletion(const CommandNode& root, const std::string& shell) {
  switch (IndexOfName("the shell", shell, kShells)) {
    case 0:
      std::cout << BashCompletion(root);
      break;
    case 1:
      std::cout << ZshCompletion(root);
      break;
    default:
      std::cout << FishCompletion(root);
  }
}

void AddHelp(CLI::App& app, CommandNode (*describe)(const CLI::App&)) {
  CLI::App* help = app.add_subcommand("help", "Shows the help of a command.");
  const auto names = std::make_shared<std::vector<std::string>>();
  const auto json = std::make_shared<bool>(false);
  help->add_option("command", *names, "The command; left out: the list of them")
      ->type_name("COMMAND");
  help->add_flag("--json", *json, "All commands and flags as one JSON object");
  help->footer("Example:\n  sordino help ledger init");
  // Without --json it is the command's own --help that is run (WithoutHelpCommand).
  help->callback([&app, names, json, describe] {
    Json report = NewReport();
    report["program"] = CommandJson(describe(app));
    PrintReport(report);
  });
}

}  // namespace

CommandNode WholeCommandTree(const CLI::App& app) {
  CommandNode root = DescribeApp(app);
  const Json other = Json::parse(OutputOfTorchProgram({"help", "--json"}), nullptr, false);
  if (!other.is_object() || !other.contains("program")) return root;
  for (CommandNode& theirs : ParseCommandJson(other["program"]).commands) {
    const auto ours = std::find_if(root.commands.begin(), root.commands.end(),
                                   [&](const CommandNode& c) { return c.name == theirs.name; });
    if (ours != root.commands.end() && theirs.name != "help") *ours = std::move(theirs);
  }
  return root;
}

std::vector<std::string> WithoutHelpCommand(const CLI::App& app, std::vector<std::string> words) {
  if (words.empty() || words.front() != "help") return words;
  if (std::find(words.begin(), words.end(), "--json") != words.end()) return words;
  words.erase(words.begin());
  // What follows the name of a command is not looked at: nothing but its help is ever run.
  std::vector<std::string> asked;
  const CLI::App* command = &app;
  for (const std::string& name : words) {
    const auto found =
        command->get_subcommands([&](const CLI::App* known) { return known->get_name() == name; });
    if (found.empty()) {
      if (command == &app) return {name};  // refused: it is not a command
      break;
    }
    command = found.front();
    asked.push_back(name);
  }
  asked.emplace_back("--help");
  return asked;
}

void AddHelpCommands(CLI::App& app, const std::string& version) {
  AddHelp(app, WholeCommandTree);

  CLI::App* completion =
      app.add_subcommand("completion", "Prints a script that completes commands in a shell.");
  const auto shell = std::make_shared<std::string>();
  SetChoices(
      *completion->add_option("shell", *shell, "bash, zsh or fish")->type_name("SHELL")->required(),
      kShells);
  completion->footer(
      "Examples:\n"
      "  source <(sordino completion bash)\n"
      "  sordino completion zsh > ~/.zfunc/_sordino\n"
      "  sordino completion fish > ~/.config/fish/completions/sordino.fish");
  completion->callback([&app, shell] { PrintCompletion(WholeCommandTree(app), *shell); });

  CLI::App* manual = app.add_subcommand("manual", "Prints a manual page, or the names of all.");
  const auto name = std::make_shared<std::string>();
  manual->add_option("page", *name, "The page, such as sordino-train; left out: their names")
      ->type_name("PAGE");
  manual->footer("Example:\n  sordino manual sordino-ledger | man -l -");
  manual->callback([&app, name, version] {
    const CommandNode root = WholeCommandTree(app);
    if (!name->empty()) {
      std::cout << ManualPage(root, *name, version);
      return;
    }
    for (const std::string& page : ManualNames(root)) std::cout << page << '\n';
  });
}

void AddHelpJsonCommand(CLI::App& app) { AddHelp(app, DescribeApp); }

}  // namespace sordino
