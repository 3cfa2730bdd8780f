// The store in which ranks meet: c10d's TCPStore, authenticated, with one sentence for what goes
// wrong.
#ifndef SORDINO_DISTRIBUTED_INTERNAL_GROUP_STORE_H_
#define SORDINO_DISTRIBUTED_INTERNAL_GROUP_STORE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "sordino/distributed/internal/authenticated_store.h"
#include "sordino/distributed/internal/listening_socket.h"
#include "sordino/distributed/launch_environment.h"

namespace sordino::internal {

// The key under which whoever ends a group says why; the first one counts. It is in the store of
// the group.
inline constexpr const char* kLossKey = "loss";
// The key of a rank: how often it has said that it lives, and how many operations it has begun.
std::string BeatKey(int rank);
inline constexpr const char* kNoBeat = "0 0";

// The store of a group, in which keys of earlier attempts to start it are not seen. Rank 0 listens,
// unless somebody else does. Throws Error where the port is in use, and CommunicationError where
// nobody answers within `timeout`.
StorePointer OpenGroupStore(const LaunchEnvironment& environment, const std::string& secret,
                            std::chrono::milliseconds timeout);

// The server of a group whose ranks all connect to it, as seen by the process that has it.
StorePointer HostGroupStore(ListeningSocket& socket, const std::string& secret);

// The part of the store that belongs to the group with this nonce: what was recorded in another one
// does not fit its names.
StorePointer StoreOfGroup(const StorePointer& store, const std::string& nonce);

// Sets the key to the text, unless it was set before; returns what it is then.
std::string SetFirst(c10d::Store& store, const std::string& key, const std::string& text);

}  // namespace sordino::internal

#endif  // SORDINO_DISTRIBUTED_INTERNAL_GROUP_STORE_H_
