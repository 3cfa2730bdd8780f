// Invariants of the privacy core, checked in every build type.
//
// A broken invariant means that a guarantee may not hold, so the program stops at once (abort)
// instead of throwing: nothing may catch it and go on to release a value.
#ifndef SORDINO_BASE_CHECK_H_
#define SORDINO_BASE_CHECK_H_

namespace sordino::internal {

[[noreturn]] void CheckFailed(const char* condition, const char* reason, const char* file,
                              int line);

}  // namespace sordino::internal

// The file without its folders: what is printed does not tell where the program was built.
#ifdef __FILE_NAME__
#define SORDINO_CHECK_FILE __FILE_NAME__
#else
#define SORDINO_CHECK_FILE __FILE__
#endif

// SORDINO_CHECK(condition, "what is broken")
#define SORDINO_CHECK(condition, reason)                                                  \
  do {                                                                                    \
    if (!(condition)) [[unlikely]] {                                                      \
      ::sordino::internal::CheckFailed(#condition, reason, SORDINO_CHECK_FILE, __LINE__); \
    }                                                                                     \
  } while (false)

#endif  // SORDINO_BASE_CHECK_H_
