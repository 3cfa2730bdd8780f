// A limit on time that holds even where the thread that is limited hangs in a library.
#ifndef SORDINO_DISTRIBUTED_INTERNAL_DEADLINE_H_
#define SORDINO_DISTRIBUTED_INTERNAL_DEADLINE_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace sordino::internal {

// A thread that calls `on_expiry` with a sentence, once, when a limit that was set has passed. Time
// in which the whole process was stopped (Ctrl-Z, a machine that slept) is not counted: it says
// nothing about others.
class Deadline {
 public:
  using OnExpiry = std::function<void(const std::string& sentence)>;

  explicit Deadline(OnExpiry on_expiry);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // Takes the place of the limit that was set before.
  void Set(std::chrono::milliseconds limit, std::string sentence);
  void Clear();

 private:
  void Watch();

  OnExpiry on_expiry_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
  bool has_ended_ = false;
  std::chrono::milliseconds left_{0};
  std::string sentence_;
  std::thread thread_;
};

}  // namespace sordino::internal

#endif  // SORDINO_DISTRIBUTED_INTERNAL_DEADLINE_H_
