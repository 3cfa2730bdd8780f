#include "sordino/base/core_dump.h"

#include <sys/prctl.h>
#include <sys/resource.h>

namespace sordino {

void DisableCoreDumps() {
  // Either can be refused only by a sandbox, in which the other one is in force.
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  // The limit does not hold for dumps that the kernel hands to a program (core(5)); this does.
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

}  // namespace sordino
