// The noise step on a CUDA device: noise is drawn where the sum lies, by one launch for all its
// tensors.
//
// Values are those of AddNoise (gradient_noise.h), with the draws of random/indexed_draw.h: noise
// of coordinate i, counted over all tensors, is a function of (key, number of the draw, i). The
// key, the number and the parameters of the step lie in the memory of the device and are read
// there, so a launch can be captured in a CUDA graph and replayed.
//
// No noise comes twice. A key belongs to one DeviceNoise, the number of the draw grows by one with
// every launch, on the device, whether it is replayed or not, and nothing makes it smaller: SetStep
// raises it to the number of the step, or leaves it. So a graph that is replayed without SetStep or
// with an old step draws new noise. Neither a key nor a step can be set in a capture, which would
// replay it; the program stops.
//
// A seed repeats noise, on purpose: the key is that of the seed, and SetStep makes the number of
// the draw that of the step, also in a run that was resumed there. A private run that is resumed
// has a key of its own.
//
// Noise that is correlated between steps (Remember) is made in the same launch: what is kept of
// earlier steps lies in the memory of the device, and its place depends on the number of the draw,
// so that a recorded launch goes on with it. It is as secret as the key, and is overwritten with
// it.
//
// The key is as secret as the noise: who reads it in the memory of the device reads the sum there
// too. The destructor overwrites it.
//
// Calls put work on the current stream and wait for nothing, but for the destructor of an object
// that was captured. Whoever uses several streams lets one wait for the other.
#ifndef SORDINO_NOISE_DEVICE_NOISE_H_
#define SORDINO_NOISE_DEVICE_NOISE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sordino/device/descent.h"
#include "sordino/kernels/launch.h"
#include "sordino/noise/gradient_noise.h"
#include "sordino/noise/noise_memory.h"
#include "sordino/random/random_source.h"

namespace sordino {

class DeviceNoise {
 public:
  // Whether this build has the kernel. Where it has not, no object can be made (Error).
  static bool IsBuilt() { return kKernelsAreBuilt; }
  // Whether it serves this sum: its tensors, float32 or float64, lie on one CUDA device, and the
  // kind of noise draws by index.
  static bool Serves(const BoundedSum& sum, const NoiseComponent& kind);
  // Whether it can make this descent by the gradients of such a sum: parameters are contiguous, and
  // of the sizes and types and on the device of the sum.
  static bool Serves(const BoundedSum& sum, const Descent& descent);

  DeviceNoise(at::Device device, RandomSource& source);
  ~DeviceNoise();
  DeviceNoise(const DeviceNoise&) = delete;
  DeviceNoise& operator=(const DeviceNoise&) = delete;

  // From now on what is drawn becomes noise by this memory, which begins at step `origin`. Comes
  // once, before the first step. Seeded noise of earlier steps is repeated, one after the other.
  void Remember(const NoiseMemory& memory, std::int64_t origin, std::int64_t coordinates);
  void Repeat(std::int64_t step, double scale_of_draws);

  // What the next launches do: noise of this step for sums of this sensitivity; one of these three
  // comes before the first launch. Canaries are not added.
  void SetStep(const StepNoise& noise, L2Sensitivity sensitivity, std::int64_t coordinates);
  // The same on a grid that somebody else chose; AddNoise then takes no sum.
  void SetGrid(const NoiseGrid& grid, double divisor, std::int64_t step);

  // The noise of a step alone, in steps of the grid, whole numbers in doubles.
  at::Tensor Steps(const NoiseGrid& grid, std::int64_t coordinates, std::int64_t step);

  // noised[k] = sums[k] with noise, divided. All are contiguous and lie on the device; the two may
  // be the same tensors.
  void Launch(const std::vector<at::Tensor>& sums, const std::vector<at::Tensor>& noised);

  double standard_deviation() const { return standard_deviation_; }  // of the last SetStep

 private:
  friend NoisedGradients AddNoise(const BoundedSum& sum, DeviceNoise& noise);
  friend void AddNoise(const BoundedSum& sum, DeviceNoise& noise, const Descent& descent);
  void StoreGrid(const NoiseGrid& grid, double divisor, std::uint64_t draw);
  void LaunchDescent(const std::vector<at::Tensor>& sums, const Descent& descent);
  void LaunchOver(const std::vector<at::Tensor>& sums, const std::vector<at::Tensor>& targets,
                  const Descent* descent);
  void CheckSetFor(const BoundedSum& sum) const;

  at::Tensor state_;                        // bytes: internal::DeviceNoiseState
  at::Tensor kept_ = {};                    // of internal::MemoryView, if anything is remembered
  at::Tensor factors_ = {};                 // its factors and decays
  std::optional<c10::Stream> stream_ = {};  // that was used last
  bool was_captured_ = false;
  bool is_private_ = true;
  double sigma_ = 0;  // of the table that the device has
  // What else it has, as far as launches outside of recordings tell: internal::GridStep, and the
  // number of the next draw. It is not stored again.
  double steps_per_unit_ = 0;
  double value_of_step_ = 0;
  int finer_bits_ = 0;
  std::uint64_t next_draw_ = 0;
  double standard_deviation_ = 0;
  L2Sensitivity sensitivity_{0};  // of the last SetStep
  std::int64_t coordinates_ = 0;
};

// The noise step that SetStep was told. Stops the program for a sum of a larger sensitivity or of
// another number of coordinates.
NoisedGradients AddNoise(const BoundedSum& sum, DeviceNoise& noise);

// The same, and a step of descent by the noised gradients, in one launch: the gradients themselves
// are in no memory.
void AddNoise(const BoundedSum& sum, DeviceNoise& noise, const Descent& descent);

}  // namespace sordino

#endif  // SORDINO_NOISE_DEVICE_NOISE_H_
