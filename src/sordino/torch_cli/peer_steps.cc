#include "sordino/torch_cli/peer_steps.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>
#include <system_error>

#include "sordino/base/check.h"
#include "sordino/base/error.h"
#include "sordino/torch_cli/peer_scripts.h"

namespace sordino {
namespace {

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

std::string ScriptText(std::string_view file) {
  for (const PeerScript& script : PeerScripts()) {
    if (script.file == file) return std::string(script.text);
  }
  SORDINO_CHECK(false, "the program does not carry a script of its peers");
  return {};
}

// Whole, or nothing more can be written.
void WriteAll(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(to, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string ReadAll(int from) {
  std::string text;
  std::array<char, 4096> block{};
  while (true) {
    const ssize_t size = ::read(from, block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(block.data(), static_cast<std::size_t>(size));
  }
}

struct Ended {
  int code = 1;
  std::string output;
};

// Runs the interpreter on code, with `input`, which it reads to its end before it writes.
Ended RunPython(const std::string& python, const std::string& code, std::string_view input) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe(in.data()) != 0 || ::pipe(out.data()) != 0) {
    throw std::system_error(errno, std::generic_category(), "a pipe");
  }
  std::array<std::string, 3> words = {python, "-c", code};
  std::array<char*, 4> arguments = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(in[0], STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    for (const int end : {in[0], in[1], out[0], out[1]}) ::close(end);
    ::execvp(arguments[0], arguments.data());
    ::_exit(kNoInterpreter);
  }
  ::close(in[0]);
  ::close(out[1]);
  Ended ended;
  if (child > 0) {
    WriteAll(in[1], input);
    ::close(in[1]);
    ended.output = ReadAll(out[0]);
    int status = 0;
    if (::waitpid(child, &status, 0) == child && WIFEXITED(status)) {
      ended.code = WEXITSTATUS(status);
    }
  } else {
    ::close(in[1]);
  }
  ::close(out[0]);
  return ended;
}

PeerStep ReadAnswer(std::string_view name, std::istream& answers) {
  PeerStep step;
  step.name = name;
  std::string line;
  if (!std::getline(answers, line)) {
    step.problem = "its process ended.";
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

void CheckPeers(const std::string& python) {
  if (RunPython(python, "", "").code == 0) return;
  throw Error(
      fmt::format("--peers is '{}', which is not a Python interpreter that can be started; name "
                  "one with torch, "
                  "opacus or jax.",
                  python));
}

std::vector<PeerStep> TimePeers(const PeerQuestion& question) {
  std::vector<PeerStep> steps;
  for (const Worker& worker : kWorkers) {
    std::string questions;
    for (const std::string_view contender : worker.contenders) {
      if (contender.empty()) continue;
      const Json asked = {{"model", question.model},   {"batch", question.batch},
                          {"how", contender},          {"seconds", question.seconds},
                          {"device", question.device}, {"threads", question.threads}};
      questions += asked.dump() + '\n';
    }
    const Json input = {{"step_worker", ScriptText("step_worker.py")},
                        {"script", ScriptText(worker.script)},
                        {"questions", questions}};
    std::istringstream answers(
        RunPython(question.python, ScriptText("step_boot.py"), input.dump()).output);
    for (const std::string_view contender : worker.contenders) {
      if (!contender.empty()) steps.push_back(ReadAnswer(contender, answers));
    }
  }
  return steps;
}

}  // namespace sordino
