// How our programs start, end and print: `sordino` and `sordino-torch` behave as one.
//
// Standard output carries results only; everything else goes to standard error. With --json an
// error is an object on standard output too.
#ifndef SORDINO_CLI_PROGRAM_H_
#define SORDINO_CLI_PROGRAM_H_

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace sordino {

inline constexpr int kOk = 0;
inline constexpr int kFailure = 1;
inline constexpr int kMistake = 2;
inline constexpr int kEndedEarly = 3;
inline constexpr int kLostRank = 4;
inline constexpr int kSignal = 128;  // and its number

// What they mean: manual pages and docs/cli.md say the same.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kExitCodes = {{
    {"0", "The command did what was asked."},
    {"1", "A failure that is not the user's: a disk that is full, a file that cannot be read."},
    {"2", "A mistake, reported in one sentence; nothing was released."},
    {"3",
     "A training ended early because its ledger admits no further step; the model of the "
     "steps that were made is there."},
    {"4",
     "Another process of a training with several did not join, was lost or hung; what was charged "
     "stays charged, and the run can be resumed from its newest checkpoint."},
    {"128+N",
     "Signal N ended it: 130 after Ctrl-C (SIGINT), 143 after SIGTERM, 129 after SIGHUP. A "
     "training has then written the model of its steps, and can be resumed."},
}};

// Thrown by a command that has written all of its output and ends with another code than 0.
struct EndWith {
  int code;
};

// --force of a command that writes a file (base/output_file.h).
void AddForceFlag(CLI::App& command, bool& force);

// Whether --json is among the words of a command line.
bool WantsJson(const std::vector<std::string>& words);

// Writes "sordino: <sentence>" to standard error and, with `json`, {"schema": 1, "error": ...} to
// standard output; returns the code.
int Report(int code, std::string_view sentence, bool json);

// The words that RunCommandLine was given as a line for a shell: "sordino train 'my data.csv'".
std::string GivenLine();

// Parses the words after the program's name, which runs the command that they name, flushes what
// was written and returns the exit code.
int RunCommandLine(CLI::App& app, std::vector<std::string> words);

}  // namespace sordino

#endif  // SORDINO_CLI_PROGRAM_H_
