// Flags that take a value.
#ifndef SORDINO_CLI_VALUE_FLAG_H_
#define SORDINO_CLI_VALUE_FLAG_H_

#include <optional>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace sordino {

// Adds a flag, or a word without one, whose value is called `type` in the help.
CLI::Option* AddValue(CLI::App& command, const std::string& flag, std::string& value,
                      const std::string& type, const std::string& help);
CLI::Option* AddValue(CLI::App& command, const std::string& flag, std::optional<std::string>& value,
                      const std::string& type, const std::string& help);

}  // namespace sordino

#endif  // SORDINO_CLI_VALUE_FLAG_H_
