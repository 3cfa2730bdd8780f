// The instants of a step of several ranks at which one is killed: before and after each operation
// that all of them make together. Phase 2 i is before operation i, phase 2 i + 1 behind it.
#ifndef SORDINO_TORCH_CLI_TESTING_KILLED_PHASE_H_
#define SORDINO_TORCH_CLI_TESTING_KILLED_PHASE_H_

namespace sordino {

enum StepOperation {
  kAnnounceStep,    // behind it ranks compute their chunks
  kAgree,           // that all could
  kAddSums,         //
  kAddCounts,       // behind it rank 0 charges
  kAnnounceCharge,  // behind it ranks draw noise and update their shards
  kGatherWeights,
  kStepOperations
};

inline constexpr int kStepPhases = 2 * kStepOperations;

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_TESTING_KILLED_PHASE_H_
