// `sordino plan learn`: a schedule of the noise, learned on public data.
#ifndef SORDINO_TORCH_CLI_LEARN_COMMAND_H_
#define SORDINO_TORCH_CLI_LEARN_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Below the command `plan`, which must be there.
void AddLearnCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_LEARN_COMMAND_H_
