// A clean stop on Ctrl-C.
//
// While a StopGuard lives, the first SIGINT, SIGTERM or SIGHUP only sets a flag that long work
// polls between steps; a second one ends the process at once, for work that does not poll, unless
// it comes within half a second: timeout(1) and some shells send one request twice. The handlers
// that were installed before are restored when the last guard is destroyed.
#ifndef SORDINO_BASE_STOP_H_
#define SORDINO_BASE_STOP_H_

#include <stdexcept>
#include <string>

namespace sordino {

class StopGuard {
 public:
  StopGuard();
  ~StopGuard();
  StopGuard(const StopGuard&) = delete;
  StopGuard& operator=(const StopGuard&) = delete;

  // True once a stop was asked for since the first living guard was made.
  static bool Requested();
  // The signal that asked for it; 0 where none did.
  static int Signal();
  // Asks for it as the signal would: another process of the same run has received it.
  static void Request(int signal);
};

// Work that ended with nothing to show because a stop was asked for.
class Stopped : public std::runtime_error {
 public:
  explicit Stopped(const std::string& what)
      : std::runtime_error(what), signal_(StopGuard::Signal()) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

}  // namespace sordino

#endif  // SORDINO_BASE_STOP_H_
