// `sordino calibrate`: the noise, the steps or the sampling rate that a budget allows.
#ifndef SORDINO_CLI_CALIBRATE_COMMAND_H_
#define SORDINO_CLI_CALIBRATE_COMMAND_H_

namespace CLI {
class App;
}

namespace sordino {

// Adds the command to the program. Its mistakes are thrown as sordino::Error while app parses.
void AddCalibrateCommand(CLI::App& app);

}  // namespace sordino

#endif  // SORDINO_CLI_CALIBRATE_COMMAND_H_
