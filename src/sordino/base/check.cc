#include "sordino/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace sordino::internal {

void CheckFailed(const char* condition, const char* reason, const char* file, int line) {
  std::fprintf(stderr, "sordino: stopped, a privacy invariant is broken: %s (%s, %s:%d)\n", reason,
               condition, file, line);
  std::abort();
}

}  // namespace sordino::internal
