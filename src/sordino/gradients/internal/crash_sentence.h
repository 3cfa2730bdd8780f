// One sentence instead of a crash while libtorch reads a file that others wrote.
//
// libtorch reads the code and the values of a TorchScript file by functions that call themselves,
// without a limit on how deep: an expression of 200,000 signs overflows the stack. While a
// CrashSentence lives, a fault of this process (SIGSEGV) writes the sentence to standard error and
// ends it with exit code 2, as any other file that cannot be read does. Nothing else is done: after
// a fault nothing can be relied on. Use it only before anything is charged or written.
#ifndef SORDINO_GRADIENTS_INTERNAL_CRASH_SENTENCE_H_
#define SORDINO_GRADIENTS_INTERNAL_CRASH_SENTENCE_H_

#include <csignal>
#include <string>
#include <vector>

namespace sordino::internal {

// At most one lives at a time, in the thread that reads.
class CrashSentence {
 public:
  explicit CrashSentence(const std::string& sentence);
  ~CrashSentence();
  CrashSentence(const CrashSentence&) = delete;
  CrashSentence& operator=(const CrashSentence&) = delete;

 private:
  std::string line_;
  std::vector<char> stack_;  // the handler's own, because that of the thread is full
  stack_t stack_before_ = {};
  struct sigaction action_before_ = {};
};

}  // namespace sordino::internal

#endif  // SORDINO_GRADIENTS_INTERNAL_CRASH_SENTENCE_H_
