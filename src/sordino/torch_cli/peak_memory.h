// How much memory tensors take at the worst moment of some work.
//
// On the CPU every block of libtorch's allocator is counted, on whichever thread it is made (what
// oneDNN takes through it too); scratch space that a library takes by itself (BLAS) is not. On an
// accelerator libtorch's caching allocator counts, in the blocks that it hands out.
#ifndef SORDINO_TORCH_CLI_PEAK_MEMORY_H_
#define SORDINO_TORCH_CLI_PEAK_MEMORY_H_

#include <c10/core/Device.h>

#include <cstdint>

namespace sordino {

// Counts while it lives. At most one at a time: on the CPU it stands in for libtorch's allocator,
// which costs time for each block, so nothing should be timed meanwhile.
class PeakMemory {
 public:
  explicit PeakMemory(at::Device device);
  ~PeakMemory();
  PeakMemory(const PeakMemory&) = delete;
  PeakMemory& operator=(const PeakMemory&) = delete;

  // The zero of Peak(): what is held now is left out from now on.
  void SetBaseline();
  // Forgets the peak so far.
  void Restart();
  // Bytes at the worst moment since Restart() or the baseline, above the baseline. Waits for the
  // device.
  std::int64_t Peak() const;

 private:
  std::int64_t Held() const;

  at::Device device_;
  std::int64_t baseline_ = 0;
};

}  // namespace sordino

#endif  // SORDINO_TORCH_CLI_PEAK_MEMORY_H_
