#include "sordino/base/core_dump.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace sordino {
namespace {

[[noreturn]] void TryInThisProcess() {
  DisableCoreDumps();
  rlimit limit = {1, 1};
  const bool off = getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0 &&
                   limit.rlim_max == 0 && prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0;
  std::error_code error;
  const bool known = !std::filesystem::read_symlink("/proc/self/exe", error).empty();
  std::_Exit(off && known ? 0 : 1);
}

// In a process of its own, because nothing turns them on again.
TEST(DisableCoreDumps, LeavesNoDumpAndLetsTheProcessKnowItself) {
  EXPECT_EXIT(TryInThisProcess(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace sordino
