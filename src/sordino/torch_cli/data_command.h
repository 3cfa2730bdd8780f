// `sordino data`: what is declared about data, which of it is public, and where that comes from.
//
// The records are read and compared with their declaration. Nothing is printed that was learned
// from private records: not their number, not how often a label occurs. The test set is public and
// is described.
#ifndef SORDINO_TORCH_CLI_DATA_COMMAND_H_
#define SORDINO_TORCH_CLI_DATA_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Adds the command to the program. Its mistakes are thrown as sordino::Error while app parses.
void AddDataCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_DATA_COMMAND_H_
