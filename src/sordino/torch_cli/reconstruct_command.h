// sordino audit reconstruct: what an informed adversary rebuilds of a record.
#ifndef SORDINO_TORCH_CLI_RECONSTRUCT_COMMAND_H_
#define SORDINO_TORCH_CLI_RECONSTRUCT_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Below the command 'audit', which is there.
void AddReconstructCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_RECONSTRUCT_COMMAND_H_
