// The noise of a run: what is added to the sum of each step, and what the process remembers.
//
// A process draws w_t for step t, independently of everything else, and adds to the sum x_t a noise
// n_t that is w_t and a linear function of earlier draws or of earlier noise (noise_memory.h). The
// distribution and what is remembered are those of a NoiseComponent; independent noise remembers
// nothing. Draws count in units of the scale of their step, so that a clipping norm that moves
// keeps their proportions.
//
// Privacy. Let n = C^-1 w; C is lower triangular, with ones on its diagonal. The releases x + n are
// an invertible function of C x + w, row by row: what steps [first, last) release is rows [first,
// last) of C x, each with noise that no other row has (the matrix mechanism; Denisov, McMahan,
// Rush, Smith, Thakurta, arXiv 2202.08312, for sums that depend on earlier releases).
// NoiseComponent::EventOf is the event of these rows.
//
// Rounding. Draws lie on a grid 2^10 times finer than that of the sums (gradient_noise.h), and what
// is added to them is rounded to it, so that n = C^-1 w + e with |e_t| and the distance of e_t for
// neighbouring sums bounded by NoiseMemory::RoundingOfStep(). Where noise is kept, n_t = w_t +
// R(sum of f n): given the releases, neighbours have the noise n_s - x_s in earlier steps, and w_t
// differs by row t of C x and by the rounding R, in every step after the first one in which they
// differ. Where draws are kept, alone or in buffers, n = C^-1 w + e makes w differ by C (x + e). As
// a norm over the rows that is at most `spread` times that of one row: the scale of every step pays
// for it (StepGrid), beside the rounding of the sum itself, which C multiplies as it does the sum.
//
// No draw serves two sums that are not rows of one matrix:
//
// - In a process, steps rise. A step is drawn once.
// - A checkpoint holds no draw. It is public, and a draw beside the releases that it is in shows
//   C x without noise. So a private run that goes on from a checkpoint starts a new process: rows
//   [first, last) of a matrix that begins at `first`, which the event has to cover, and which is
//   charged. What the old draws would have taken off the next steps is lost.
// - A checkpoint that is loaded twice gives two processes. Each has secrets of its own from the
//   operating system and is charged for its own steps.
// - A program that is killed between the charge and the release of a step takes its draws with it.
//   The step is charged again and drawn anew.
// - A seeded run, which has no privacy, draws w_t from its seed and t. It continues with the same
//   process: all draws are drawn again, with the scales that the checkpoint holds.
#ifndef SORDINO_NOISE_NOISE_PROCESS_H_
#define SORDINO_NOISE_NOISE_PROCESS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "sordino/device/descent.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/fixed_point_sum.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/noise/noise_memory.h"
#include "sordino/random/random_source.h"

namespace sordino {

class DeviceNoise;
class SavedTensors;

class NoiseProcess {
 public:
  // The source of the draws lives longer. (NoiseComponent::Start)
  NoiseProcess(NoiseMemory memory, RandomSource& source);
  virtual ~NoiseProcess();
  NoiseProcess(const NoiseProcess&) = delete;
  NoiseProcess& operator=(const NoiseProcess&) = delete;

  // The sum of a step with its noise, as AddNoise (gradient_noise.h) gives it. All calls are for
  // the same coordinates. Where draws are remembered, each step comes once, one after the other.
  NoisedGradients Add(const BoundedSum& sum, const StepNoise& noise);
  NoisedGradients Add(const FixedPointShard& shard, const StepNoise& noise);

  // Whether it draws on a device, where it may make the update too: there are no canaries.
  bool DrawsOnDevice(const BoundedSum& sum, const StepNoise& noise) const;
  // A step of descent by the values of Add, in one launch. False, and nothing is done, where that
  // cannot be.
  bool Descend(const BoundedSum& sum, const StepNoise& noise, const Descent& descent);

  // What later steps depend on and everybody may see. The same on all ranks.
  virtual NamedTensors Save() const;
  // Resumes after `steps_done` steps, before the first step. Throws Error when it does not fit.
  virtual void Restore(SavedTensors& saved, std::int64_t steps_done);

 private:
  DeviceNoise& SetOnDevice(const BoundedSum& sum, const StepNoise& noise);
  void BeginStep(std::int64_t step);
  StepNoise WithRounding(const StepNoise& noise) const;
  StepNoise OnProcessor(const StepNoise& noise);
  void Correlate(const StepDraws& now);
  void CorrelateDraws(const at::Tensor& draws, std::int64_t step, double scale);

  const NoiseMemory memory_;
  RandomSource& source_;
  std::int64_t origin_ = 0;  // its first step
  std::int64_t last_step_ = -1;
  at::Tensor kept_;             // float64, a row for each factor of the memory, on the processor
  std::vector<double> scales_;  // of all draws, where they can be drawn again
  std::int64_t to_repeat_ = 0;  // so many draws of a run that was resumed are to be drawn again
  c10::Device device_ = c10::kCPU;
  std::unique_ptr<DeviceNoise> on_device_;
};

}  // namespace sordino

#endif  // SORDINO_NOISE_NOISE_PROCESS_H_
