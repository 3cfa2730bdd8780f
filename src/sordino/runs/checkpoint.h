// Checkpoints: what a run is resumed from.
//
//   FOLDER/step-000000400/state.safetensors   parameters, state of the optimizer, clipping bounds
//   FOLDER/step-000000400/state.json          everything else, and the hash of state.safetensors
//
// A checkpoint holds numbers and text, no code, and nothing that was not noised: it is as private
// as the model. It holds no budget: what was spent stands in the ledger, and an old checkpoint
// takes nothing of it back.
//
// It is written beside its place, synced, and moved there, so that a crash leaves the one before.
// The newest two are kept.
#ifndef SORDINO_RUNS_CHECKPOINT_H_
#define SORDINO_RUNS_CHECKPOINT_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "sordino/gradients/named_tensors.h"

namespace sordino {

// In the folder of a run.
inline constexpr const char* kCheckpointFolder = "checkpoints";
// Begins the names of parameters that are not trained; the others are the trainer's.
inline constexpr const char* kFrozenPrefix = "frozen.";

struct CheckpointFacts {
  std::int64_t step = 0;  // steps that were made
  double noise = 0;       // the plan's multiplier, to the last bit
  std::string plan;       // text of the event of the whole plan; empty without privacy
  std::string ledger;     // identity of the ledger; empty without privacy
  std::string run;        // the run's in the ledger
  std::string head;       // hash of the ledger's last entry at that time
  double seconds = 0;     // of training so far
};

struct Checkpoint {
  CheckpointFacts facts;
  NamedTensors tensors;  // on the CPU
};

// Throws std::runtime_error where the disk does not take it; the older ones are still there then.
void WriteCheckpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint);

// The newest that is whole; one that is damaged is passed over for the one before it. nullopt:
// there is none. Throws Error when there are some and none of them is whole.
std::optional<Checkpoint> ReadNewestCheckpoint(const std::filesystem::path& folder);

// When the run has ended: there is nothing left to resume.
void RemoveCheckpoints(const std::filesystem::path& folder);

}  // namespace sordino

#endif  // SORDINO_RUNS_CHECKPOINT_H_
