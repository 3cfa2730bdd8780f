#include "sordino/base/stop.h"

#include <time.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace sordino {
namespace {

volatile std::sig_atomic_t g_stop_signal = 0;  // 0: no stop was asked for
// Milliseconds at which it was. Lock-free, and so allowed in a handler.
std::atomic<std::int64_t> g_stop_time = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
constexpr std::int64_t kSameRequest = 500;
std::mutex g_mutex;
int g_guards = 0;
// A terminal that is closed sends SIGHUP.
constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};
std::array<struct sigaction, kSignals.size()> g_old;

std::int64_t Milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1000} * now.tv_sec + now.tv_nsec / 1'000'000;
}

void RequestStop(int signal) {
  if (g_stop_signal != 0) return;
  g_stop_signal = signal;
  g_stop_time = Milliseconds();
}

extern "C" void HandleStop(int signal) {
  if (g_stop_signal != 0 && Milliseconds() - g_stop_time > kSameRequest) std::_Exit(128 + signal);
  RequestStop(signal);
}

}  // namespace

StopGuard::StopGuard() {
  const std::lock_guard lock(g_mutex);
  if (g_guards++ > 0) return;
  g_stop_signal = 0;
  struct sigaction action = {};
  action.sa_handler = HandleStop;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &g_old[i]);
    // nohup(1) ignores SIGHUP for whoever it starts.
    const bool is_ignored = kSignals[i] == SIGHUP && g_old[i].sa_handler == SIG_IGN;
    if (!is_ignored) sigaction(kSignals[i], &action, nullptr);
  }
}

StopGuard::~StopGuard() {
  const std::lock_guard lock(g_mutex);
  if (--g_guards > 0) return;
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &g_old[i], nullptr);
}

bool StopGuard::Requested() { return g_stop_signal != 0; }
int StopGuard::Signal() { return g_stop_signal; }
void StopGuard::Request(int signal) { RequestStop(signal); }

}  // namespace sordino
