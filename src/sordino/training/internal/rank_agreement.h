// Ranks that go on together or not at all.
#ifndef SORDINO_TRAINING_INTERNAL_RANK_AGREEMENT_H_
#define SORDINO_TRAINING_INTERNAL_RANK_AGREEMENT_H_

#include <functional>
#include <string>

#include "sordino/distributed/communicator.h"

namespace sordino {

// Collective: every rank calls `does`, which sends nothing, and it returns where none has failed. A
// rank throws what it failed with itself; the others throw its sentence. What other libraries say
// does not leave the rank. A stop that one rank was asked for is one of all.
void DoTogether(Communicator& communicator, const std::function<void()>& does);

inline constexpr const char* kNotDone = "not done";

// Collective: what `does` returns on rank 0, which alone calls it. Where it throws, rank 0 does so
// too, and the others get kNotDone.
std::string TellOthers(Communicator& communicator, const std::function<std::string()>& does);

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_RANK_AGREEMENT_H_
