// What the commands take, as data: `sordino help --json`, completions and manual pages are made
// from it, so they say what --help says.
#ifndef SORDINO_CLI_COMMAND_TREE_H_
#define SORDINO_CLI_COMMAND_TREE_H_

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sordino {

struct OptionNode {
  std::vector<std::string> names;  // "-h", "--help"; of a place on the line: "FILE"
  std::string value;               // its name in the help; empty for a switch
  std::string help;
  std::string group;                 // the heading that it stands under
  std::vector<std::string> choices;  // that its value can be; empty: any
  bool is_place = false;             // without a flag
  bool is_required = false;
  bool repeats = false;

  bool TakesFile() const;  // a file or folder, by the name of its value
};

struct CommandNode {
  std::string name;
  std::string summary;
  std::string footer;  // examples
  std::vector<OptionNode> options;
  std::vector<CommandNode> commands;
};

// Says which values an option can have. They are not checked here.
void SetChoices(CLI::Option& option, std::span<const std::string_view> choices);

CommandNode DescribeApp(const CLI::App& app);

nlohmann::ordered_json CommandJson(const CommandNode& command);
CommandNode ParseCommandJson(const nlohmann::ordered_json& json);  // the inverse

}  // namespace sordino

#endif  // SORDINO_CLI_COMMAND_TREE_H_
