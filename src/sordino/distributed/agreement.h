// All ranks must train the same model on the same data by the same plan. Two copies of the data
// that differ could hold one record at two places, and then it is used twice in a step.
//
// Only hashes are exchanged, of the values with a salt that rank 0 draws anew for every run: a hash
// of private data confirms a guess to whoever can compute it, so it is neither written nor told,
// and it is of no use later.
#ifndef SORDINO_DISTRIBUTED_AGREEMENT_H_
#define SORDINO_DISTRIBUTED_AGREEMENT_H_

#include <chrono>
#include <string>
#include <vector>

#include "sordino/distributed/communicator.h"

namespace sordino {

struct AgreedItem {
  std::string name;   // as in "rank 1 has other settings than rank 0": "settings"
  std::string value;  // any bytes; never told
};

// Collective: what each rank says, in the order of the ranks. With it travels whether a rank was
// asked to stop (base/stop.h), and then all of them are: they stop at the same step, whichever of
// them got the signal.
std::vector<std::string> GatherWithStops(Communicator& communicator, const std::string& said,
                                         bool* stop = nullptr);
// Whether a rank was asked to stop before it came here: the same answer on all ranks. A rank that
// asks its own StopGuard afterwards may have been asked in the meantime, the others not.
bool AgreeToStop(Communicator& communicator);

// Clocks may differ by this. The times of a ledger's entries come from rank 0 alone, but a machine
// whose clock is wrong is likely to be wrong in other things.
inline constexpr std::chrono::seconds kMaxClockDifference(60);

// Returns when all ranks have the same items in the same order. Otherwise every rank throws the
// same Error, which says which rank differs in what. `salt` counts on rank 0: 32 random bytes.
void RequireAgreement(Communicator& communicator, const std::vector<AgreedItem>& items,
                      const std::string& salt);

namespace internal {

// With the clock of this rank, in seconds.
void RequireAgreementAt(Communicator& communicator, const std::vector<AgreedItem>& items,
                        const std::string& salt, double clock);

}  // namespace internal

}  // namespace sordino

#endif  // SORDINO_DISTRIBUTED_AGREEMENT_H_
