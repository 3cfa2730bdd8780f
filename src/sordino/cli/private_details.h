// How the commands that read private data report what was refused: one sentence without anything
// that is in the data, and on request the detail of a DataError on standard error.
#ifndef SORDINO_CLI_PRIVATE_DETAILS_H_
#define SORDINO_CLI_PRIVATE_DETAILS_H_

#include <functional>

namespace CLI {
class App;
}

namespace sordino {

// --show-private
void AddShowPrivate(CLI::App& command, bool& show_private);

// Runs `action`; the detail of a DataError is printed if it was asked for.
void ReportPrivateDetails(bool show_private, const std::function<void()>& action);

}  // namespace sordino

#endif  // SORDINO_CLI_PRIVATE_DETAILS_H_
