#include "sordino/base/stop.h"

#include <time.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace sordino {
namespace {

volatile std::sig_atomic_t g_stop_requested = 0;
// Milliseconds at which it was. Lock-free, and so allowed in a handler.
std::atomic<std::int64_t> g_stop_time = 0;
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
constexpr std::int64_t kSameRequest = 500;
std::mutex g_mutex;
int g_guards = 0;
struct sigaction g_old_int;
struct sigaction g_old_term;

std::int64_t Milliseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1000} * now.tv_sec + now.tv_nsec / 1'000'000;
}

extern "C" void HandleStop(int signal) {
  if (g_stop_requested == 0) {
    g_stop_requested = 1;
    g_stop_time = Milliseconds();
  } else if (Milliseconds() - g_stop_time > kSameRequest) {
    std::_Exit(128 + signal);
  }
}

}  // namespace

StopGuard::StopGuard() {
  const std::lock_guard lock(g_mutex);
  if (g_guards++ > 0) return;
  g_stop_requested = 0;
  struct sigaction action = {};
  action.sa_handler = HandleStop;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &g_old_int);
  sigaction(SIGTERM, &action, &g_old_term);
}

StopGuard::~StopGuard() {
  const std::lock_guard lock(g_mutex);
  if (--g_guards > 0) return;
  sigaction(SIGINT, &g_old_int, nullptr);
  sigaction(SIGTERM, &g_old_term, nullptr);
}

bool StopGuard::Requested() { return g_stop_requested != 0; }

}  // namespace sordino
