#include "sordino/distributed/local_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "sordino/base/error.h"
#include "sordino/base/shown_text.h"
#include "sordino/distributed/internal/gathering.h"
#include "sordino/distributed/internal/group_store.h"
#include "sordino/distributed/join_secret.h"

extern char** environ;

namespace sordino {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// From the end of the first rank that fails to the end of those that do not end by themselves. Rank
// 0 has something to write and to say.
constexpr milliseconds kGrace(8000);
constexpr milliseconds kGraceOfFirst(20000);
constexpr milliseconds kBetweenLooks(200);
constexpr std::size_t kKeptOutput = 1 << 16;

[[noreturn]] void ThrowSystem(const char* what) {
  throw std::runtime_error(fmt::format("{} failed: {}.", what, std::strerror(errno)));
}

struct LocalRank {
  pid_t process = -1;
  int errors = -1;  // where its standard error is read; -1 for rank 0
  std::string said;
  std::optional<int> status;  // of waitpid
};

bool EndedWell(const LocalRank& rank) {
  return WIFEXITED(*rank.status) && WEXITSTATUS(*rank.status) == 0;
}

// A request to stop, and not an accident.
bool IsRequest(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP; }

constexpr const char* kNcclInterface = "NCCL_SOCKET_IFNAME";

// The parent's environment with the variables of one rank.
std::vector<std::string> RankEnvironment(int rank, int size, std::uint16_t port, int secret) {
  const std::vector<std::string> own = {
      fmt::format("RANK={}", rank),
      fmt::format("WORLD_SIZE={}", size),
      fmt::format("LOCAL_RANK={}", rank),
      fmt::format("LOCAL_WORLD_SIZE={}", size),
      "MASTER_ADDR=127.0.0.1",
      fmt::format("MASTER_PORT={}", port),
      "TORCHELASTIC_USE_AGENT_STORE=True",
      "TORCHELASTIC_RESTART_COUNT=0",
      fmt::format("{}={}", kParentVariable, ::getpid()),
      fmt::format("{}={}", kJoinDescriptor, secret),
  };
  std::vector<std::string> all = own;
  // NCCL would meet on another interface of this machine; the variable of the caller counts.
  if (std::getenv(kNcclInterface) == nullptr) all.push_back(fmt::format("{}=lo", kNcclInterface));
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('=') + 1);
    bool is_own = false;
    for (const std::string& mine : own) is_own = is_own || std::string_view(mine).starts_with(name);
    if (!is_own) all.emplace_back(text);
  }
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A file in memory that has no name; above the standard descriptors, which ranks may close.
int SecretDescriptor(const std::string& secret) {
  const int made = ::memfd_create("join secret", MFD_CLOEXEC);
  if (made < 0) ThrowSystem("memfd_create");
  const int descriptor = ::fcntl(made, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  ::close(made);
  if (descriptor < 0) ThrowSystem("fcntl");
  if (::write(descriptor, secret.data(), secret.size()) != static_cast<ssize_t>(secret.size())) {
    ThrowSystem("write");
  }
  return descriptor;
}

class LocalRanks {
 public:
  explicit LocalRanks(const LocalRanksOptions& options)
      : options_(options), socket_("127.0.0.1", 0), port_(socket_.port()) {
    const std::string secret = NewJoinSecret();
    secret_ = SecretDescriptor(secret);
    // Before the store, whose threads must not take the signals.
    WatchSignals();
    store_ = internal::HostGroupStore(socket_, secret);
  }
  ~LocalRanks() {
    KillAll();
    ::close(secret_);
    if (signals_ < 0) return;
    ::close(signals_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  int Run() {
    for (int rank = 0; rank < options_.processes; ++rank) ranks_.push_back(Start(rank));
    while (CountRunning() > 0) {
      Wait();
      Reap();
      if (first_failure_) KillLate();
    }
    for (LocalRank& rank : ranks_) Read(rank);
    TellFirstFailure();
    return ExitCode();
  }

 private:
  void WatchSignals() {
    ::sigemptyset(&watched_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&watched_, signal);
    if (::sigprocmask(SIG_BLOCK, &watched_, &before_) != 0) ThrowSystem("sigprocmask");
    signals_ = ::signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) ThrowSystem("signalfd");
  }

  LocalRank Start(int number) {
    LocalRank rank;
    std::array<int, 2> pipe = {-1, -1};
    if (number > 0 && ::pipe2(pipe.data(), O_CLOEXEC) != 0) ThrowSystem("pipe");
    std::vector<std::string> words = options_.words;
    words.insert(words.begin(), options_.program);
    std::vector<std::string> variables =
        RankEnvironment(number, options_.processes, port_, secret_);
    const std::vector<char*> argv = Pointers(words);
    const std::vector<char*> envp = Pointers(variables);
    const pid_t parent = ::getpid();
    rank.process = ::fork();
    if (rank.process < 0) ThrowSystem("fork");
    if (rank.process == 0) Become(number, pipe[1], parent, argv.data(), envp.data());
    if (number > 0) {
      ::close(pipe[1]);
      rank.errors = pipe[0];
      ::fcntl(rank.errors, F_SETFL, O_NONBLOCK);
    }
    return rank;
  }

  // Between fork and exec only what is safe in a process with threads.
  [[noreturn]] void Become(int number, int errors, pid_t parent, char* const* argv,
                           char* const* envp) const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(options_.lost_code);  // it was killed before that
    if (number > 0) {
      const int nowhere = ::open("/dev/null", O_RDWR);
      ::dup2(nowhere, STDIN_FILENO);
      ::dup2(nowhere, STDOUT_FILENO);
      ::dup2(errors, STDERR_FILENO);
    }
    ::fcntl(secret_, F_SETFD, 0);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    ::execve(argv[0], argv, envp);
    ::_exit(127);
  }

  int CountRunning() const {
    int running = 0;
    for (const LocalRank& rank : ranks_) running += rank.status ? 0 : 1;
    return running;
  }

  void Wait() {
    std::vector<pollfd> waiting = {{.fd = signals_, .events = POLLIN, .revents = 0}};
    for (const LocalRank& rank : ranks_) {
      if (rank.errors >= 0) waiting.push_back({.fd = rank.errors, .events = POLLIN, .revents = 0});
    }
    ::poll(waiting.data(), waiting.size(), static_cast<int>(kBetweenLooks.count()));
    for (LocalRank& rank : ranks_) Read(rank);
    signalfd_siginfo signal{};
    while (::read(signals_, &signal, sizeof signal) == sizeof signal) {
      // A key of the terminal has reached the ranks too.
      if (signal.ssi_signo == SIGCHLD || signal.ssi_code == SI_KERNEL) continue;
      PassOn(static_cast<int>(signal.ssi_signo));
    }
  }

  void PassOn(int signal) const {
    for (const LocalRank& rank : ranks_) {
      if (!rank.status) ::kill(rank.process, signal);
    }
  }

  static void Read(LocalRank& rank) {
    if (rank.errors < 0) return;
    std::array<char, 4096> bytes{};
    ssize_t got = 0;
    while ((got = ::read(rank.errors, bytes.data(), bytes.size())) > 0) {
      if (rank.said.size() < kKeptOutput)
        rank.said.append(bytes.data(), static_cast<std::size_t>(got));
    }
    if (got == 0) {
      ::close(rank.errors);
      rank.errors = -1;
    }
  }

  void Reap() {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      LocalRank& rank = ranks_[i];
      int status = 0;
      if (rank.status || ::waitpid(rank.process, &status, WNOHANG) != rank.process) continue;
      rank.status = status;
      if (EndedWell(rank) || first_failure_) continue;
      first_failure_ = i;
      failed_ = SteadyClock::now();
      TellOthers(i);
      // A rank that was asked to stop before it could say so to the others.
      if (WIFSIGNALED(status) && IsRequest(WTERMSIG(status))) PassOn(WTERMSIG(status));
    }
  }

  // What a rank that was killed cannot say itself.
  std::string KilledSentence(std::size_t number) const {
    return fmt::format(
        "rank {} of {} was ended by signal {}; the run ends here, and what was charged stays "
        "charged. 'sordino train --resume FOLDER' resumes it from its newest checkpoint.",
        number, options_.processes, WTERMSIG(*ranks_[number].status));
  }

  void TellOthers(std::size_t number) {
    const std::string sentence =
        WIFSIGNALED(*ranks_[number].status)
            ? KilledSentence(number)
            : fmt::format("rank {} of {} ended with an error.", number, options_.processes);
    try {
      internal::EndGroup(store_, sentence);
    } catch (const std::exception&) {
      // They are ended all the same.
    }
  }

  void TellFirstFailure() const {
    if (!first_failure_) return;
    const LocalRank& spokesman = ranks_.front();
    if (WIFEXITED(*spokesman.status) && !EndedWell(spokesman)) return;
    const LocalRank& failed = ranks_[*first_failure_];
    if (WIFSIGNALED(*failed.status)) {
      std::cerr << "sordino: " << KilledSentence(*first_failure_) << '\n';
    } else {
      std::cerr << ShownLines(failed.said);
    }
  }

  int ExitCode() const {
    if (!first_failure_) return 0;
    const int status = *ranks_[*first_failure_].status;
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    return IsRequest(WTERMSIG(status)) ? 128 + WTERMSIG(status) : options_.lost_code;
  }

  static void Kill(LocalRank& rank) {
    if (rank.status) return;
    ::kill(rank.process, SIGKILL);
    int status = 0;
    ::waitpid(rank.process, &status, 0);
    rank.status = status;
  }

  void KillLate() {
    const auto passed = SteadyClock::now() - failed_;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (passed > (i == 0 ? kGraceOfFirst : kGrace)) Kill(ranks_[i]);
    }
  }

  void KillAll() {
    for (LocalRank& rank : ranks_) Kill(rank);
  }

  const LocalRanksOptions& options_;
  internal::ListeningSocket socket_;
  std::uint16_t port_;
  int secret_ = -1;
  internal::StorePointer store_;
  std::vector<LocalRank> ranks_;
  sigset_t watched_{};
  sigset_t before_{};
  int signals_ = -1;
  std::optional<std::size_t> first_failure_;
  SteadyClock::time_point failed_;
};

}  // namespace

bool IsLocalRank() { return std::getenv(kParentVariable) != nullptr; }

int RunLocalRanks(const LocalRanksOptions& options) { return LocalRanks(options).Run(); }

}  // namespace sordino
