// `sordino fit`: a private linear model of a table, by the method that theory expects to do best.
#ifndef SORDINO_TORCH_CLI_FIT_COMMAND_H_
#define SORDINO_TORCH_CLI_FIT_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Adds the command to the program. Its mistakes are thrown as sordino::Error while app parses.
void AddFitCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_FIT_COMMAND_H_
