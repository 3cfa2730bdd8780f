// The noise of a run: what is added to the sum of each step, and what the process remembers.
//
// A process draws w_t for step t, independently of everything else, and adds
//
//   n_t = w_t + c_1 w_{t-1} + c_2 w_{t-2} + ...,   w before its first step being 0,
//
// to the sum x_t. The distribution and the coefficients c are those of a NoiseComponent; c of
// independent noise is empty. Draws count in units of the scale of their step, so that a clipping
// norm that moves keeps their proportions.
//
// Privacy. Let A be the lower triangular matrix of the coefficients, with ones on its diagonal, and
// C its inverse. The releases x + A w are an invertible function of C x + w, row by row: what steps
// [first, last) release is rows [first, last) of C x, each with noise that no other row has (the
// matrix mechanism; Denisov, McMahan, Rush, Smith, Thakurta, arXiv 2202.08312, for sums that depend
// on earlier releases). NoiseComponent::EventOf is the event of these rows.
//
// Rounding. Draws lie on a grid 2^10 times finer than that of the sums (gradient_noise.h), and what
// earlier draws add is rounded to it. That moves two neighbouring sums apart by at most one step of
// the finer grid in every coordinate, in every step after the first one in which they differ. The
// scale of each step pays for its own (StepGrid); an event for records that take part in few steps
// has to count the others.
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
//   process: earlier draws are drawn again, with the scales that the checkpoint holds.
#ifndef SORDINO_NOISE_NOISE_PROCESS_H_
#define SORDINO_NOISE_NOISE_PROCESS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "sordino/device/descent.h"
#include "sordino/gradients/bounded_sum.h"
#include "sordino/gradients/fixed_point_sum.h"
#include "sordino/gradients/named_tensors.h"
#include "sordino/gradients/noised_value.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/random/random_source.h"

namespace sordino {

class DeviceNoise;
class SavedTensors;

class NoiseProcess {
 public:
  // c_1, c_2, ... and the source of the draws, which lives longer. (NoiseComponent::Start)
  NoiseProcess(std::vector<double> coefficients, RandomSource& source);
  virtual ~NoiseProcess();
  NoiseProcess(const NoiseProcess&) = delete;
  NoiseProcess& operator=(const NoiseProcess&) = delete;

  // The sum of a step with its noise, as AddNoise (gradient_noise.h) gives it. All calls are for
  // the same coordinates. Where draws are remembered, each step comes once, one after the other.
  NoisedGradients Add(const BoundedSum& sum, const StepNoise& noise);
  NoisedGradients Add(const FixedPointShard& shard, const StepNoise& noise);

  // Whether it draws on a device, where it may make the update too: the noise is the newest draw
  // alone, and there are no canaries.
  bool DrawsOnDevice(const BoundedSum& sum, const StepNoise& noise) const;
  // A step of descent by the values of Add, in one launch. False, and nothing is done, where that
  // cannot be.
  bool Descend(const BoundedSum& sum, const StepNoise& noise, const Descent& descent);

  // What later steps depend on and everybody may see. The same on all ranks.
  virtual NamedTensors Save() const;
  // Resumes after `steps_done` steps, before the first step. Throws Error when it does not fit.
  virtual void Restore(SavedTensors& saved, std::int64_t steps_done);

 private:
  struct Earlier {
    at::Tensor draws;  // int64, of the coordinates of this process; undefined: to be drawn again
    double scale = 0;  // 0: before the first step
  };

  DeviceNoise& SetOnDevice(const BoundedSum& sum, const StepNoise& noise);
  StepNoise WithEarlier(const StepNoise& noise);
  void AddEarlier(const StepDraws& now);

  const std::vector<double> coefficients_;
  RandomSource& source_;
  std::deque<Earlier> earlier_;  // the newest first, as many as there are coefficients
  std::int64_t last_step_ = -1;
  c10::Device device_ = c10::kCPU;
  std::unique_ptr<DeviceNoise> on_device_;
};

}  // namespace sordino

#endif  // SORDINO_NOISE_NOISE_PROCESS_H_
