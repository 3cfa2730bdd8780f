// The ranks of a group are counted before they connect to one another.
#ifndef SORDINO_DISTRIBUTED_INTERNAL_GATHERING_H_
#define SORDINO_DISTRIBUTED_INTERNAL_GATHERING_H_

#include <optional>
#include <string>

#include "sordino/distributed/internal/group_store.h"
#include "sordino/distributed/process_group.h"

namespace sordino::internal {

// Each rank writes a hello with a challenge, which is new in each launch; rank 0 reads all of them
// and answers each with its challenge, the nonce of the group and whether all ranks are on one
// host. Hellos and answers of earlier launches, which have the same secret where a user did not
// change it, do not fit the challenges.
struct Meeting {
  std::string nonce;  // 64 hex digits
  bool is_on_one_host = true;
};

// Whether ranks may send each other what is not sealed.
bool MaySendUnsealed(const Meeting& meeting, const GroupOptions& options);

// What tells machines apart, and containers with a network of their own; it has no blanks.
std::string OwnHost();

// Returns when all ranks are in the store, with the same version and the same number of ranks.
// Otherwise throws the sentence that rank 0 found, on all ranks: Error for a contradiction,
// CommunicationError where a rank is missing. Throws Error where a value was not written with the
// secret.
Meeting GatherRanks(const StorePointer& store, const GroupOptions& options);

// By a process that is not a rank and has the store: ends the group, whether or not all have
// joined.
void EndGroup(const StorePointer& store, const std::string& sentence);

}  // namespace sordino::internal

#endif  // SORDINO_DISTRIBUTED_INTERNAL_GATHERING_H_
