// `sordino account`: how much privacy was spent, by every method.
#ifndef SORDINO_CLI_ACCOUNT_COMMAND_H_
#define SORDINO_CLI_ACCOUNT_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Adds the command to the program. Its mistakes are thrown as sordino::Error while app parses.
void AddAccountCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_CLI_ACCOUNT_COMMAND_H_
