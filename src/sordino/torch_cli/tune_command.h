// `sordino tune`: the best of several private trainings, as one charge.
#ifndef SORDINO_TORCH_CLI_TUNE_COMMAND_H_
#define SORDINO_TORCH_CLI_TUNE_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

void AddTuneCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_TUNE_COMMAND_H_
