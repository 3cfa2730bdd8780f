#include "sordino/cli/value_flag.h"

#include <CLI/CLI.hpp>

namespace sordino {

CLI::Option* AddValue(CLI::App& command, const std::string& flag, std::string& value,
                      const std::string& type, const std::string& help) {
  return command.add_option(flag, value, help)->type_name(type);
}

CLI::Option* AddValue(CLI::App& command, const std::string& flag, std::optional<std::string>& value,
                      const std::string& type, const std::string& help) {
  return command.add_option(flag, value, help)->type_name(type);
}

}  // namespace sordino
