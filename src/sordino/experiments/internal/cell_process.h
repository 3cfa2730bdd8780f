// One call of the program, in a process of its own.
#ifndef SORDINO_EXPERIMENTS_INTERNAL_CELL_PROCESS_H_
#define SORDINO_EXPERIMENTS_INTERNAL_CELL_PROCESS_H_

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sordino::internal {

struct ProcessRequest {
  std::filesystem::path program;
  std::vector<std::string> words;
  std::filesystem::path output;    // standard output
  std::filesystem::path messages;  // standard error
  int threads = 0;                 // OMP_NUM_THREADS, where it is not set already; 0: left alone
};

struct ProcessEnd {
  int code = 0;  // of exit; 128 and the number of the signal that ended it
  double seconds = 0;
  double memory_mb = 0;  // largest resident memory, in units of 10^6 bytes
};

class CellProcess {
 public:
  // Throws std::runtime_error where no process can be started.
  explicit CellProcess(const ProcessRequest& request);
  // Ends the process and waits for it, if it is still there.
  ~CellProcess();
  CellProcess(CellProcess&& other) noexcept;
  CellProcess& operator=(CellProcess&&) = delete;
  CellProcess(const CellProcess&) = delete;
  CellProcess& operator=(const CellProcess&) = delete;

  // Nothing while it runs.
  std::optional<ProcessEnd> Poll();
  void Signal(int signal) const;

 private:
  int child_ = -1;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace sordino::internal

#endif  // SORDINO_EXPERIMENTS_INTERNAL_CELL_PROCESS_H_
