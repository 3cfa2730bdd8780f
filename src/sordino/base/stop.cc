#include "sordino/base/stop.h"

#include <csignal>
#include <cstdlib>
#include <mutex>

namespace sordino {
namespace {

volatile std::sig_atomic_t g_stop_requested = 0;
std::mutex g_mutex;
int g_guards = 0;
struct sigaction g_old_int;
struct sigaction g_old_term;

extern "C" void HandleStop(int signal) {
  if (g_stop_requested != 0) std::_Exit(128 + signal);
  g_stop_requested = 1;
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
