// `sordino release`: private statistics of a CSV file.
#ifndef SORDINO_CLI_RELEASE_COMMAND_H_
#define SORDINO_CLI_RELEASE_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Adds the command to the program. Its mistakes are thrown as sordino::Error while app parses.
void AddReleaseCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_CLI_RELEASE_COMMAND_H_
