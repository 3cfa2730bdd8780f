// A run on several ranks: rank 0 prepares it and holds its folder and its ledger, and tells the
// others what they train.
//
//   rank 0                                         the others
//   PreparedRun run = PrepareRun(config);
//   ShareRun(run, communicator);                   PreparedRun run = ReceiveRun(communicator);
//   RunTraining(run, observer);                    ServeTraining(run);
//
// The others read the data themselves, from the same names, and write nothing. Each rank uses one
// thread unless the settings say how many, and on GPUs the one that its place on the machine
// chooses (ParseDevice in train_config.h).
#ifndef SORDINO_RUNS_DISTRIBUTED_RUN_H_
#define SORDINO_RUNS_DISTRIBUTED_RUN_H_

#include <string>

#include "sordino/data/dataset.h"
#include "sordino/distributed/communicator.h"
#include "sordino/runs/training_run.h"
#include "sordino/training/canary_records.h"

namespace sordino {

// Throws Error, after the other ranks were told, for a run that several ranks cannot make.
void ShareRun(PreparedRun& run, Communicator& communicator);
// Throws Error where rank 0 could not share its run, and for what is missing on this machine.
PreparedRun ReceiveRun(Communicator& communicator, int local_rank = 0);

// Where rank 0 has nothing to share: the others stop with this sentence.
void ShareRefusal(const std::string& sentence, Communicator& communicator);

// Collective: throws the same Error on every rank where those of two differ.
void RequireSameSettings(Communicator& communicator, const std::string& settings);
void RequireSameData(Communicator& communicator, const Dataset& data);
void RequireSameCanaries(Communicator& communicator, const CanaryRecords& canaries);

}  // namespace sordino

#endif  // SORDINO_RUNS_DISTRIBUTED_RUN_H_
