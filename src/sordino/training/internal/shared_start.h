// What all ranks begin with. (CheckShared is declared in trainer.h.)
#ifndef SORDINO_TRAINING_INTERNAL_SHARED_START_H_
#define SORDINO_TRAINING_INTERNAL_SHARED_START_H_

#include <vector>

#include "sordino/distributed/communicator.h"
#include "sordino/gradients/loss_function.h"
#include "sordino/random/random_source.h"
#include "sordino/training/trainer.h"

namespace sordino {

// Collective: a source from which all ranks draw the same. In a private run nobody but the ranks
// knows it.
RandomSource SharedSource(const TrainerOptions& options, Communicator& communicator);

// Collective: the parameters with the values of rank 0. Throws Error where they are others.
std::vector<NamedParameter> WithSharedValues(std::vector<NamedParameter> parameters,
                                             Communicator& communicator);

}  // namespace sordino

#endif  // SORDINO_TRAINING_INTERNAL_SHARED_START_H_
