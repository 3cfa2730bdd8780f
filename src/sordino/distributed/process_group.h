// Ranks that are processes, on one machine or on many: a Communicator on libtorch's c10d with Gloo,
// and on NCCL for tensors on GPUs where each rank has one of its own.
//
//   const std::optional<LaunchEnvironment> environment = ReadLaunchEnvironment();
//   std::unique_ptr<ProcessGroup> group = JoinGroup({.environment = *environment, ...});
//   ... train with *group ...
//   group->Leave();
//
// Ranks meet in a store (a TCP server at MASTER_ADDR and MASTER_PORT), are counted there, and then
// connect to one another. They recognise each other by the secret of the launch (join_secret.h):
// every value of the store has an HMAC, and every message over Gloo is encrypted and authenticated.
// Messages over NCCL are not; between machines it is used only where the network is trusted with
// sums of private data. Whoever reaches the store without the secret can end the run, and nothing
// else.
//
// A rank that is lost ends the others. A rank whose connection closes is noticed at once. One that
// hangs (a stopped process, a machine that is gone) is noticed because every rank tells the store
// once a second that it lives, from a thread of its own, so that a long computation is not taken
// for a loss. A network that drops what is sent is noticed because all ranks are then inside of the
// same operation, and none of them comes out. Whatever it was, an operation throws
// CommunicationError with a sentence, or, where it hangs in a library, `on_loss` is called, which
// should end the process. Both happen within a minute.
#ifndef SORDINO_DISTRIBUTED_PROCESS_GROUP_H_
#define SORDINO_DISTRIBUTED_PROCESS_GROUP_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "sordino/distributed/communicator.h"
#include "sordino/distributed/launch_environment.h"

namespace sordino {

inline constexpr std::chrono::seconds kJoinTimeout(60);
inline constexpr std::chrono::seconds kMaxJoinTimeout(86400);
// A rank that says nothing for this long is lost.
inline constexpr std::chrono::seconds kSilence(20);
// An operation that all ranks are in takes at most this, and a second for each MiB it moves.
inline constexpr std::chrono::seconds kStall(30);

struct GroupOptions {
  LaunchEnvironment environment;
  std::string secret;           // the same on all ranks; one rank alone needs none
  bool trusts_network = false;  // with what ranks send to each other over NCCL between machines
  std::string host;             // of this rank, for tests; empty: that of this machine
  std::string version;          // of the program; all ranks must have the same
  std::chrono::milliseconds join_timeout = kJoinTimeout;
  std::chrono::milliseconds silence = kSilence;
  std::chrono::milliseconds stall = kStall;
  // Called on a thread of the group when the thread that uses it does not come back; must not
  // return to a program that continues. Abort() is called where it is empty.
  std::function<void(const std::string& sentence)> on_loss;
};

class ProcessGroup : public Communicator {
 public:
  // The last operation: returns when all ranks have called it, and from then on none is missed. A
  // group that is destroyed without it ends the other ranks.
  virtual void Leave() = 0;
};

// Whether this libtorch has process groups of several ranks.
bool HasProcessGroups();

// Meets the other ranks. Throws Error for a port that is in use, for ranks of different versions,
// sizes or secrets and for a rank that is there twice, CommunicationError where a rank is missing
// after `join_timeout`; all ranks that are there tell the same.
std::unique_ptr<ProcessGroup> JoinGroup(const GroupOptions& options);

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_PROCESS_GROUP_H_
