// The cost of a private step beside that of an ordinary one.
//
// Ordinary: gradients reset, forward, mean loss, backward. Private: forward, backward, norms,
// clip, sum (Clipper::ClippedSum with flat clipping). Both end with one gradient for each
// parameter. In a whole step the private one also adds noise, and both update the weights.
#ifndef SORDINO_TORCH_CLI_STEP_COMPARISON_H_
#define SORDINO_TORCH_CLI_STEP_COMPARISON_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <string>

#include "sordino/gradients/clipper.h"
#include "sordino/models/benchmark_models.h"

namespace sordino {

struct StepCost {
  double milliseconds = 0;  // median of the steady state
  // Tensor memory at the worst moment of a step, in units of 10^6 bytes, above the parameters and
  // the batch. What is kept from step to step (gradients, work space) is part of it.
  double megabytes = 0;
};

struct StepComparison {
  StepCost ordinary_step;
  StepCost private_step;
  // Without a recording, where the ordinary step is recorded; else 0.
  double eager_milliseconds = 0;
  double first_milliseconds = 0;  // of the first private step, which checks the model
  std::int64_t pairs = 0;         // timed steps of each kind
  std::string graph;              // how the private step was made (Clipper::GraphStatus)

  double ratio() const { return private_step.milliseconds / ordinary_step.milliseconds; }
  double first_ratio() const { return first_milliseconds / ordinary_step.milliseconds; }
};

inline constexpr std::int64_t kMaxBenchmarkBands = 1000;

struct ComparisonOptions {
  NormMethod norms = NormMethod::kAutomatic;
  // Whether both steps are recorded on a GPU; automatic: the ordinary one where the private one is.
  GraphUse graph = GraphUse::kAutomatic;
  bool whole = false;
  std::int64_t bands = 1;  // of the noise of whole steps, from 1 to kMaxBenchmarkBands
  // How long pairs of steps are timed. At least 5 are made, but 3 are enough once ten times this
  // has passed.
  double seconds = 3;
};

// Ordinary and private steps alternate, so that a machine that slows down slows down both; the
// device has finished before each reading of the clock. On a GPU ten steps are made between two
// readings, so that waiting for it does not count. Throws Error where the model cannot be clipped.
StepComparison CompareSteps(const BenchmarkModel& model, std::int64_t examples, at::Device device,
                            const ComparisonOptions& options);

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_STEP_COMPARISON_H_
