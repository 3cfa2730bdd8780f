#include "sordino/base/error.h"
#include "sordino/distributed/process_group.h"

namespace sordino {

bool HasProcessGroups() { return false; }

std::unique_ptr<ProcessGroup> JoinGroup(const GroupOptions& /*options*/) {
  throw Error(
      "this build has no process groups, because its libtorch has none; train in one process, or "
      "build with a libtorch that has Gloo, such as the one that tools/setup fetches.");
}

}  // namespace sordino
