#include "sordino/cli/command_tree.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sordino/cli/help_page.h"

namespace sordino {
namespace {

using Json = nlohmann::ordered_json;

// CLI11 keeps validators by name: one that is never active carries the list.
constexpr std::string_view kChoices = "choices:";

std::vector<std::string> ChoicesOf(CLI::Option& option) {
  std::vector<std::string> choices;
  try {
    for (int i = 0;; ++i) {
      const std::string& name = option.get_validator(i)->get_name();
      if (!name.starts_with(kChoices)) continue;
      std::istringstream list(name.substr(kChoices.size()));
      for (std::string choice; std::getline(list, choice, '|');) choices.push_back(choice);
    }
  } catch (const CLI::OptionNotFound&) {
    return choices;  // that was the last
  }
}

OptionNode DescribeOption(CLI::Option& option) {
  OptionNode node;
  node.is_place = option.get_positional();
  if (node.is_place) {
    node.names.push_back(option.get_type_name().empty() ? option.get_name()
                                                        : option.get_type_name());
  } else {
    for (const std::string& name : option.get_snames()) node.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) node.names.push_back("--" + name);
  }
  if (option.get_items_expected_max() > 0) node.value = option.get_type_name();
  node.help = option.get_description();
  node.group = option.get_group();
  node.choices = ChoicesOf(option);
  node.is_required = option.get_required();
  node.repeats = option.get_items_expected_max() > 1;
  return node;
}

}  // namespace

bool OptionNode::TakesFile() const {
  return value.find("FILE") != std::string::npos || value.find("FOLDER") != std::string::npos ||
         value.find("CONFIG") != std::string::npos;
}

void SetChoices(CLI::Option& option, std::span<const std::string_view> choices) {
  std::string name(kChoices);
  for (const std::string_view choice : choices) name.append(choice).append("|");
  CLI::Validator carrier([](std::string&) { return std::string(); }, "", name);
  option.check(carrier.active(false));
}

CommandNode DescribeApp(const CLI::App& app) {
  CommandNode node;
  node.name = app.get_name();
  node.summary = app.get_description();
  node.footer = app.get_footer();
  // CLI11 gives validators of options that may be changed only.
  for (CLI::Option* option :
       const_cast<CLI::App&>(app).get_options([](const CLI::Option*) { return true; })) {
    if (!option->get_group().empty()) node.options.push_back(DescribeOption(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) node.commands.push_back(DescribeApp(*command));
  }
  if (app.get_parent() == nullptr) {
    std::stable_sort(node.commands.begin(), node.commands.end(), [](const auto& a, const auto& b) {
      return PlaceOfCommand(a.name) < PlaceOfCommand(b.name);
    });
  }
  return node;
}

Json CommandJson(const CommandNode& command) {
  Json json;
  json["name"] = command.name;
  json["summary"] = command.summary;
  json["footer"] = command.footer;
  json["options"] = Json::array();
  for (const OptionNode& option : command.options) {
    json["options"].push_back({{"names", option.names},
                               {"value", option.value},
                               {"help", option.help},
                               {"group", option.group},
                               {"choices", option.choices},
                               {"place", option.is_place},
                               {"required", option.is_required},
                               {"repeats", option.repeats}});
  }
  json["commands"] = Json::array();
  for (const CommandNode& child : command.commands) json["commands"].push_back(CommandJson(child));
  return json;
}

CommandNode ParseCommandJson(const Json& json) {
  CommandNode node;
  node.name = json.at("name").get<std::string>();
  node.summary = json.at("summary").get<std::string>();
  node.footer = json.at("footer").get<std::string>();
  for (const Json& option : json.at("options")) {
    OptionNode parsed;
    parsed.names = option.at("names").get<std::vector<std::string>>();
    parsed.value = option.at("value").get<std::string>();
    parsed.help = option.at("help").get<std::string>();
    parsed.group = option.at("group").get<std::string>();
    parsed.choices = option.at("choices").get<std::vector<std::string>>();
    parsed.is_place = option.at("place").get<bool>();
    parsed.is_required = option.at("required").get<bool>();
    parsed.repeats = option.at("repeats").get<bool>();
    node.options.push_back(std::move(parsed));
  }
  for (const Json& child : json.at("commands")) node.commands.push_back(ParseCommandJson(child));
  return node;
}

}  // namespace sordino
