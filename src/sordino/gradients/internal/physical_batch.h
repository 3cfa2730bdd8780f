// How many examples fit into one forward and backward pass.
//
// A logical batch is what a step is made of; a physical batch is what is in memory at once. The
// clipped sum over a batch is the sum of the clipped sums over its parts, so a batch that does not
// fit is cut, and nothing but rounding changes. How large a part may be is found by measuring two
// passes of different sizes. A pass over n examples allocates and frees in the same order whatever
// n is, and after its t-th event it holds a_t + b_t n; the two passes give a_t and b_t for every t,
// and the peak for any n is the largest of these lines. (Two peaks alone do not do: a small batch
// peaks in the backward pass, where there are gradients of the parameters, a large one where there
// are most activations, and a line through two small peaks is far too low.) Where the prediction
// fails nevertheless (another process took the memory), an allocation fails, IsOutOfMemory says so,
// and the caller halves the part.
//
// All sizes are in bytes.
#ifndef SORDINO_GRADIENTS_INTERNAL_PHYSICAL_BATCH_H_
#define SORDINO_GRADIENTS_INTERNAL_PHYSICAL_BATCH_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <vector>

namespace sordino {

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// The most bytes that tensors on one device took above what they took at the start, measured while
// the meter lives: on the thread that made it, and on the threads that libtorch's autograd engine
// runs the same backward pass on. Memory that was allocated before and is freed meanwhile does not
// count, so the peak is never too small. Work that other threads of the program do is not seen,
// nor are buffers that libraries (oneDNN, cuDNN) allocate for themselves.
//
// It takes the place of libtorch's memory profiler on this thread. Meters on one thread nest; the
// innermost one sees the allocations, and they must be destroyed in the reverse order.
class AllocationMeter {
 public:
  explicit AllocationMeter(c10::Device device);
  ~AllocationMeter();
  AllocationMeter(const AllocationMeter&) = delete;
  AllocationMeter& operator=(const AllocationMeter&) = delete;

  std::int64_t peak() const;
  std::int64_t current() const;
  // What was held after each allocation and each release since the start.
  std::vector<std::int64_t> History() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  struct Guard;
  std::unique_ptr<Guard> guard_;
};

// The peak memory of a pass as a function of its number of examples.
class MemoryModel {
 public:
  // From the histories of two passes over 0 < few < many examples, of a kind that was run before
  // (first passes allocate what later ones do not). Slopes and offsets are rounded up and never
  // negative. Where the lengths differ (libtorch takes other kernels for very few rows: 8 and 16
  // examples are better than 1 and 2), the larger pass alone is used and all its memory counts as
  // growing with the examples: too much, but never too little.
  MemoryModel(std::int64_t few, const std::vector<std::int64_t>& few_history, std::int64_t many,
              const std::vector<std::int64_t>& many_history);

  std::int64_t Peak(std::int64_t examples) const;

  // The largest number of examples whose pass fits into `share` (in (0, 1]) of the available
  // memory; at least 1, because less than one example cannot be tried. The rest is left for what
  // the meter does not see and for fragmentation.
  std::int64_t FittingExamples(std::int64_t available, double share = 0.8) const;

 private:
  struct Line {
    std::int64_t fixed = 0;
    std::int64_t per_example = 0;
  };
  void Add(std::int64_t few, std::int64_t few_held, std::int64_t many, std::int64_t many_held);

  std::vector<Line> lines_;
};

// The size of equal parts (the last one smaller) of at most `fitting` examples that a batch is cut
// into: 100 examples of which 60 fit become 2 parts of 50, not 60 and 40.
std::int64_t PartSize(std::int64_t examples, std::int64_t fitting);

// What can still be allocated on a device. CPU: MemAvailable of the kernel or what is left below
// the limits of the process's control groups (cgroup v1 and v2, all levels), whichever is less.
// Others: free memory of the device and what libtorch's allocator holds in reserve. kNoLimit when
// nothing is known. Takes tens of microseconds and, on a GPU, may wait for the driver: not for
// every step.
std::int64_t AvailableMemory(c10::Device device);

// The CPU part, reading below `root` ("/" outside of tests).
std::int64_t AvailableHostMemory(const std::filesystem::path& root);

// Whether an allocation failed: libtorch's error for devices, the message of its CPU allocator, or
// std::bad_alloc.
bool IsOutOfMemory(const std::exception& error);

}  // namespace sordino

#endif  // SORDINO_GRADIENTS_INTERNAL_PHYSICAL_BATCH_H_
