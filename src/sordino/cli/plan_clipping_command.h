// `sordino plan clipping`: whether the loss falls to 0 under each way to clip, by gradient flows of
// drawn problems.
#ifndef SORDINO_CLI_PLAN_CLIPPING_COMMAND_H_
#define SORDINO_CLI_PLAN_CLIPPING_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Below `plan`.
void AddPlanClippingCommand(CLI::App& plan);

}  // namespace sordino

#endif  // SORDINO_CLI_PLAN_CLIPPING_COMMAND_H_
