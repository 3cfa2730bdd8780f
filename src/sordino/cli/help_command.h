// `sordino help`, `completion` and `manual`: what the commands take, for people, shells and man(1).
#ifndef SORDINO_CLI_HELP_COMMAND_H_
#define SORDINO_CLI_HELP_COMMAND_H_

#include <string>
#include <vector>

#include "sordino/cli/command_tree.h"

namespace CLI {
class App;
}

namespace sordino {

// The words of `sordino help ...` as those of the command that shows the same: `help ledger init`
// becomes `ledger init --help`, whatever follows it, and a first name that is not known is left to
// be refused. Other words stay as they are, and so do those of `help --json`.
std::vector<std::string> WithoutHelpCommand(const CLI::App& app, std::vector<std::string> words);

// The commands of this program and of sordino-torch, where that lies beside it.
CommandNode WholeCommandTree(const CLI::App& app);

// `app` must outlive what is added to it. Those of sordino-torch are asked for where it lies beside
// this program.
void AddHelpCommands(CLI::App& app, const std::string& version);
// `help --json` alone, for sordino-torch.
void AddHelpJsonCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_CLI_HELP_COMMAND_H_
