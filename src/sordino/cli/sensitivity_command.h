// sordino sensitivity STATISTIC: how far a statistic can move when one record changes.
#ifndef SORDINO_CLI_SENSITIVITY_COMMAND_H_
#define SORDINO_CLI_SENSITIVITY_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

void AddSensitivityCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_CLI_SENSITIVITY_COMMAND_H_
