// `sordino plan`: which schedule of noise spends a budget best, and how many steps are best, by
// theory alone.
#ifndef SORDINO_CLI_PLAN_COMMAND_H_
#define SORDINO_CLI_PLAN_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

void AddPlanCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_CLI_PLAN_COMMAND_H_
