#include "sordino/cli/torch_program.h"

#include <fmt/format.h>
#include <sys/wait.h>
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
  std::string_view name;  // of a command below another one: both, with a blank between them
  std::string_view summary;
};

constexpr std::array<TorchCommand, 11> kTorchCommands = {{
    {"audit membership", "How well records that a model was trained on are told from others."},
    {"audit reconstruct", "What an adversary who knows all records but one rebuilds of it."},
    {"audit self",
     "What attacks on tiny problems prove about this program, beside what it claims."},
    {"bench", "What privacy costs on this machine: private steps beside ordinary ones."},
    {"data", "What is declared about data, which of it is public, and where it comes from."},
    {"fit", "The best private linear model of a table, by the method that theory chooses."},
    {"kernel", "What clipping does to the tangent kernel of a model, on public data."},
    {"plan learn", "A schedule of the noise, learned on public data."},
    {"predict", "Applies a trained model to records."},
    {"train", "From data to a private model, its accuracy, its epsilon and its statement."},
    {"tune", "The best of several private trainings, as one charge for all of them."},
}};

const TorchCommand* Find(std::string_view name) {
  const auto* const found =
      std::find_if(kTorchCommands.begin(), kTorchCommands.end(),
                   [&](const TorchCommand& command) { return command.name == name; });
  return found == kTorchCommands.end() ? nullptr : found;
}

// Beside this program; empty where its place is not known.
std::filesystem::path TorchProgram() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : self.parent_path() / "sordino-torch";
}

// For execv; points into the words.
std::vector<char*> Arguments(std::vector<std::string>& words) {
  static std::string name = "sordino";
  std::vector<char*> arguments = {name.data()};
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  return arguments;
}

}  // namespace

std::vector<std::string> WithLearnCommand(std::vector<std::string> words) {
  if (words.empty() || words[0] != "plan") return words;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bool learns = words[i] == "--learn";
    if (!learns && words[i] != "--from-run") continue;
    if (words[1] == "learn") return words;
    if (learns) words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
    words.insert(words.begin() + 1, "learn");
    return words;
  }
  return words;
}

bool IsTorchCommand(const std::vector<std::string>& words) {
  if (words.empty()) return false;
  return Find(words[0]) != nullptr ||
         (words.size() > 1 && Find(words[0] + ' ' + words[1]) != nullptr);
}

std::string TorchCommandSummary(std::string_view name) {
  const TorchCommand* const command = Find(name);
  SORDINO_CHECK(command != nullptr, "a command of sordino-torch is missing from the list");
  return std::string(command->summary);
}

void ListTorchCommands(CLI::App& app) {
  for (const TorchCommand& command : kTorchCommands) {
    const std::size_t blank = command.name.find(' ');
    CLI::App* const above = blank == std::string_view::npos
                                ? &app
                                : app.get_subcommand(std::string(command.name.substr(0, blank)));
    above->add_subcommand(
        std::string(command.name.substr(blank == std::string_view::npos ? 0 : blank + 1)),
        std::string(command.summary));
  }
}

std::string OutputOfTorchProgram(const std::vector<std::string>& words) {
  const std::filesystem::path program = TorchProgram();
  std::array<int, 2> ends{};
  if (program.empty() || access(program.c_str(), X_OK) != 0 || pipe(ends.data()) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    std::vector<std::string> copies = words;
    execv(program.c_str(), Arguments(copies).data());
    _exit(kFailure);
  }
  close(ends[1]);
  std::string output;
  std::array<char, 65536> block{};
  for (ssize_t size = 0; child > 0 && (size = read(ends[0], block.data(), block.size())) != 0;) {
    if (size > 0) output.append(block.data(), static_cast<std::size_t>(size));
    if (size < 0 && errno != EINTR) break;
  }
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) return "";
  return output;
}

int BecomeTorchProgram(const std::vector<std::string>& words) {
  const bool json = WantsJson(words);
  const std::filesystem::path program = TorchProgram();
  if (program.empty()) {
    return Report(kFailure, "the place of this program could not be read from /proc/self/exe.",
                  json);
  }
  std::vector<std::string> copies = words;
  execv(program.c_str(), Arguments(copies).data());
  if (errno == ENOENT) {
    return Report(kMistake,
                  fmt::format("'{}' needs libtorch, and this sordino was built without it; build "
                              "with -DSORDINO_TORCH=ON, which puts sordino-torch beside sordino.",
                              words.front()),
                  json);
  }
  return Report(kFailure,
                fmt::format("{} could not be started: {}.", program.string(), std::strerror(errno)),
                json);
}

}  // namespace sordino
