#include "sordino/gradients/internal/crash_sentence.h"

#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "sordino/base/check.h"
#include "sordino/base/shown_text.h"

namespace sordino::internal {
namespace {

constexpr int kUnreadableModel = 2;  // the exit code of a user's mistake
constexpr std::size_t kHandlerStack = std::size_t{64} << 10;

std::atomic<const std::string*> current_line = nullptr;
static_assert(std::atomic<const std::string*>::is_always_lock_free);

void OnFault(int /*signal*/) {
  if (const std::string* const line = current_line.load(); line != nullptr) {
    // Nothing can be done where it cannot be written.
    static_cast<void>(!::write(STDERR_FILENO, line->data(), line->size()));
  }
  ::_exit(kUnreadableModel);
}

}  // namespace

CrashSentence::CrashSentence(const std::string& sentence)
    : line_("sordino: " + ShownText(sentence) + '\n'), stack_(kHandlerStack) {
  const std::string* none = nullptr;
  SORDINO_CHECK(current_line.compare_exchange_strong(none, &line_),
                "two files of others are read at once");
  stack_t stack = {};
  stack.ss_sp = stack_.data();
  stack.ss_size = stack_.size();
  ::sigaltstack(&stack, &stack_before_);
  struct sigaction action = {};
  action.sa_handler = &OnFault;
  action.sa_flags = SA_ONSTACK;
  ::sigaction(SIGSEGV, &action, &action_before_);
}

CrashSentence::~CrashSentence() {
  ::sigaction(SIGSEGV, &action_before_, nullptr);
  ::sigaltstack(&stack_before_, nullptr);
  current_line = nullptr;
}

}  // namespace sordino::internal
