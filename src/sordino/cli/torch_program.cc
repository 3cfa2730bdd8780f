#include "sordino/cli/torch_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "sordino/base/check.h"
#include "sordino/cli/program.h"

namespace sordino {
namespace {

struct TorchCommand {
  std::string_view name;
  std::string_view summary;
};

constexpr std::array<TorchCommand, 4> kTorchCommands = {{
    {"bench", "What privacy costs on this machine: private steps beside ordinary ones."},
    {"data", "What is declared about data, which of it is public, and where it comes from."},
    {"predict", "Applies a trained model to records."},
    {"train", "From data to a private model, its accuracy, its epsilon and its statement."},
}};

const TorchCommand* Find(std::string_view name) {
  const auto* const found =
      std::find_if(kTorchCommands.begin(), kTorchCommands.end(),
                   [&](const TorchCommand& command) { return command.name == name; });
  return found == kTorchCommands.end() ? nullptr : found;
}

}  // namespace

bool IsTorchCommand(std::string_view name) { return Find(name) != nullptr; }

std::string TorchCommandSummary(std::string_view name) {
  const TorchCommand* const command = Find(name);
  SORDINO_CHECK(command != nullptr, "a command of sordino-torch is missing from the list");
  return std::string(command->summary);
}

void ListTorchCommands(CLI::App& app) {
  for (const TorchCommand& command : kTorchCommands) {
    app.add_subcommand(std::string(command.name), std::string(command.summary));
  }
}

int BecomeTorchProgram(char** argv) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return Report(kFailure, fmt::format("the place of this program could not be read from "
                                        "/proc/self/exe: {}.",
                                        error.message()));
  }
  const std::filesystem::path program = self.parent_path() / "sordino-torch";
  execv(program.c_str(), argv);
  if (errno == ENOENT) {
    return Report(kMistake,
                  fmt::format("'{}' needs libtorch, and this sordino was built without it; build "
                              "with -DSORDINO_TORCH=ON, which puts sordino-torch beside sordino.",
                              argv[1]));
  }
  return Report(kFailure, fmt::format("{} could not be started: {}.", program.string(),
                                      std::strerror(errno)));
}

}  // namespace sordino
