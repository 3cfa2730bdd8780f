#include "sordino/base/error.h"
#include "sordino/distributed/local_ranks.h"
#include "sordino/distributed/process_group.h"

namespace sordino {
namespace {

[[noreturn]] void RefuseRanks() {
  throw Error(
      "this build has no process groups, because its libtorch has none; train in one process, or "
      "build with a libtorch that has Gloo, such as the one that tools/setup fetches.");
}

}  // namespace

bool HasProcessGroups() { return false; }
std::unique_ptr<ProcessGroup> JoinGroup(const GroupOptions& /*options*/) { RefuseRanks(); }
bool IsLocalRank() { return false; }
int RunLocalRanks(const LocalRanksOptions& /*options*/) { RefuseRanks(); }

}  // namespace sordino
