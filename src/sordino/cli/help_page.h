// What --help shows: a page with what people need first. --help-all shows every flag.
//
// One table says which flags are on the page of a command with many, one in which order headings
// and commands stand. A command without a row has all of its flags on its page.
#ifndef SORDINO_CLI_HELP_PAGE_H_
#define SORDINO_CLI_HELP_PAGE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace sordino {

// For a program, before its commands are added: they inherit it.
void UseHelpPages(CLI::App& app);

// Pairs of a command, "train" or "audit membership", and a flag on its page, for tests.
std::vector<std::pair<std::string_view, std::string_view>> FlagsOfHelpPages();

// The place of a command in the list of them, from 0; after all others where it is not named.
std::size_t PlaceOfCommand(std::string_view name);

}  // namespace sordino

#endif  // SORDINO_CLI_HELP_PAGE_H_
