// `sordino predict`: applies the model of a run to records.
#ifndef SORDINO_TORCH_CLI_PREDICT_COMMAND_H_
#define SORDINO_TORCH_CLI_PREDICT_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Adds the command to the program. Its mistakes are thrown as sordino::Error while app parses.
void AddPredictCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_PREDICT_COMMAND_H_
