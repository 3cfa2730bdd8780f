// `sordino report`: runs, experiments and ledgers as a page, a table or event files.
#ifndef SORDINO_CLI_REPORT_COMMAND_H_
#define SORDINO_CLI_REPORT_COMMAND_H_

#include <string>

namespace CLI {
class App;
}

namespace sordino {

void AddReportCommand(CLI::App& app, const std::string& version);

}  // namespace sordino

#endif  // SORDINO_CLI_REPORT_COMMAND_H_
