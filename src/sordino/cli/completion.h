// Scripts with which a shell completes the commands, flags and values of sordino.
#ifndef SORDINO_CLI_COMPLETION_H_
#define SORDINO_CLI_COMPLETION_H_

#include <string>

#include "sordino/cli/command_tree.h"

namespace sordino {

// `root` is the program; its commands may have commands.
std::string BashCompletion(const CommandNode& root);
std::string ZshCompletion(const CommandNode& root);
std::string FishCompletion(const CommandNode& root);

}  // namespace sordino

#endif  // SORDINO_CLI_COMPLETION_H_
