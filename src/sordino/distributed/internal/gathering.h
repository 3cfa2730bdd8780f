// The ranks of a group are counted before they connect to one another.
#ifndef SORDINO_DISTRIBUTED_INTERNAL_GATHERING_H_
#define SORDINO_DISTRIBUTED_INTERNAL_GATHERING_H_

#include "sordino/distributed/internal/group_store.h"
#include "sordino/distributed/process_group.h"

namespace sordino::internal {

// Returns when all ranks are in the store, with the same version and the same number of ranks.
// Otherwise throws the sentence that rank 0 found, on all ranks: Error for a contradiction,
// CommunicationError where a rank is missing.
void GatherRanks(c10d::Store& store, const GroupOptions& options);

}  // namespace sordino::internal

#endif  // SORDINO_DISTRIBUTED_INTERNAL_GATHERING_H_
