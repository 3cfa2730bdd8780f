// `sordino train`: from data to a private model, its accuracy, its epsilon and its statement.
#ifndef SORDINO_TORCH_CLI_TRAIN_COMMAND_H_
#define SORDINO_TORCH_CLI_TRAIN_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Adds the command to the program. Its mistakes are thrown as sordino::Error while app parses.
void AddTrainCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_TRAIN_COMMAND_H_
