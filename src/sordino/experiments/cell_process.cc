#include "sordino/experiments/internal/cell_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace sordino::internal {
namespace {

constexpr int kSignalCode = 128;
constexpr int kNotStarted = 127;
constexpr double kKibInMb = 1024 / 1e6;

int OpenFile(const char* path, int flags) { return ::open(path, flags | O_CLOEXEC, 0644); }

// In the child, between fork and exec: calls that are safe there only.
[[noreturn]] void Become(const char* program, char* const* arguments, int in, int out, int err,
                         pid_t parent) {
  // The cell does not outlive the experiment, however that ends.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent || ::dup2(in, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 ||
      ::dup2(err, STDERR_FILENO) < 0) {
    ::_exit(kNotStarted);
  }
  ::signal(SIGPIPE, SIG_DFL);
  ::execv(program, arguments);
  ::_exit(kNotStarted);
}

}  // namespace

CellProcess::CellProcess(const ProcessRequest& request) : start_(std::chrono::steady_clock::now()) {
  const int in = OpenFile("/dev/null", O_RDONLY);
  const int out = OpenFile(request.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  const int err = OpenFile(request.messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC);
  std::vector<std::string> words = request.words;
  std::string name = "sordino";
  std::vector<char*> arguments = {name.data()};
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  if (request.threads > 0) {
    ::setenv("OMP_NUM_THREADS", fmt::format("{}", request.threads).c_str(), 0);
  }
  int error = errno;
  if (in >= 0 && out >= 0 && err >= 0) {
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ == 0) Become(request.program.c_str(), arguments.data(), in, out, err, parent);
    error = errno;
  }
  for (const int file : {in, out, err}) {
    if (file >= 0) ::close(file);
  }
  if (child_ < 0) {
    throw std::runtime_error(fmt::format("a cell could not be started: {}.", std::strerror(error)));
  }
}

CellProcess::CellProcess(CellProcess&& other) noexcept
    : child_(std::exchange(other.child_, -1)), start_(other.start_) {}

CellProcess::~CellProcess() {
  if (child_ < 0) return;
  ::kill(child_, SIGTERM);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<ProcessEnd> CellProcess::Poll() {
  int status = 0;
  rusage usage{};
  const pid_t ended = ::wait4(child_, &status, WNOHANG, &usage);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return std::nullopt;
  if (ended < 0) throw std::runtime_error("a cell was lost: nobody can wait for its process.");
  child_ = -1;
  ProcessEnd end;
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : kSignalCode + WTERMSIG(status);
  end.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  end.memory_mb = static_cast<double>(usage.ru_maxrss) * kKibInMb;
  return end;
}

void CellProcess::Signal(int signal) const {
  if (child_ >= 0) ::kill(child_, signal);
}

}  // namespace sordino::internal
