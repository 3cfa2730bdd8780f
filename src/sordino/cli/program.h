// How our programs start, end and speak: `sordino` and `sordino-torch` behave as one.
//
//   0  the command did what was asked (help and version too)
//   2  a mistake of the user's, told in one sentence
//   1  a failure that is not the user's
//
// Standard output carries results only; everything else goes to standard error.
#ifndef SORDINO_CLI_PROGRAM_H_
#define SORDINO_CLI_PROGRAM_H_

#include <string_view>

namespace CLI {
class App;
}

namespace sordino {

inline constexpr int kOk = 0;
inline constexpr int kFailure = 1;
inline constexpr int kMistake = 2;

// --force of a command that writes a file (base/output_file.h).
void AddForceFlag(CLI::App& command, bool& force);

// Writes "sordino: <sentence>" to standard error; returns the code.
int Report(int code, std::string_view sentence);

// Parses the command line, which runs the command that it names, flushes what was written and
// returns the exit code.
int RunCommandLine(CLI::App& app, int argc, char** argv);

}  // namespace sordino

#endif  // SORDINO_CLI_PROGRAM_H_
