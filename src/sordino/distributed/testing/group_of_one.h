// A process that is alone in a group, for tests: it has everything that one of several ranks has,
// connections, the thread that watches, and NCCL on a GPU (which takes no two ranks).
#ifndef SORDINO_DISTRIBUTED_TESTING_GROUP_OF_ONE_H_
#define SORDINO_DISTRIBUTED_TESTING_GROUP_OF_ONE_H_

#include <memory>

#include "sordino/distributed/internal/listening_socket.h"
#include "sordino/distributed/process_group.h"

namespace sordino {

inline std::unique_ptr<ProcessGroup> GroupOfOne() {
  GroupOptions options;
  options.environment.address = "127.0.0.1";
  options.environment.port = internal::ListeningSocket("127.0.0.1", 0).port();
  options.version = "0.1.0";
  return JoinGroup(options);
}

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_TESTING_GROUP_OF_ONE_H_
