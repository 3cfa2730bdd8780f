// `sordino plan noise`: how good a strategy of correlated noise is, and when it pays.
#ifndef SORDINO_CLI_PLAN_NOISE_COMMAND_H_
#define SORDINO_CLI_PLAN_NOISE_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Below `plan`.
void AddPlanNoiseCommand(CLI::App& plan);

}  // namespace sordino

#endif  // SORDINO_CLI_PLAN_NOISE_COMMAND_H_
