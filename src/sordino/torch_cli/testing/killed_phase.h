// The instants of a step of several ranks at which one is killed: before and after each operation
// that all of them make together. Phase 2 i is before operation i, phase 2 i + 1 after it.
#ifndef SORDINO_TORCH_CLI_TESTING_KILLED_PHASE_H_
#define SORDINO_TORCH_CLI_TESTING_KILLED_PHASE_H_

namespace sordino {

enum StepOperation {
  kAnnounceStep,    // after it ranks compute their chunks
  kAgree,           // that all could
  kAddSums,         //
  kAddCounts,       // after it rank 0 charges
  kAnnounceCharge,  // after it ranks draw noise and update their shards
  kGatherWeights,
  kStepOperations
};

inline constexpr int kStepPhases = 2 * kStepOperations;

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_TESTING_KILLED_PHASE_H_
