#include "sordino/torch_cli/peer_steps.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "sordino/base/error.h"
#include "sordino/torch_cli/peer_scripts.h"

namespace sordino {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kNoInterpreter = 127;

struct Worker {
  std::string_view script;
  std::array<std::string_view, 4> contenders;  // empty: none
};
constexpr std::array<Worker, 2> kWorkers = {{
    {"step_torch.py", {"torch, not private", "torch.func vmap", "opacus hooks", "opacus ghost"}},
    {"step_jax.py", {"jax jit vmap", "", "", ""}},
}};

// A folder with the scripts, gone with the object.
class ScriptFolder {
 public:
  ScriptFolder() {
    std::string pattern = (fs::temp_directory_path() / "sordino-peers-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "a temporary folder");
    }
    folder_ = pattern;
    for (const PeerScript& script : PeerScripts()) {
      std::ofstream(folder_ / script.file) << script.text;
    }
  }
  ~ScriptFolder() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  ScriptFolder(const ScriptFolder&) = delete;
  ScriptFolder& operator=(const ScriptFolder&) = delete;

  const fs::path& path() const { return folder_; }

 private:
  fs::path folder_;
};

// Runs the interpreter on a script in the folder, with files as standard input and output; gives
// its exit code.
int RunScript(const std::string& python, const fs::path& folder, const std::string& script) {
  const std::string input = (folder / "questions").string();
  const std::string output = (folder / "answers").string();
  const std::string place = folder.string();
  const pid_t child = ::fork();
  if (child == 0) {
    const int in = ::open(input.c_str(), O_RDONLY);
    const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int nowhere = ::open("/dev/null", O_WRONLY);
    if (in < 0 || out < 0 || nowhere < 0 || ::chdir(place.c_str()) != 0) ::_exit(1);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    std::string program = python;
    std::string argument = script;
    std::array<char*, 3> words = {program.data(), argument.data(), nullptr};
    ::execvp(program.c_str(), words.data());
    ::_exit(kNoInterpreter);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

PeerStep ReadAnswer(std::string_view name, std::istream& answers) {
  PeerStep step;
  step.name = name;
  std::string line;
  if (!std::getline(answers, line)) {
    step.problem = "the library is not there, or its process ended.";
    return step;
  }
  const Json answer = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (answer.is_object() && answer.contains("ms") && answer["ms"].is_number()) {
    step.milliseconds = answer["ms"].get<double>();
  } else if (answer.is_object() && answer.contains("error") && answer["error"].is_string()) {
    step.problem = answer["error"].get<std::string>();
  } else {
    step.problem = "its process gave no answer.";
  }
  return step;
}

}  // namespace

std::vector<PeerStep> TimePeers(const PeerQuestion& question) {
  const ScriptFolder folder;
  std::vector<PeerStep> steps;
  for (const Worker& worker : kWorkers) {
    {
      std::ofstream questions(folder.path() / "questions");
      for (const std::string_view contender : worker.contenders) {
        if (contender.empty()) continue;
        questions << Json{{"model", question.model},
                          {"batch", question.batch},
                          {"how", contender},
                          {"seconds", question.seconds},
                          {"device", question.device}}
                  << '\n';
      }
    }
    if (RunScript(question.python, folder.path(), std::string(worker.script)) == kNoInterpreter) {
      throw Error(fmt::format(
          "--peers is '{}', which is no program that can be started; name a Python interpreter "
          "with torch, opacus or jax.",
          question.python));
    }
    std::ifstream answers(folder.path() / "answers");
    for (const std::string_view contender : worker.contenders) {
      if (!contender.empty()) steps.push_back(ReadAnswer(contender, answers));
    }
  }
  return steps;
}

}  // namespace sordino
