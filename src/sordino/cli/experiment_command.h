// `sordino experiment`: a command over a grid of settings, with tables and pictures of the results.
#ifndef SORDINO_CLI_EXPERIMENT_COMMAND_H_
#define SORDINO_CLI_EXPERIMENT_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// `app` must outlive what is added to it: its commands are what experiments run.
void AddExperimentCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_CLI_EXPERIMENT_COMMAND_H_
