// The commands that need libtorch live in a second program, sordino-torch, that is installed
// beside this one. `sordino bench ...` replaces itself with it, so that a user sees one program
// and the other commands do not pay for loading 300 MB of libraries.
#ifndef SORDINO_CLI_TORCH_PROGRAM_H_
#define SORDINO_CLI_TORCH_PROGRAM_H_

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace sordino {

// `plan --learn FILE` is another spelling of `plan learn FILE`, and so is `plan --from-run`.
std::vector<std::string> WithLearnCommand(std::vector<std::string> words);

// Whether a command line begins with one of them.
bool IsTorchCommand(const std::vector<std::string>& words);

// The line of a torch command in `sordino --help`.
std::string TorchCommandSummary(std::string_view name);

// Puts the commands, some of them below others that are there, into the help and among the names
// that are suggested for a misspelt one.
void ListTorchCommands(CLI::App& app);

// What sordino-torch prints on standard output for these words; empty where it is not there or
// fails.
std::string OutputOfTorchProgram(const std::vector<std::string>& words);

// Replaces this process by sordino-torch with these words. Returns an exit code, with the reason
// written to standard error, only where that is not possible.
int BecomeTorchProgram(const std::vector<std::string>& words);

}  // namespace sordino

#endif  // SORDINO_CLI_TORCH_PROGRAM_H_
