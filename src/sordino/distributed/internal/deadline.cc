#include "sordino/distributed/internal/deadline.h"

#include <algorithm>
#include <utility>

namespace sordino::internal {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr milliseconds kTick(250);
// A tick that took longer than this: the process did not run.
constexpr milliseconds kPaused(5000);

}  // namespace

Deadline::Deadline(OnExpiry on_expiry)
    : on_expiry_(std::move(on_expiry)), thread_([this] { Watch(); }) {}

Deadline::~Deadline() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Deadline::Set(milliseconds limit, std::string sentence) {
  const std::lock_guard lock(mutex_);
  is_set_ = true;
  left_ = limit;
  sentence_ = std::move(sentence);
}

void Deadline::Clear() {
  const std::lock_guard lock(mutex_);
  is_set_ = false;
}

void Deadline::Watch() {
  std::unique_lock lock(mutex_);
  SteadyClock::time_point before = SteadyClock::now();
  while (!has_ended_) {
    changed_.wait_for(lock, kTick);
    const SteadyClock::time_point now = SteadyClock::now();
    const auto passed = std::chrono::duration_cast<milliseconds>(now - before);
    before = now;
    if (!is_set_ || has_ended_) continue;
    if (passed < kPaused) left_ -= passed;
    if (left_ > milliseconds(0)) continue;
    is_set_ = false;
    const std::string sentence = sentence_;
    lock.unlock();
    on_expiry_(sentence);
    lock.lock();
  }
}

}  // namespace sordino::internal
