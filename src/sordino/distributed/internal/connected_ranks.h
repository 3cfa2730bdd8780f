// Ranks that have met connect to one another.
#ifndef SORDINO_DISTRIBUTED_INTERNAL_CONNECTED_RANKS_H_
#define SORDINO_DISTRIBUTED_INTERNAL_CONNECTED_RANKS_H_

#include <memory>

#include "sordino/distributed/internal/gathering.h"
#include "sordino/distributed/internal/message_seal.h"
#include "sordino/distributed/process_group.h"

namespace sordino::internal {

// `store` is that of the group. Returns when every rank has proved to every other one, over their
// connection, that it seals messages as all do: nothing of the run is sent before.
std::unique_ptr<ProcessGroup> ConnectRanks(const StorePointer& store, const GroupOptions& options,
                                           const Meeting& meeting, MessageSeal seal);

}  // namespace sordino::internal

#endif  // SORDINO_DISTRIBUTED_INTERNAL_CONNECTED_RANKS_H_
