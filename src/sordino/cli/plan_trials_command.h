// `sordino plan mean` and `sordino plan descent`: what theory predicts, and what was measured on
// records that are made up.
#ifndef SORDINO_CLI_PLAN_TRIALS_COMMAND_H_
#define SORDINO_CLI_PLAN_TRIALS_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Below `plan`.
void AddPlanTrialsCommands(CLI::App& plan);

}  // namespace sordino

#endif  // SORDINO_CLI_PLAN_TRIALS_COMMAND_H_
