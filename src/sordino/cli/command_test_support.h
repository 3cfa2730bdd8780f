// Calls a command in the test's own process, and the built program as a user would.
#ifndef SORDINO_CLI_COMMAND_TEST_SUPPORT_H_
#define SORDINO_CLI_COMMAND_TEST_SUPPORT_H_

#include <ostream>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sordino {

struct CommandOutcome {
  std::string out;
  std::string err;
  std::string error;  // in process: what was thrown, empty if nothing
  int exit_code = 0;  // of the program; -1 where a signal ended it
};

// `arguments` start with the name of the command that `add` adds.
CommandOutcome CallCommand(void (*add)(CLI::App&), std::vector<std::string> arguments);
CommandOutcome RunProgram(const std::vector<std::string>& arguments);

// A command line that cannot be answered, and what its sentence must say.
struct Mistake {
  const char* line;
  const char* part;
};
std::ostream& operator<<(std::ostream& out, const Mistake& mistake);  // names the test
// The program exits with 2, writes that one sentence to standard error and nothing else.
void ExpectMistake(const Mistake& mistake);

// A file of the running test with this content; returns its path.
std::string WriteTestFile(const std::string& name, const std::string& content);
std::string ReadTestFile(const std::string& path);

// Words of a command line, split at blanks.
std::vector<std::string> Words(const std::string& line);

}  // namespace sordino

#endif  // SORDINO_CLI_COMMAND_TEST_SUPPORT_H_
