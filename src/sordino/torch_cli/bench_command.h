// `sordino bench step`: what does privacy cost for this model on this machine?
#ifndef SORDINO_TORCH_CLI_BENCH_COMMAND_H_
#define SORDINO_TORCH_CLI_BENCH_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Adds the command to the program. Its mistakes are thrown as sordino::Error while app parses.
void AddBenchCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_BENCH_COMMAND_H_
