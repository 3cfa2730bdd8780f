// Manual pages for man(1), made from what --help says.
#ifndef SORDINO_CLI_MANUAL_H_
#define SORDINO_CLI_MANUAL_H_

#include <string>
#include <vector>

#include "sordino/cli/command_tree.h"

namespace sordino {

// "sordino", "sordino-train", "sordino-ledger-init", ...
std::vector<std::string> ManualNames(const CommandNode& root);

// The page of this name as roff source. Throws Error, with the nearest name, for one that is not.
std::string ManualPage(const CommandNode& root, const std::string& name,
                       const std::string& version);

}  // namespace sordino

#endif  // SORDINO_CLI_MANUAL_H_
