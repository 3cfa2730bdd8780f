// Real processes for tests of groups: starts programs with variables of their own and waits for
// them.
#ifndef SORDINO_DISTRIBUTED_TESTING_RANK_PROCESSES_H_
#define SORDINO_DISTRIBUTED_TESTING_RANK_PROCESSES_H_

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sordino/base/testing/test_folder.h"
#include "sordino/distributed/internal/listening_socket.h"

namespace sordino {

// A port of loopback that nobody listens on.
inline std::uint16_t FreePort() { return internal::ListeningSocket("127.0.0.1", 0).port(); }

struct ProcessEnd {
  int code = -1;  // of the program; 128 and a signal; -1 where it did not end in time
  std::string out;
  std::string err;
  double seconds = 0;
};

class TestProcess {
 public:
  TestProcess(std::vector<std::string> words, const std::map<std::string, std::string>& variables,
              std::filesystem::path output)
      : output_(std::move(output)), start_(std::chrono::steady_clock::now()) {
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    process_ = ::fork();
    if (process_ != 0) return;
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    Redirect(output_.string() + ".out", STDOUT_FILENO);
    Redirect(output_.string() + ".err", STDERR_FILENO);
    ::execv(argv[0], argv.data());
    ::_exit(126);
  }
  ~TestProcess() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  TestProcess(const TestProcess&) = delete;
  TestProcess& operator=(const TestProcess&) = delete;

  pid_t id() const { return process_; }

  // For at most five minutes.
  void WaitForOutput(const std::string& text) const {
    for (int i = 0; i < 30000 && Read(output_.string() + ".out").find(text) == std::string::npos;
         ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }

  ProcessEnd Wait(std::chrono::seconds limit = std::chrono::seconds(300)) {
    ProcessEnd end;
    int status = 0;
    const auto last = std::chrono::steady_clock::now() + limit;
    while (std::chrono::steady_clock::now() < last) {
      if (::waitpid(process_, &status, WNOHANG) == process_) {
        end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        process_ = -1;
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    end.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    end.out = Read(output_.string() + ".out");
    end.err = Read(output_.string() + ".err");
    return end;
  }

 private:
  static void Redirect(const std::string& file, int descriptor) {
    const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (opened < 0 || ::dup2(opened, descriptor) < 0) ::_exit(125);
  }
  static std::string Read(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  std::filesystem::path output_;
  std::chrono::steady_clock::time_point start_;
  pid_t process_ = -1;
};

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_TESTING_RANK_PROCESSES_H_
