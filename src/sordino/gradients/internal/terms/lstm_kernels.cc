#include "sordino/gradients/internal/terms/lstm_kernels.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "sordino/gradients/internal/terms/lstm_launches.h"

namespace sordino {
namespace {

class CudaLstmKernels : public LstmKernels {
 public:
  void Open(const LstmBuffers& buffers) const override {
    Launch(buffers,
           [](const auto& entries, void* stream) { return LaunchLstmOpen(entries, stream); });
  }
  void StepBack(const LstmBuffers& buffers, std::int64_t place) const override {
    Launch(buffers, [place](const auto& entries, void* stream) {
      return LaunchLstmStepBack(entries, place, stream);
    });
  }

 private:
  template <typename Run>
  static void Launch(const LstmBuffers& buffers, const Run& run) {
    const c10::cuda::CUDAGuard on_device(buffers.gates.device());
    void* const stream = c10::cuda::getCurrentCUDAStream(buffers.gates.device().index()).stream();
    const int problem = buffers.gates.scalar_type() == at::kDouble
                            ? run(buffers.Entries<double>(), stream)
                            : run(buffers.Entries<float>(), stream);
    C10_CUDA_CHECK(static_cast<cudaError_t>(problem));
  }
};

}  // namespace

const LstmKernels* LstmKernelsFor(const c10::Device& device) {
  static const CudaLstmKernels kernels;
  return device.is_cuda() ? &kernels : nullptr;
}

}  // namespace sordino
